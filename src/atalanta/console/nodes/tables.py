"""Rows of several nodes as one table: summed, filtered, sorted, and one page of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from atalanta.console.nodes.list_kinds import ListKind, ListRow, Value
from atalanta.message.encoding.digits import all_digits

SIZES: Final = (25, 50, 100, 200)
DEFAULT_SIZE: Final = 50
PAGES_MAX: Final = 1_000_000
FILTER_MAX: Final = 500
NODE: Final = "node"  # the field with the label of the row's node
NODE_ID: Final = "nodeID"
PARTS: Final = "parts"  # the field with the number of nodes that a summed row has
# Fields of which a sum makes no sense: the largest is shown.
LARGEST: Final = ("maxConsumers", "addressLimitPercent")


@dataclass(frozen=True)
class TableQuery:
    """The rows that a page asks for, from its URL."""

    text: str = ""
    sort: str = ""
    descending: bool = False
    page: int = 1
    size: int = DEFAULT_SIZE
    node: str = ""  # the id of one node, "" for all
    with_internal: bool = False

    def parameters(self) -> dict[str, str]:
        """Returns the parameters of the URL; those that have their defaults are empty."""
        return {
            "q": self.text,
            "sort": self.sort,
            "order": "desc" if self.descending else "",
            "page": str(self.page) if self.page > 1 else "",
            "size": str(self.size) if self.size != DEFAULT_SIZE else "",
            "node": self.node,
            "internal": "1" if self.with_internal else "",
        }


def read_query(given: Mapping[str, str], fields: Sequence[str], default_sort: str) -> TableQuery:
    """Returns the query of a URL. Values that make no sense are replaced by the defaults."""
    sort = given.get("sort", "")
    page = given.get("page", "")
    size = given.get("size", "")
    return TableQuery(
        text=given.get("q", "").strip()[:FILTER_MAX],
        sort=sort if sort in fields else default_sort,
        descending=given.get("order") == "desc",
        page=min(max(1, int(page)), PAGES_MAX) if all_digits(page, 7) else 1,
        size=int(size) if size in map(str, SIZES) else DEFAULT_SIZE,
        node=given.get("node", ""),
        with_internal=given.get("internal") == "1",
    )


@dataclass
class TablePage:
    """A page of a table. `count` are the rows that the filter takes, on all pages; `total` those before the filter."""

    query: TableQuery
    rows: list[ListRow]
    count: int
    total: int
    sums: dict[str, int] = field(default_factory=dict)

    @property
    def first(self) -> int:
        return (self.query.page - 1) * self.query.size + 1 if self.rows else 0

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1 if self.rows else 0

    @property
    def pages(self) -> int:
        return max(1, -(-self.count // self.query.size))


def of_node(rows: Sequence[ListRow], label: str, node_id: str) -> list[ListRow]:
    """Returns the rows with the name and id of their node."""
    return [{**row, NODE: label, NODE_ID: node_id} for row in rows]


def summed(kind: ListKind, by_node: Sequence[tuple[str, str, Sequence[ListRow]]]) -> list[ListRow]:
    """Returns one row for what has the same key on several nodes (label, id, rows): numbers added, flags if any has it.

    Texts are those of the first node, and NODE names it while the row is of one node alone.
    """
    found: dict[tuple[Value, ...], ListRow] = {}
    for label, node_id, rows in by_node:
        for row in rows:
            key = tuple(_hashable(row.get(name)) for name in kind.key)
            known = found.get(key)
            if known is None:
                found[key] = {**row, NODE: label, NODE_ID: node_id, PARTS: 1}
                continue
            for name in kind.numbers:
                known[name] = _together(name, known.get(name), row.get(name))
            for name in kind.flags:
                known[name] = known.get(name) is True or row.get(name) is True
            parts = known[PARTS]
            known[PARTS] = parts + 1 if isinstance(parts, int) else 1
            known[NODE] = known[NODE_ID] = None
    return list(found.values())


def page_of_rows(
    rows: Sequence[ListRow], query: TableQuery, searched: Sequence[str], sums: Sequence[str] = ()
) -> TablePage:
    """Returns the page: rows whose `searched` fields contain the text (upper and lower case alike), sorted, cut.

    Rows without a value come last in either order. `sums` are fields that are added over all rows of the filter.
    """
    total = len(rows)
    if query.text:
        wanted = query.text.casefold()
        rows = [row for row in rows if any(wanted in str(row.get(name) or "").casefold() for name in searched)]
    if query.sort:
        known = [row for row in rows if row.get(query.sort) is not None]
        unknown = [row for row in rows if row.get(query.sort) is None]
        known.sort(key=lambda row: _sort_key(row.get(query.sort)), reverse=query.descending)
        rows = known + unknown
    start = (query.page - 1) * query.size
    page = list(rows[start : start + query.size])
    added = {name: sum(_number(row.get(name)) for row in rows) for name in sums}
    return TablePage(query, page, len(rows), total, added)


def _hashable(value: Value) -> Value:
    return ",".join(value) if isinstance(value, list) else value


def _number(value: Value) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _together(name: str, one: Value, other: Value) -> Value:
    if one is None or other is None:
        return other if one is None else one
    if name in LARGEST:
        return max(_number(one), _number(other))
    return _number(one) + _number(other)


def _sort_key(value: Value) -> tuple[int, int, str, str]:
    if isinstance(value, int):
        return (0, int(value), "", "")
    text = _hashable(value)
    return (1, 0, str(text).casefold(), str(text))
