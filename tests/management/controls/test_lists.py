"""Lists of queues, addresses, connections, sessions, consumers: filters, order, pages; and closing."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.security.security import Identity, Security
from tests.kernel.broker_rig import consume, endpoint
from tests.management.management_rig import Desk, Refused

Rows = list[dict[str, object]]


def listed(
    desk: Desk, view: str, page: int = 1, size: int = 100, **options: str
) -> tuple[Rows, int]:
    answer = desk.json("broker", view, json.dumps(options) if options else "", page, size)
    assert isinstance(answer, dict)
    return answer["data"], answer["count"]


def names(rows: Rows) -> list[object]:
    return [row["name"] for row in rows]


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A desk with four queues, of which two have messages."""
    for name in ("pear", "apple", "fig"):
        desk.queue(name)
    desk.queue("news", "topic", 0)
    desk.fill("fig", 3)
    desk.fill("pear", 1)
    return desk


def test_queues_are_filtered_sorted_and_paged(desk: Desk) -> None:
    rows, count = listed(desk, "listQueues", field="name", operation="CONTAINS", value="p")
    assert names(rows) == ["apple", "pear", "replies"] and count == 3
    assert rows[1]["messageCount"] == "1" and rows[1]["durable"] == "true"
    rows, count = listed(
        desk, "listQueues", 1, 2, field="routingType", operation="EQUALS", value="ANYCAST",
        sortField="messageCount", sortOrder="desc",
    )  # fmt: skip
    assert names(rows) == ["fig", "pear"] and count == 3
    rows, _ = listed(
        desk, "listQueues", 2, 2, field="routingType", operation="EQUALS", value="ANYCAST",
        sortColumn="messageCount", sortOrder="desc",
    )  # fmt: skip
    assert names(rows) == ["apple"]
    rows, _ = listed(desk, "listQueues", field="MESSAGE_COUNT", operation="GREATER_THAN", value="1")
    assert names(rows) == ["fig"]
    assert listed(desk, "listQueues", 0, 2) == ([], 5)
    everything, count = listed(desk, "listQueues", -1, -1)
    assert len(everything) == count == 5


def test_a_filter_that_makes_no_sense_is_refused(desk: Desk) -> None:
    with pytest.raises(Refused, match="no field beauty"):
        listed(desk, "listQueues", field="beauty", operation="EQUALS", value="1")
    with pytest.raises(Refused, match="no operation LIKES"):
        listed(desk, "listQueues", field="name", operation="LIKES", value="1")


def test_addresses_by_view_and_by_name(desk: Desk) -> None:
    rows, _ = listed(desk, "listAddresses", field="name", operation="EQUALS", value="fig")
    assert rows[0]["routingTypes"] == '["ANYCAST"]' and rows[0]["messageCount"] == "3"
    assert desk.ask("broker", "listAddresses", "|") == "apple|fig|pear|replies|topic"
    text = desk.ask("broker", "getAddressInfo", "topic")
    assert text == "Address [name=topic, routingTypes={MULTICAST}, autoCreated=true]"
    assert "queue=QueueImpl[name=news" in str(desk.ask("broker", "listBindingsForAddress", "topic"))


def test_connections_sessions_consumers_and_producers(desk: Desk) -> None:
    session = desk.session()
    session.client.client_id = "accounts"
    consume(session, desk, "fig", "number > 0", consumer_id=7)
    session.producers.add(desk.now, 0, "pear")
    desk.settle()
    (connection,), _ = listed(desk, "listConnections")
    assert connection["clientID"] == "accounts" and connection["sessionCount"] == 1
    assert connection["users"] == "tester" and connection["protocol"] == "CORE"
    (row,), _ = listed(desk, "listSessions")
    assert row["id"] == "session-1" and row["connectionID"] == connection["connectionID"]
    assert row["consumerCount"] == 1 and row["producerCount"] == 1
    (row,), _ = listed(desk, "listConsumers", field="queue", operation="EQUALS", value="fig")
    assert row["filter"] == "number > 0" and row["messagesInTransit"] == "2"
    (row,), _ = listed(desk, "listProducers")
    assert row["address"] == "pear"
    details = desk.json("queue.fig", "listConsumersAsJSON")
    assert isinstance(details, list) and len(details) == 1
    assert details[0]["consumerID"] == 7 and details[0]["messagesDelivered"] == 2
    assert desk.get("broker", "ConnectionCount") == 1
    session.close(desk.now, False)
    session.client.close(desk.now, desk.broker.session_services, False)
    assert desk.get("broker", "ConnectionCount") == 0
    assert desk.get("broker", "TotalSessionCount") == 1


