"""Paths of brokers as properties, and what a bridge takes."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import BrokerError
from atalanta.message.message import Message
from atalanta.message.selector.selector import parse
from atalanta.wire.openwire.bridge_filter import message_selector, takes_demand
from atalanta.wire.openwire.broker_path import (
    BROKER_PATH,
    longer_path,
    path_of,
    path_text,
)
from atalanta.wire.openwire.commands.identifiers import BrokerId

B = BrokerId("ID:b_1")


def passes(path: list[str], ttl: int, target: BrokerId = B, selector: str | None = None) -> bool:
    """Whether a message that has passed the brokers of `path` goes over a bridge to the target."""
    message = Message.create("q", b"", 0, True, 0)
    message.properties.put("size", 3)
    if path:
        message.properties.put(BROKER_PATH, path_text([BrokerId(each) for each in path]))
    return parse(message_selector(target, ttl, selector)).matches(message)


def test_a_path_comes_back_as_it_was() -> None:
    path = longer_path(longer_path(None, BrokerId("a")), B)
    assert path_of(path_text(path)) == [BrokerId("a"), B]
    assert path_of("") is None and path_of(None) is None


@pytest.mark.parametrize("name", ["", "a,b", "x" * 1001])
def test_an_id_that_a_path_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(BrokerError, match="broker id"):
        path_text([BrokerId(name)])


def test_messages_pass_as_many_bridges_as_their_ttl() -> None:
    assert [passes([], ttl) for ttl in (-1, 0, 1, 2)] == [True, False, True, True]
    assert [passes(["a"], ttl) for ttl in (-1, 0, 1, 2, 3)] == [True, False, False, True, True]
    assert [passes(["a", "c"], ttl) for ttl in (-1, 1, 2, 3)] == [True, False, False, True]
    assert passes(["a"] * 20, -1) and not passes(["a"] * 20, 20) and passes(["a"] * 20, 21)


def test_the_ttl_does_not_size_the_selector() -> None:
    """It comes from the other broker. A very high one is any number."""
    for ttl in (65, 1_000, (1 << 31) - 1):
        assert len(message_selector(B, ttl)) < 300 and passes(["a"] * 500, ttl)
    assert passes(["a"] * 63, 64) and not passes(["a"] * 64, 64)


@pytest.mark.parametrize("path", [["ID:b_1"], ["ID:b_1", "a"], ["a", "ID:b_1"], ["a", "ID:b_1", "c"]])
def test_no_message_returns_to_a_broker_of_its_path(path: list[str]) -> None:
    assert not passes(path, -1) and not passes(path, 9)


def test_ids_are_compared_whole_and_literally() -> None:
    for other in ("ID:b_12", "xID:b_1", "ID:bx1", "id:b_1"):
        for path in ([other], [other, "a"], ["a", other], ["a", other, "c"]):
            assert passes(path, -1), path
    for target in ("it's", "50%", "a!b", "!"):
        assert not passes([target, "x"], -1, BrokerId(target)) and passes(["other"], -1, BrokerId(target))


def test_the_selector_of_the_consumers_is_kept() -> None:
    assert passes([], 1, selector="size = 3") and passes(["a"], 2, selector="size = 3 OR size = 4")
    assert not passes([], 1, selector="size = 4") and not passes(["a"], 1, selector="size = 3 OR size = 4")


def test_demand_goes_as_far_as_its_ttl_and_never_back() -> None:
    assert takes_demand(None, B, 1) and not takes_demand(None, B, 0) and takes_demand(None, B, -1)
    assert not takes_demand([BrokerId("a")], B, 1) and takes_demand([BrokerId("a")], B, 2)
    assert not takes_demand([BrokerId("a"), B], B, -1)
