"""Names that many messages carry: equal ones are one object, found in dicts by a look at its place alone.

Not `sys.intern`: CPython 3.12.1 keeps for ever what that is given (as builds without the interpreter's lock do), and
peers may send any number of names.
"""

from __future__ import annotations

from typing import Final

NAMES_MAX: Final = 8192
LENGTH_MAX: Final = 512  # of one that is kept

_names: dict[str, str] = {}


def shared_name(name: str) -> str:
    """The first equal text that was given; `name` itself where it is very long, or there are enough."""
    found = _names.get(name)
    if found is None:
        found = name
        if len(_names) < NAMES_MAX and len(name) <= LENGTH_MAX:
            _names[name] = name
    return found
