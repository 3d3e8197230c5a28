"""What comes over a link is remembered with its id there: until it is gone, over restarts, and wherever it lies."""

from __future__ import annotations

import pytest
from librt.strings import BytesWriter

from atalanta.kernel.absorbing import disclaim
from atalanta.kernel.arrival import (
    ARRIVAL_BYTES,
    LINKS_MAX,
    NO_LINK,
    OWN,
    PLACE,
    Arrivals,
    Placer,
    place_of,
)
from atalanta.kernel.buffer import DecodeError
from atalanta.kernel.duplicates import BRIDGE_DUPLICATE
from atalanta.kernel.message import ROUTE_TO, Message
from atalanta.kernel.message_record import decode_message_record, encode_message_record
from atalanta.kernel.paging_page import decode_block, write_entry
from atalanta.kernel.paging_view import everything
from atalanta.kernel.queue import Queue
from atalanta.kernel.router import Route
from tests.kernel.bench import Bench

LINK = b"0123456789abcdef"
OTHER = b"fedcba9876543210"


def forward_id(link: bytes, number: int) -> bytes:
    return link + number.to_bytes(8, "big", signed=True)


def arrive(
    bench: Bench,
    number: int,
    queues: str = "here",
    link: bytes = LINK,
    place: int = 0,
    durable: bool = True,
    size: int = 0,
) -> Message:
    """Over a link, under that id, for `queues`; late if it has a `place`."""
    body = (place or number).to_bytes(4, "big") + bytes(size)
    names = queues.split()
    message = bench.message(names[0], body, durable)
    ids = [bench.broker.queues[name].id.to_bytes(8, "big") for name in names]
    message.put_property(ROUTE_TO, b"".join(ids))
    message.put_property(BRIDGE_DUPLICATE, forward_id(link, number))
    if place:
        message.put_property(PLACE, forward_id(link, place))
    bench.broker.publish(bench.now, message, None, 0)
    return message


def arrivals(bench: Bench, name: str = "here") -> list[tuple[bytes, int]]:
    """Link and id of what lies in the queue, in order."""
    found: list[tuple[bytes, int]] = []
    for reference in everything(bench.broker.queues[name]):
        encoded = bench.broker.arrivals.encoded(reference.message)
        found.append((encoded[:16], int.from_bytes(encoded[16:], "big", signed=True)))
    return found


def bench_of(*names: str, paging: bool = False) -> Bench:
    bench = Bench(paging=paging)
    for name in names or ("here",):
        bench.queue(name)
    return bench


def test_a_link_has_a_number_and_each_message_its_id_there() -> None:
    bench = bench_of()
    first, second = arrive(bench, 7), arrive(bench, 8)
    other = arrive(bench, 7, link=OTHER)
    assert (first.arrival, second.arrival, other.arrival) == (7, 8, 7)
    assert first.arrival_link == second.arrival_link > 0
    assert 0 < other.arrival_link != first.arrival_link
    assert place_of(first) == first.id
    bench.settle()
    assert arrivals(bench) == [(LINK, 7), (LINK, 8), (OTHER, 7)]


@pytest.mark.parametrize("raw", [b"", b"short", bytes(24), bytes(32), b"x" * 25])
def test_ids_of_other_lengths_and_of_nobody_say_nothing(raw: bytes) -> None:
    message = Message.create("a")
    Arrivals().note(message, raw)
    assert message.arrival_link == NO_LINK


def test_links_beyond_the_limit_are_not_told_apart() -> None:
    known = Arrivals()
    for number in range(1, LINKS_MAX + 1):
        assert known.number(number.to_bytes(16, "big")) == number
    assert known.number(LINK) == NO_LINK
    assert known.number((5).to_bytes(16, "big")) == 5


class Asked(Placer):
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.queue: Queue | None = None

    def routes(self, now: int, message: Message, routes: list[Route]) -> list[Route]:
        self.messages.append(message)
        return routes if self.queue is None else [Route(self.queue, b"")]


def test_one_that_is_late_has_the_arrival_of_its_time_and_routes_of_whoever_places_it() -> None:
    bench = bench_of("here", "waiting")
    asked = Asked()
    asked.queue = bench.broker.queues["waiting"]
    bench.broker.arrivals.placer = asked
    arrive(bench, 20)
    late = arrive(bench, 21, place=5)
    bench.settle()
    assert asked.messages == [late] and not late.has_property(PLACE)
    assert arrivals(bench) == [(LINK, 20)] and arrivals(bench, "waiting") == [(LINK, 5)]
    arrive(bench, 21, place=5)
    bench.settle()
    assert len(asked.messages) == 1 and len(arrivals(bench, "waiting")) == 1


def test_nobody_places_it_then_it_goes_to_the_end() -> None:
    bench = bench_of()
    for number in (20, 21):
        arrive(bench, number)
    arrive(bench, 22, place=5)
    bench.settle()
    assert arrivals(bench) == [(LINK, 20), (LINK, 21), (LINK, 5)]


@pytest.mark.parametrize("place", [b"", b"12345678", "text", 7, bytes(24)])
def test_a_place_that_is_none_is_taken_off_and_forgotten(place: bytes | str | int) -> None:
    bench = bench_of()
    asked = Asked()
    bench.broker.arrivals.placer = asked
    message = bench.message("here", b"1")
    message.put_property(ROUTE_TO, bench.broker.queues["here"].id.to_bytes(8, "big"))
    message.put_property(BRIDGE_DUPLICATE, forward_id(LINK, 3))
    message.put_property(PLACE, place)
    bench.broker.publish(bench.now, message, None, 0)
    assert asked.messages == [] and not message.has_property(PLACE)


def test_a_client_cannot_say_it() -> None:
    message = Message.create("a")
    message.put_property(PLACE, forward_id(LINK, 3))
    disclaim(message)
    assert not message.has_property(PLACE)


def test_a_copy_begins_anew() -> None:
    bench = bench_of()
    copy = arrive(bench, 3).copy(99)
    assert copy.arrival_link == NO_LINK and place_of(copy) == 99
    copy.arrival_link = OWN
    copy.arrival = 12
    assert place_of(copy) == 12


def test_a_record_with_an_arrival_of_another_length_is_damaged() -> None:
    bench = bench_of()
    message = arrive(bench, 7)
    record = encode_message_record(message, [], [], bench.broker.arrivals)
    at = record.index(LINK) - 1
    assert record[at] == ARRIVAL_BYTES
    stored = decode_message_record(record, Arrivals())
    assert (stored.message.arrival_link, stored.message.arrival) == (1, 7)
    with pytest.raises(DecodeError, match=r"message\.arrival"):
        decode_message_record(record[:at] + b"\x10" + record[at + 1 :], Arrivals())


def test_an_entry_of_a_page_with_other_flags_is_damaged() -> None:
    bench = bench_of()
    message = arrive(bench, 7)
    out = BytesWriter()
    write_entry(out, message.references[0], bench.broker.arrivals)
    block = out.getvalue()
    assert decode_block(block, Arrivals())[0].message.arrival == 7
    with pytest.raises(DecodeError, match=r"page\.flags"):
        decode_block(block[:8] + b"\x08" + block[9:], Arrivals())
