"""The producers that an OpenWire client has registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.identifiers import ProducerId
    from atalanta.wire.openwire.commands.producers import ProducerInfo

PRODUCERS_MAX: Final = 100_000  # of one connection


class Producers:
    """The producers of a connection by id."""

    def __init__(self) -> None:
        self.by_id: dict[ProducerId, ProducerInfo] = {}
        self._last: ProducerId | None = None  # that a message came from

    def add(self, producer_id: ProducerId, info: ProducerInfo) -> None:
        """Registers a producer. BrokerError if there are too many."""
        if len(self.by_id) >= PRODUCERS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"a connection has at most {PRODUCERS_MAX} producers")
        self.by_id[producer_id] = info

    def remove(self, producer_id: ProducerId) -> None:
        """Removes a producer, if it is there."""
        self.by_id.pop(producer_id, None)
        self._last = None

    def has(self, producer_id: ProducerId) -> bool:
        """Returns True if the client has the producer. The one of the last message is found without a search."""
        if producer_id is self._last:
            return True
        if producer_id not in self.by_id:
            return False
        self._last = producer_id
        return True