def test_an_operator_closes_consumers_and_connections(desk: Desk) -> None:
    session = desk.session()
    consume(session, desk, "fig", consumer_id=7)
    desk.settle()
    (row,), _ = listed(desk, "listConsumers")
    assert desk.ask("broker", "closeConsumerWithID", "session-1", row["id"]) is True
    assert endpoint(session).gone == [7] and not session.consumers
    assert desk.get("queue.fig", "DeliveringCount") == 0
    assert desk.ask("broker", "closeConsumerWithID", "session-1", row["id"]) is False
    consume(session, desk, "fig", consumer_id=8)
    assert desk.ask("broker", "closeConnectionsForUser", "nobody") is False
    assert desk.closed == []
    assert desk.ask("broker", "closeConsumerConnectionsForAddress", "fi#") is False
    for wrong in ("", "a.#.b", "\ud83d#work"):
        with pytest.raises(Refused, match="match"):
            desk.ask("broker", "closeConsumerConnectionsForAddress", wrong)
    assert desk.ask("broker", "closeConsumerConnectionsForAddress", "#") is True
    assert desk.ask("broker", "closeConnectionsForUser", "tester") is True
    assert desk.ask("broker", "closeConnectionsForAddress", "test") is True
    assert desk.ask("broker", "closeConnectionWithID", "00000001") is True
    assert desk.closed == [1, 1, 1, 1]


COUNTS = (
    "messagesInTransit", "messagesDelivered", "messagesAcknowledged",
    "messagesAcknowledgedAwaitingCommit",
)  # fmt: skip


def consumer_details(desk: Desk, queue: str) -> dict[str, object]:
    found = desk.json(f"queue.{queue}", "listConsumersAsJSON")
    assert isinstance(found, list) and len(found) == 1
    details: dict[str, object] = found[0]
    return details


def consumer_counts(desk: Desk, queue: str) -> list[object]:
    (row,), _ = listed(desk, "listConsumers", field="queue", operation="EQUALS", value=queue)
    details = consumer_details(desk, queue)
    assert [int(str(row[name])) for name in COUNTS] == [details[name] for name in COUNTS]
    return [details[name] for name in COUNTS]


def test_a_consumer_is_listed_with_what_it_got_and_acknowledged(desk: Desk) -> None:
    size = desk.broker.queues["fig"].live()[0].message.encoded_size
    session = desk.session(transacted=True)
    desk.now = 5_000_000_000
    consume(session, desk, "fig", consumer_id=7)
    desk.settle()
    assert consumer_counts(desk, "fig") == [3, 3, 0, 0]
    first, second, _ = session.consumers[7].unacknowledged.values()
    desk.now = 6_000_000_000
    session.acknowledge(desk.now, 7, first.message.id, False, 0)
    session.acknowledge(desk.now, 7, second.message.id, True, 0)
    assert consumer_counts(desk, "fig") == [1, 3, 2, 2]
    details = consumer_details(desk, "fig")
    assert (details["messagesInTransitSize"], details["messagesDeliveredSize"]) == (size, 3 * size)
    assert (details["lastDeliveredTime"], details["lastAcknowledgedTime"]) == (5_000, 6_000)
    session.commit(desk.now, 0)
    assert consumer_counts(desk, "fig") == [1, 3, 2, 0]
    session.rollback(desk.now, False, 0)
    desk.settle()
    assert consumer_counts(desk, "fig") == [1, 4, 3, 0]


def test_a_browser_is_listed_without_counts(desk: Desk) -> None:
    consume(desk.session(), desk, "fig", consumer_id=7, browse=True)
    desk.settle()
    assert consumer_counts(desk, "fig") == [0, 0, 0, 0]


def test_consumers_of_two_sessions_have_different_ids(desk: Desk) -> None:
    for name in ("fig", "fig", "pear"):
        consume(desk.session(), desk, name, consumer_id=7)
    desk.settle()
    rows, count = listed(desk, "listConsumers", sortField="messagesDelivered", sortOrder="desc")
    assert [row["messagesDelivered"] for row in rows] == ["2", "1", "1"] and count == 3
    (last,), count = listed(desk, "listConsumers", 2, 2, sortField="id", sortOrder="asc")
    assert last["queue"] == "pear" and len({row["id"] for row in rows}) == count == 3
    rows, _ = listed(
        desk, "listConsumers", field="messagesDelivered", operation="GREATER_THAN", value="1"
    )
    (queue,), _ = listed(
        desk, "listQueues", field="consumerID", operation="EQUALS", value=str(rows[0]["id"])
    )
    assert len(rows) == 1 and queue["name"] == rows[0]["queue"] == "fig"


