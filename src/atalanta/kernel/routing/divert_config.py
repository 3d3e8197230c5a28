"""The configuration of a divert, from broker.xml or management."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.kernel.option import OptionGroup, option

STRIP: Final = -1  # the copy has no routing type
MULTICAST: Final = 0
ANYCAST: Final = 1
PASS: Final = 2  # the copy keeps the original's routing type
ROUTING_TYPES: Final = {"STRIP": STRIP, "MULTICAST": MULTICAST, "ANYCAST": ANYCAST, "PASS": PASS}

# The only transformer of Artemis that works without Java: it adds its properties as headers.
ADD_HEADERS: Final = "org.apache.activemq.artemis.core.server.transformer.AddHeadersTransformer"


@dataclass(eq=False, repr=False)
class DivertConfig(OptionGroup):
    """A `<divert>`; `forwarding_address` may name several addresses, separated by commas."""

    name: str = option("", "name", "unique in the broker", attribute=True)
    address: str = option("", "address", "whose messages are diverted")
    forwarding_address: str = option(
        "", "forwarding-address", "where copies go; several are separated by commas"
    )
    routing_type: int = option(
        STRIP, "routing-type", "routing type of the copies", choices=ROUTING_TYPES
    )
    exclusive: bool = option(
        False, "exclusive", "diverted messages do not reach the address itself"
    )
    routing_name: str | None = option(
        None, "routing-name", "of several that are not exclusive, diverts of one name take turns"
    )
    filter_text: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    marked_by: str = ""  # of a retroactive address: only messages with this property as true
