"""The options of a wire format: what Java announces, and what holds for two sides."""

from __future__ import annotations

import pytest

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.openwire.commands.connections import WireFormatInfo
from atalanta.wire.openwire.encoding.primitives import encode_map
from atalanta.wire.openwire.options import (
    MAGIC,
    WireFormatOptions,
    info_of,
    negotiated,
    options_of,
)
from atalanta.wire.openwire.wire_format import WireFormat
from tests.wire.openwire.samples import conversations


def test_what_java_announces() -> None:
    given = next(each for each in conversations() if len(each.frames) == 1)
    info = WireFormat(given.options).decode(given.frames[0], given.prefix_bytes)
    assert isinstance(info, WireFormatInfo)
    assert options_of(info) == WireFormatOptions(
        stack_traces=True, host="localhost", provider_name="ActiveMQ", provider_version="5.18.6",
        platform_details="Java",
    )  # fmt: skip


def test_options_survive_the_way_there_and_back() -> None:
    made = WireFormatOptions(version=7, cache=False, tight=False, inactivity_ms=0, host="h")
    assert options_of(info_of(made)) == made


def test_an_option_that_is_not_announced_is_off() -> None:
    found = options_of(WireFormatInfo(MAGIC, 3))
    assert not (found.cache or found.tight or found.stack_traces or found.size_prefix_disabled)
    assert (found.frame_bytes_max, found.inactivity_ms) == (0, 0)


@pytest.mark.parametrize(
    ("ours", "theirs", "held"),
    [
        ({"version": 12}, {"version": 3}, ("version", 3)),
        ({"version": 12}, {"version": 99}, ("version", 12)),
        ({"version": 12}, {"version": 0}, ("version", 12)),
        ({"frame_bytes_max": 5000}, {"frame_bytes_max": 0}, ("frame_bytes_max", 5000)),
        ({"frame_bytes_max": 5000}, {"frame_bytes_max": 1 << 62}, ("frame_bytes_max", 5000)),
        ({}, {"cache": False}, ("cache_size", 0)),
        ({"cache_size": 1024}, {"cache_size": 0}, ("cache_size", 16_383)),
        ({"inactivity_ms": 30_000}, {"inactivity_ms": 0}, ("inactivity_ms", 0)),
        ({"stack_traces": True}, {"stack_traces": False}, ("stack_traces", False)),
    ],
)
def test_what_holds(ours: dict[str, int], theirs: dict[str, int], held: tuple[str, int]) -> None:
    found = negotiated(WireFormatOptions(**ours), WireFormatOptions(**theirs))  # type: ignore[arg-type]
    assert getattr(found, held[0]) == held[1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"CacheEnabled": "yes"}, "CacheEnabled"),
        ({"MaxFrameSize": True}, "MaxFrameSize"),
        ({"CacheSize": 1 << 40}, "CacheSize"),
        ({"Host": "x" * 600}, "Host"),
        ({"a": {}}, "nested more than 0 deep"),
        ({str(number): True for number in range(65)}, "too many values"),
    ],
)
def test_odd_options_are_named(values: dict[str, object], message: str) -> None:
    info = WireFormatInfo(MAGIC, 12, encode_map("options", values))
    with pytest.raises(DecodeError, match=message):
        options_of(info)


def test_the_size_of_the_cache_is_announced_as_an_int() -> None:
    """Java reads it as an Integer: a client that gets a long has no cache, and fails at the first command."""
    assert b"\x00\x09CacheSize\x05\x00\x00\x04\x00" in (info_of(WireFormatOptions()).marshalled_properties or b"")
