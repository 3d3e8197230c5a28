"""When a message came to the node that sent it here: for those that come late, and have their place among others.

What another node forwards has an id of its link (`_AMQ_BRIDGE_DUP`): 16 bytes of the link, 8 the id at the sender.
These ascend as the sender got its messages, so they tell the order of its producers as long as the message is here.
One that waited there for a member which is away, and was then given to this node, comes under a new id, behind what
the sender got after it: `_AMQ_ROUTE_TO_PLACE` says what its id of the link would have been in its time. Until it
leaves the sender again such a copy has the place of its first id there: its link is OWN.

Only members say it to each other: what a client says is taken away (absorbing.py). A real Artemis forgets it as it
forgets every name that begins with `_AMQ_ROUTE_TO` (Message.clearInternalProperties). Beyond Artemis, where such
messages wait for ever: docs/internals/decisions/0009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i64_be
from mypy_extensions import i32, i64, mypyc_attr

if TYPE_CHECKING:
    from atalanta.kernel.message import Message
    from atalanta.kernel.router import Route

PLACE: Final = "_AMQ_ROUTE_TO_PLACE"
LATE: Final = "late"  # the queue of what has come late, behind internal-naming-prefix (cluster/late.py)
LINK_BYTES: Final = 16
ARRIVAL_BYTES: Final = 24
NO_LINK: Final = 0
OWN: Final = -1  # `arrival` is an id of this node, which the message had before the one it has
OWN_BYTES: Final = bytes(LINK_BYTES)
# Links that are told apart: what comes over others has no arrival.
LINKS_MAX: Final = 1 << 16


def place_of(message: Message) -> i64:
    """What its place among the messages of this node goes by: they ascend as they came here."""
    if message.arrival_link == OWN:
        return message.arrival
    return message.id


@mypyc_attr(allow_interpreted_subclasses=True)
class Placer:
    """Where messages go that have come late. This base class leaves them their routes: to the end of their queues."""

    def routes(self, now: int, message: Message, routes: list[Route]) -> list[Route]:
        """Of a message with an arrival, whose bridge id is new here; it has no id of this node yet."""
        return routes


class Arrivals:
    """Numbers of links, in this life of the node: `links[number]` is 16 bytes. In records they stand in full."""

    def __init__(self) -> None:
        self.placer: Placer = Placer()
        self.numbers: dict[bytes, int] = {}
        self.links: list[bytes] = [b""]
        self._last: bytes = b""  # what comes is mostly of the same link as what came before
        self._last_number: i32 = NO_LINK

    def note(self, message: Message, forward_id: bytes) -> None:
        """The message came over a link, under that id. One of another length, as core bridges have, says nothing."""
        if len(forward_id) == ARRIVAL_BYTES:
            link = forward_id[:LINK_BYTES]
            if link != self._last:
                self._last = link
                self._last_number = self.number(link)
            message.arrival_link = self._last_number
            message.arrival = read_i64_be(forward_id, LINK_BYTES)

    def take_place(self, message: Message) -> bool:
        """Whether it has a place from before, which is its arrival from here on; the header goes."""
        place = message.property_value(PLACE)
        message.remove_property(PLACE)
        if not isinstance(place, bytes) or len(place) != ARRIVAL_BYTES:
            return False
        self.note(message, place)
        return message.arrival_link != NO_LINK

    def number(self, link: bytes) -> i32:
        """Above 0, or NO_LINK for what is no link's, or one too many."""
        known = self.numbers.get(link)
        if known is not None:
            return i32(known)
        number = len(self.links)
        if number > LINKS_MAX or link == OWN_BYTES:
            return NO_LINK
        self.links.append(link)
        self.numbers[link] = number
        return i32(number)

    def encoded(self, message: Message) -> bytes:
        """As it is kept: like an id of the link, of OWN with zeroes; empty without an arrival."""
        number = int(message.arrival_link)
        if number == NO_LINK:
            return b""
        link = OWN_BYTES if number == OWN else self.links[number]
        return link + int(message.arrival).to_bytes(8, "big", signed=True)

    def restore(self, message: Message, encoded: bytes) -> None:
        """What `encoded` gave, in this life of the node or an earlier one."""
        if len(encoded) == ARRIVAL_BYTES:
            link = encoded[:LINK_BYTES]
            message.arrival_link = OWN if link == OWN_BYTES else self.number(link)
            message.arrival = read_i64_be(encoded, LINK_BYTES)
