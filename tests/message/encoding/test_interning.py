"""Equal names of addresses are kept once for all messages; what peers send does not stay for ever."""

from __future__ import annotations

import gc
import sys
import tracemalloc

from atalanta.kernel.routing.address import Address
from atalanta.message.codec import decode_header, encode_header
from atalanta.message.encoding.buffer import Reader
from atalanta.message.message import Message


def decoded(name: str) -> Message:
    message = Message(1, b"")
    message.address = name
    return decode_header(Reader(encode_header(message)))


def test_very_long_names_are_not_kept() -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(100):
            Address(decoded(f"tests.names.long.{number}." + "x" * 100_000).address or "", True, False, True)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 1_000_000
    finally:
        tracemalloc.stop()


def test_names_that_came_once_are_not_kept() -> None:
    """sys.intern kept them in CPython 3.12.1, 110 bytes each for the life of the process."""
    many = 30_000
    for number in range(10_000):
        Address(decoded(f"tests.names.first.{number}").address or "", True, False, True)
    gc.collect()
    before = sys.getallocatedblocks()
    for number in range(many):
        Address(decoded(f"tests.names.once.{number}").address or "", True, False, True)
    gc.collect()
    assert sys.getallocatedblocks() - before < many // 10
