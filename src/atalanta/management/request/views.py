"""Pages of queues, addresses, connections and so on, filtered and sorted (ActiveMQAbstractView).

The options are a JSON object: field, operation, value, sortField (or sortColumn), sortOrder. The answer is
`{"data":[…],"count":n}`: the page, and the number of matches. Two are not Artemis', which ignores them: sortOrder
`none` leaves the rows in the node's order, and `fields` are the only ones that are wanted. With the first, and no
filter, a page of ten thousand queues costs no more than one of a hundred.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import Final, Generic, TypeVar

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.request.json_text import encode_json
from atalanta.management.request.times import date_text

Row = TypeVar("Row")
Entry = TypeVar("Entry")
Value = str | int | bool | list[str] | None

CONTAINS: Final = "CONTAINS"
NOT_CONTAINS: Final = "NOT_CONTAINS"
EQUALS: Final = "EQUALS"
NOT_EQUALS: Final = "NOT_EQUALS"
GREATER_THAN: Final = "GREATER_THAN"
LESS_THAN: Final = "LESS_THAN"
UNSORTED: Final = "none"
OPERATIONS: Final = (CONTAINS, NOT_CONTAINS, EQUALS, NOT_EQUALS, GREATER_THAN, LESS_THAN)


class View(Generic[Row]):
    """A list of rows. `fields` are in the order of the answer; `numbers` stay numbers, other fields become text.

    `dates` are times in ms, compared as numbers and shown as dates. Lists are shown as JSON, those of `joined` with
    commas; a filter looks for one of their members. `hidden` fields are valid in a filter and not shown. `other_names`
    are older names of fields.
    """

    def __init__(
        self,
        fields: dict[str, Callable[[Row], Value]],
        default_sort: str,
        numbers: tuple[str, ...] = (),
        dates: tuple[str, ...] = (),
        joined: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
        other_names: dict[str, str] | None = None,
    ) -> None:
        self.fields = fields
        self.default_sort = default_sort
        self.numbers = numbers
        self.dates = dates
        self.joined = joined
        self.hidden = hidden
        self.other_names = other_names or {}

    def page(
        self, rows: list[Row], options: str | None, page: int, page_size: int, whole: int | None = None
    ) -> str:
        """Returns a page as JSON. Raises BrokerError if the options are not a JSON object or name an unknown field.

        `whole`: the rows are already the page of so many, see `needed`.
        """
        asked = read_options(options)
        fields = self._wanted(asked)
        if whole is not None:
            return encode_json({"data": [self.shown(row, fields) for row in rows], "count": whole})
        rows = self._filtered(rows, asked)
        count = len(rows)
        sort_field = asked.get("sortColumn") or asked.get("sortField")
        descending = False
        if sort_field is None or "sortOrder" not in asked:
            sort_field = self.default_sort
        else:
            descending = str(asked["sortOrder"]).lower() == "desc"
        getter = self._getter(str(sort_field))
        if getter is not None and asked.get("sortOrder") != UNSORTED:
            rows = sorted(rows, key=lambda row: sort_key(getter(row)), reverse=descending)
        if page != -1 and page_size != -1:
            start = (page - 1) * page_size
            rows = rows[start : start + max(0, page_size)] if start >= 0 else []  # page 1 is the first
        return encode_json({"data": [self.shown(row, fields) for row in rows], "count": count})

    def _wanted(self, asked: dict[str, object]) -> dict[str, Callable[[Row], Value]]:
        """Returns the fields of the answer: all, or those of the options that exist."""
        wanted = asked.get("fields")
        if not isinstance(wanted, list):
            return self.fields
        return {name: getter for name, getter in self.fields.items() if name in wanted}

    def shown(self, row: Row, fields: dict[str, Callable[[Row], Value]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, getter in fields.items():
            if name not in self.hidden:
                value = getter(row)
                if name in self.dates and isinstance(value, int):
                    value = date_text(value * 1_000_000)
                elif name in self.joined and isinstance(value, list):
                    value = ",".join(value)
                found[name] = value if name in self.numbers else as_text(value)
        return found

    def _getter(self, name: str) -> Callable[[Row], Value] | None:
        known = self.fields.get(self.other_names.get(name, name))
        if known is not None:
            return known
        for field, getter in self.fields.items():
            if constant_name(field) == name:
                return getter
        return None

    def _filtered(self, rows: list[Row], asked: dict[str, object]) -> list[Row]:
        field = str(asked.get("field") or "")
        operation = str(asked.get("operation") or "").strip()
        if operation and operation not in OPERATIONS:
            raise BrokerError(ILLEGAL_STATE, f"there is no operation {operation} in a filter")
        if not field:
            return rows
        getter = self._getter(field)
        if getter is None:
            raise BrokerError(ILLEGAL_STATE, f"there is no field {field} to filter by")
        if not operation:
            return rows
        value = str(asked.get("value") or "")
        return [row for row in rows if matches(getter(row), operation, value)]


def needed(
    table: dict[str, Entry], options: str | None, page: int, page_size: int
) -> tuple[list[Entry], int | None]:
    """Returns the entries of a table, by their names, that a page needs, and the number of all if they are the page.

    One that is asked for by its name is found by it; without filter and order only the page itself is looked at.
    """
    asked = read_options(options)
    operation = str(asked.get("operation") or "").strip()
    if asked.get("field") in ("name", "NAME") and operation == EQUALS:
        entry = table.get(str(asked.get("value") or ""))
        return ([] if entry is None else [entry]), None
    if operation or asked.get("sortOrder") != UNSORTED or page < 1 or page_size < 0:
        return list(table.values()), None
    start = (page - 1) * page_size
    return list(islice(table.values(), start, start + page_size)), len(table)


def read_options(options: str | None) -> dict[str, object]:
    if options is None or not options.strip():
        return {}
    try:
        found = json.loads(options)
    except (ValueError, RecursionError) as error:
        raise BrokerError(ILLEGAL_STATE, f"the options are not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BrokerError(ILLEGAL_STATE, "the options must be a JSON object")
    return found


def constant_name(field: str) -> str:
    """Returns the field name that older tools filter by: messageCount -> MESSAGE_COUNT."""
    parts: list[str] = []
    for character in field:
        if character.isupper():
            parts.append("_")
        parts.append(character.upper())
    return "".join(parts)


def as_text(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return encode_json(value) if isinstance(value, list) else str(value)


def sort_key(value: Value) -> tuple[int, int, str]:
    if value is None:
        return (0, 0, "")
    if isinstance(value, int):
        return (1, int(value), "")
    return (2, 0, as_text(value))


def matches(value: Value, operation: str, wanted: str) -> bool:
    """Returns whether a value matches (ActiveMQFilterPredicate). Numbers are compared as numbers, others as text."""
    if isinstance(value, list):
        return any(matches(one, operation, wanted) for one in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return number_matches(value, operation, wanted)
    text = as_text(value)
    if operation == EQUALS:
        return text == wanted
    if operation == NOT_EQUALS:
        return text != wanted
    if operation == CONTAINS:
        return wanted in text if text else not wanted
    if operation == NOT_CONTAINS:
        return wanted not in text if text else bool(wanted)
    return False


def number_matches(value: int, operation: str, wanted: str) -> bool:
    negative = operation in (NOT_EQUALS, NOT_CONTAINS)
    try:
        number = int(wanted)
    except ValueError:
        return negative
    if operation == EQUALS:
        return value == number
    if operation == NOT_EQUALS:
        return value != number
    if operation == LESS_THAN:
        return value < number
    if operation == GREATER_THAN:
        return value > number
    return negative
