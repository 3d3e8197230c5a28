"""A quick dataclass does what a frozen dataclass does."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import field
from typing import Any

import pytest

from atalanta.message.quick_dataclass import dataclass, mutable_dataclass


@dataclass(frozen=True)
class Quick:
    """One of the fields is secret."""

    name: str
    count: int = 3
    secret: str = field(default="", repr=False)
    parts: tuple[str, ...] = field(default_factory=tuple)

    def doubled(self) -> int:
        return 2 * self.count


@dataclasses.dataclass(frozen=True)
class Usual:
    """The same, as Python makes it."""

    name: str
    count: int = 3
    secret: str = field(default="", repr=False)
    parts: tuple[str, ...] = field(default_factory=tuple)


@pytest.mark.parametrize(
    ("values", "given"), [(("a",), {}), (("a", 4), {"parts": ("x",)}), ((), {"name": "b", "secret": "s"})]
)
def test_values_defaults_text_and_copies(values: tuple[Any, ...], given: dict[str, Any]) -> None:
    quick = Quick(*values, **given)
    usual: Any = Usual(*values, **given)
    assert dataclasses.asdict(quick) == dataclasses.asdict(usual)
    assert repr(quick) == repr(usual).replace("Usual", "Quick")
    assert quick == Quick(*values, **given) and hash(quick) == hash(Quick(*values, **given))
    assert quick != usual and quick != dataclasses.replace(quick, count=77)
    assert dataclasses.replace(quick, count=5).doubled() == 10
    assert pickle.loads(pickle.dumps(quick)) == quick
    assert {quick: 1}[Quick(*values, **given)] == 1


@pytest.mark.parametrize(
    ("values", "given"), [((), {}), (("a", 1, "", (), 5), {}), (("a",), {"name": "b"}), (("a",), {"other": 1})]
)
def test_what_does_not_fit_is_refused(values: tuple[Any, ...], given: dict[str, Any]) -> None:
    for kind in (Quick, Usual):
        with pytest.raises(TypeError):
            kind(*values, **given)


def test_nothing_is_changed() -> None:
    for one in (Quick("a"), Usual("a")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.name = "b"  # type: ignore[misc]
        with pytest.raises(dataclasses.FrozenInstanceError):
            del one.name


def test_what_cannot_be_hashed_is_no_key() -> None:
    with pytest.raises(TypeError):
        hash(Quick("a", parts=["x"]))  # type: ignore[arg-type]


def test_a_class_that_may_change_has_its_constructor_only() -> None:
    @mutable_dataclass(eq=False, repr=False)
    class Base:
        name: str
        parts: list[str] = dataclasses.field(default_factory=list)

    @mutable_dataclass(eq=False, repr=False)
    class More(Base):
        count: int = 7

    made = More("a", count=8)
    made.parts.append("x")
    assert (made.name, made.parts, made.count, More("b").parts) == ("a", ["x"], 8, [])
    assert made != More("a", ["x"], 8)
    with pytest.raises(TypeError, match="More needs 'name'"):
        More()  # type: ignore[call-arg]
