"""Rows of several nodes as one table."""

from __future__ import annotations

from atalanta.console.nodes.list_kinds import ADDRESSES, QUEUES, ListRow
from atalanta.console.nodes.tables import of_node, page_of_rows, read_query, summed


def queue(name: str, messages: int | None = 0, **more: object) -> ListRow:
    row = {"name": name, "address": name, "messageCount": None if messages is None else str(messages), **more}
    return QUEUES.typed(row)


def test_rows_have_the_types_of_their_fields() -> None:
    row = QUEUES.typed({"name": "12", "messageCount": "7", "paused": "true", "consumerCount": 3, "durable": "maybe"})
    assert (row["name"], row["messageCount"], row["paused"], row["consumerCount"]) == ("12", 7, True, 3)
    assert row["durable"] is None and row["filter"] is None and row["scheduledCount"] is None


def test_the_same_queue_of_several_nodes_is_one_row() -> None:
    one = [queue("a", 1, paused="false"), queue("b", 5)]
    two = [queue("a", 2, paused="true"), queue("c", None)]
    rows = {row["name"]: row for row in summed(QUEUES, [("one", "1", one), ("two", "2", two)])}
    assert (rows["a"]["messageCount"], rows["a"]["paused"], rows["a"]["parts"], rows["a"]["node"]) == (3, True, 2, None)
    assert (rows["b"]["node"], rows["b"]["nodeID"], rows["c"]["messageCount"]) == ("one", "1", None)
    assert one[0]["messageCount"] == 1, "the copies of the nodes stay"
    full = [ADDRESSES.typed({"name": "x", "addressLimitPercent": each}) for each in ("10", "90")]
    (row,) = summed(ADDRESSES, [("one", "1", full[:1]), ("two", "2", full[1:])])
    assert row["addressLimitPercent"] == 90


def test_a_page_is_filtered_sorted_and_cut() -> None:
    rows = [queue(f"q{number:03}", number % 7) for number in range(120)] + [queue("other", None)]
    given = {"q": "Q0", "sort": "messageCount", "order": "desc", "size": "25", "page": "2"}
    query = read_query(given, QUEUES.fields, "name")
    page = page_of_rows(rows, query, ("name",), ("messageCount",))
    assert (page.count, page.total, page.first, page.last, page.pages) == (100, 121, 26, 50, 4)
    counts = [row["messageCount"] for row in page.rows]
    assert counts == [5] * 3 + [4] * 14 + [3] * 8
    assert page.sums == {"messageCount": sum(number % 7 for number in range(100))}
    last = page_of_rows(rows, read_query({"sort": "messageCount", "size": "200"}, QUEUES.fields, "name"), ("name",))
    assert last.rows[-1]["name"] == "other", "what is not known comes last"


def test_a_query_that_makes_no_sense_has_the_defaults() -> None:
    given = {"sort": "__class__", "page": "-3", "size": "10000", "order": "up", "q": "x" * 9_999}
    query = read_query(given, QUEUES.fields, "name")
    assert (query.sort, query.page, query.size, query.descending, len(query.text)) == ("name", 1, 50, False, 500)
    page = page_of_rows([queue("a")], read_query({"page": "99"}, QUEUES.fields, "name"), ("name",))
    assert page.rows == [] and page.first == 0


def test_rows_of_a_node_name_it() -> None:
    assert of_node([queue("a")], "one", "1")[0]["node"] == "one"
