"""Frozen dataclasses that are made in a fifth of the time: `dataclass(frozen=True)` compiles six functions for each.

For classes of programs whose start is waited for (the process that plans a query of Spark), and of which few objects
are made: an object takes some microseconds instead of one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Type checkers see what the classes are like.
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool) -> Any:
        """Returns a decorator with the effect of that of dataclasses, with `replace` and `fields`."""
        assert frozen, "only frozen classes are made here"

        def made(kind: type) -> type:
            dataclasses.dataclass(init=False, repr=False, eq=False)(kind)
            for method in (__init__, __repr__, __eq__, __hash__, __setattr__, __delattr__):
                if method.__name__ not in kind.__dict__:
                    setattr(kind, method.__name__, method)
            return kind

        return made


def __init__(self: Any, *values: Any, **given: Any) -> None:
    kind = type(self)
    known = kind.__dataclass_fields__
    if len(values) > len(known):
        raise TypeError(f"{kind.__name__} takes {len(known)} values, {len(values)} were given")
    found = dict(zip(known, values))  # noqa: B905 (there may be fewer values)
    for name, value in given.items():
        if name not in known or name in found:
            raise TypeError(f"{kind.__name__}: {name!r} is {'given twice' if name in found else 'no field'}")
        found[name] = value
    for name, field in known.items():
        if name in found:
            continue
        if field.default_factory is not dataclasses.MISSING:
            found[name] = field.default_factory()
        elif field.default is not dataclasses.MISSING:
            found[name] = field.default
        else:
            raise TypeError(f"{kind.__name__} needs {name!r}")
    self.__dict__.update(found)


def __repr__(self: Any) -> str:
    shown = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def __eq__(self: Any, other: object) -> Any:
    return self.__dict__ == other.__dict__ if other.__class__ is self.__class__ else NotImplemented


def __hash__(self: Any) -> int:
    return hash(tuple(getattr(self, name) for name in self.__dataclass_fields__))


def __setattr__(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
