"""Dataclasses that are made in a part of the time: no function is compiled for each of them.

`dataclass(frozen=True)` of the standard library compiles six functions for a class, `dataclass(eq=False, repr=False)`
one. For classes of programs whose start is waited for (the process that plans a query of Spark), and of which few
objects are made: an object takes some microseconds instead of one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "mutable_dataclass"]

if TYPE_CHECKING:
    # Type checkers see what the classes are like.
    from dataclasses import dataclass as dataclass
    from dataclasses import dataclass as mutable_dataclass
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

    def mutable_dataclass(*, eq: bool, repr: bool) -> Any:
        """Returns a decorator with the effect of that of dataclasses. The class may be a compiled one."""
        assert not (eq or repr), "only classes without a comparison and a text of their own are made here"

        def made(kind: type) -> type:
            dataclasses.dataclass(init=False, repr=False, eq=False)(kind)
            setattr(kind, "__init__", set_fields)  # noqa: B010 (type checkers know the class with its own)
            return kind

        return made


def __init__(self: Any, *values: Any, **given: Any) -> None:
    self.__dict__.update(_by_name(type(self), values, given))


def set_fields(self: Any, *values: Any, **given: Any) -> None:
    """Sets the fields of a new object."""
    for name, value in _by_name(type(self), values, given).items():
        setattr(self, name, value)


def _by_name(kind: Any, values: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    """Returns the value of each field. TypeError names a field that is missing, given twice or unknown."""
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
    return found


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
