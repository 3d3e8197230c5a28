"""Table of names that many messages share. Equal names are one object, so a dict finds them by identity.

`sys.intern` is no replacement: CPython 3.12.1 keeps its strings for ever (free-threaded builds do so too), and
peers may send any number of names.
"""

from __future__ import annotations

from typing import Final

NAMES_MAX: Final = 8192
LENGTH_MAX: Final = 512  # a longer name is not kept

_names: dict[str, str] = {}


def shared_name(name: str) -> str:
    """Returns the first equal name given so far. Returns `name` itself if it is too long or the table is full."""
    found = _names.get(name)
    if found is None:
        found = name
        if len(_names) < NAMES_MAX and len(name) <= LENGTH_MAX:
            _names[name] = name
    return found