def test_times_are_sorted_as_times_and_users_found_one_by_one(desk: Desk) -> None:
    week = 7 * 86_400_000_000_000
    for days in (0, 1, 2, 3):
        desk.now += week // 7
        session = desk.session()
        consume(session, desk, "pear", consumer_id=days)
        desk.session().close(desk.now, False)
    for view, name in (("listSessions", "id"), ("listConnections", "connectionID")):
        rows, _ = listed(desk, view, sortField="creationTime", sortOrder="asc")
        assert [row[name] for row in rows] == sorted(str(row[name]) for row in rows)
    rows, _ = listed(desk, "listConsumers", sortField="creationTime", sortOrder="desc")
    assert [row["session"] for row in rows] == [f"session-{number}" for number in (7, 5, 3, 1)]
    session.identity = Identity("ann", (), False)
    other = desk.session()
    session.client.sessions["other"] = other
    (row,), _ = listed(desk, "listConnections", field="users", operation="EQUALS", value="ann")
    assert row["users"] == "ann,tester"


def test_the_queues_of_a_wildcard_address_are_those_of_the_addresses_that_it_matches(desk: Desk) -> None:
    desk.queue("all", "news.#", 0)
    desk.queue("europe", "news.eu", 0)
    desk.fill("news.eu", 2)
    assert desk.get("address.news.eu", "QueueNames") == ["europe", "all"]
    assert desk.get("address.news.eu", "QueueCount") == 2
    assert desk.get("address.news.eu", "MessageCount") == 4
    assert desk.get("address.news.#", "QueueNames") == ["all"]
    definition = {"name": "copies", "address": "news.*", "forwarding-address": "topic"}
    desk.ask("broker", "createDivert", json.dumps(definition))
    assert desk.get("address.news.eu", "BindingNames") == ["europe", "all", "copies"]
    text = str(desk.ask("broker", "listBindingsForAddress", "news.eu"))
    assert "name=all" in text and text.endswith("DivertBinding [id=copies]")
    (row,), _ = listed(desk, "listAddresses", field="name", operation="EQUALS", value="news.eu")
    assert row["queueCount"] == "2"


def test_no_validated_user_is_named_where_security_is_off(desk: Desk) -> None:
    session = desk.session()
    identity = Security(False, "cluster", "secret").quick_answer("ann", None)
    assert identity is not None
    session.identity = identity
    consume(session, desk, "fig", consumer_id=7)
    session.producers.add(desk.now, 0, "pear")
    for operation in ("listSessions", "listConsumers", "listProducers"):
        (row,), _ = listed(desk, operation)
        assert row["user"] == "ann" and row["validatedUser"] == "", operation
    assert "validatedUser" not in str(desk.ask("broker", "listAllSessionsAsJSON"))


def test_a_copy_of_a_list_needs_no_order_and_few_fields(desk: Desk) -> None:
    fields = ["name", "messageCount", "no"]
    options = json.dumps({"field": "", "operation": "", "value": "", "sortOrder": "none", "fields": fields})
    found: Rows = []
    for page in (1, 2, 3, 4):
        answer = desk.json("broker", "listQueues", options, page, 2)
        assert isinstance(answer, dict) and answer["count"] == 5
        found += answer["data"]
    assert found == [
        {"name": name, "messageCount": count}
        for name, count in (("replies", "0"), ("pear", "1"), ("apple", "0"), ("fig", "3"), ("news", "0"))
    ]
    answer = desk.json("broker", "listAddresses", json.dumps({"sortOrder": "none", "fields": ["name"]}), 2, 3)
    assert answer == {"data": [{"name": "fig"}, {"name": "topic"}], "count": 5}
    rows, count = listed(desk, "listQueues", field="name", operation="CONTAINS", value="p", sortOrder="none")
    assert names(rows) == ["replies", "pear", "apple"] and count == 3


def test_one_queue_is_found_by_its_name(desk: Desk) -> None:
    rows, count = listed(desk, "listQueues", field="name", operation="EQUALS", value="fig")
    assert names(rows) == ["fig"] and count == 1
    assert listed(desk, "listQueues", field="name", operation="EQUALS", value="none") == ([], 0)
    rows, count = listed(desk, "listAddresses", field="NAME", operation="EQUALS", value="topic")
    assert names(rows) == ["topic"] and count == 1
