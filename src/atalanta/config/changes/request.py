"""The JSON of a change by management, read with its limits.

    {"digest": "…", "changes": [{"action": "add", "kind": "bridge", "name": "b", "values": {"queue-name": "q"}}]}
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

REQUEST_CHARACTERS_MAX: Final = 256 * 1024
CHANGES_MAX: Final = 100
VALUES_MAX: Final = 300  # of one change
ITEMS_MAX: Final = 500  # of one list
NAME_MAX: Final = 255
VALUE_MAX: Final = 16 * 1024
BY_MAX: Final = 200
ADD: Final = "add"
CHANGE: Final = "change"
REMOVE: Final = "remove"
ACTIONS: Final = (ADD, CHANGE, REMOVE)
# A list, one text, or None for the default.
Value = str | list[str] | None


class ChangeRefused(Exception):
    """The change is refused; the text names the place and the remedy."""


@dataclass(frozen=True)
class Change:
    """One change of an element. `values` has what becomes different; None takes a parameter out."""

    action: str
    kind: str
    name: str
    values: dict[str, Value] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """Returns the element, for people."""
        return f"{self.kind} '{self.name}'"

    def as_json(self, hidden: frozenset[str] = frozenset()) -> dict[str, object]:
        """Returns the change as the request has it."""
        values = {name: "hidden" if name in hidden else value for name, value in self.values.items()}
        return {"action": self.action, "kind": self.kind, "name": self.name, "values": values}


@dataclass(frozen=True)
class ChangeRequest:
    """A request. `by` is the address of the operator, as the console tells it."""

    digest: str
    changes: list[Change]
    by: str


def read_request(text: str) -> ChangeRequest:
    """Returns the request in `text`. ChangeRefused names what is wrong with it."""
    found = json_object(text)
    changes = found.get("changes")
    if not isinstance(changes, list) or not changes:
        raise ChangeRefused("'changes' is a list of at least one change")
    if len(changes) > CHANGES_MAX:
        raise ChangeRefused(f"a request has at most {CHANGES_MAX} changes, not {len(changes)}: make several of it")
    return ChangeRequest(_text(found, "digest", 64), [_change(each) for each in changes], _text(found, "by", BY_MAX))


def read_undo(text: str) -> tuple[str, str, str]:
    """Returns id, digest and the operator's address of a request to undo. ChangeRefused."""
    found = json_object(text)
    return _text(found, "id", NAME_MAX), _text(found, "digest", 64), _text(found, "by", BY_MAX)


def json_object(text: str) -> dict[str, object]:
    """Returns the JSON object in `text`. ChangeRefused if it is something else, or too large."""
    if len(text) > REQUEST_CHARACTERS_MAX:
        raise ChangeRefused(f"a request has at most {REQUEST_CHARACTERS_MAX} characters, not {len(text)}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ChangeRefused(f"the request is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ChangeRefused("the request is a JSON object")
    return found


def _text(found: dict[str, object], key: str, length_max: int) -> str:
    value = found.get(key, "")
    if not isinstance(value, str):
        raise ChangeRefused(f"'{key}' is a text")
    if len(value) > length_max or not value.isprintable():
        raise ChangeRefused(f"'{key}' is a text of at most {length_max} characters without control characters")
    return value


def _change(found: object) -> Change:
    if not isinstance(found, dict):
        raise ChangeRefused("a change is an object with action, kind, name and values")
    action, kind, name = (_text(found, key, NAME_MAX) for key in ("action", "kind", "name"))
    if action not in ACTIONS:
        raise ChangeRefused(f"the action '{action}' is none of {', '.join(ACTIONS)}")
    if not name or name != name.strip():
        raise ChangeRefused(f"'{name}' cannot be a name: it is empty, or blanks stand around it")
    given = found.get("values", {})
    if not isinstance(given, dict) or len(given) > VALUES_MAX:
        raise ChangeRefused(f"the values of {kind} '{name}' are an object of at most {VALUES_MAX} entries")
    if action == REMOVE and given:
        raise ChangeRefused(f"{kind} '{name}': what is removed has no values")
    return Change(action, kind, name, {str(key): _value(str(key), value) for key, value in given.items()})


def _value(name: str, value: object) -> Value:
    if len(name) > NAME_MAX:
        raise ChangeRefused(f"a parameter's name has more than {NAME_MAX} characters")
    if value is None:
        return None
    if isinstance(value, list):
        if len(value) > ITEMS_MAX:
            raise ChangeRefused(f"{name} has more than {ITEMS_MAX} values")
        return [_item(name, each) for each in value]
    return _item(name, value)


def _item(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        if not isinstance(value, bool):
            raise ChangeRefused(f"{name}: a value is a text")
        value = "true" if value else "false"
    text = str(value).strip()
    if len(text) > VALUE_MAX:
        raise ChangeRefused(f"{name} has more than {VALUE_MAX} characters")
    if not text.isprintable():
        raise ChangeRefused(f"{name}: control characters and line ends cannot be written")
    if "${" in text:
        raise ChangeRefused(f"{name}: '${{' cannot be written: it would read a value of the node's environment")
    return text
