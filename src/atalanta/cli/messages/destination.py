"""Destinations in the form of Artemis' tools: queue://orders, topic://news, fqqn://address::queue, or a plain name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.cli.output.outcome import USAGE, Refused
from atalanta.client.message import ANYCAST, MULTICAST

SCHEMES: Final[dict[str, str | None]] = {
    "queue://": ANYCAST,
    "topic://": MULTICAST,
    "fqqn://": None,
}


@dataclass(frozen=True)
class Destination:
    """A destination. `routing` is None for a plain name: the address on the broker decides, else it becomes a
    queue."""

    name: str
    routing: str | None

    @property
    def is_topic(self) -> bool:
        """Returns whether messages go to all subscribers; False for a queue of an address (`address::queue`)."""
        return self.routing == MULTICAST and "::" not in self.name


def parse_destination(text: str) -> Destination:
    """Parses a destination. Refused (2) for an empty or unknown one."""
    for scheme, routing in SCHEMES.items():
        if text.startswith(scheme):
            return _named(text, text.removeprefix(scheme), routing)
    if "://" in text:
        known = ", ".join(SCHEMES)
        raise Refused(
            f"destination {text}: begins with none of {known}, and is not a plain name", USAGE
        )
    return _named(text, text, None)


def _named(text: str, name: str, routing: str | None) -> Destination:
    address, separator, queue = name.partition("::")
    if not address or (separator and not queue):
        raise Refused(f"destination {text!r}: there is no name in it", USAGE)
    return Destination(name, routing)
