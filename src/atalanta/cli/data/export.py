"""An export of any form, as an import reads it: definitions of addresses and queues, and messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final, Protocol

from atalanta.client import Message, QueueKind
from atalanta.client.message import ANYCAST

IDENTITY_BYTES: Final = 24


@dataclass
class ExportedAddress:
    """An address with its routing types, "anycast" and "multicast"."""

    routing_types: list[str]
    auto_created: bool = False


@dataclass
class Binding:
    """A queue; `routing` is "anycast" or "multicast". `kind` None: the form of the export has no further attributes."""

    name: str
    address: str
    routing: str = ANYCAST
    filter: str | None = None
    max_consumers: int = -1
    purge_on_no_consumers: bool = False
    auto_created: bool = False
    kind: QueueKind | None = None


class ExportedMessage(Protocol):
    """A message of an export, in one or more queues."""

    queues: list[str]

    @property
    def body(self) -> BinaryIO | None:
        """The file with its body, to be closed."""

    @property
    def address(self) -> str | None:
        """The address that the message was sent to; None: the export does not say, and it is that of the queue."""

    @property
    def routing(self) -> str | None:
        """The routing type that its sender gave it."""

    def message(self) -> Message:
        """Returns the message to send."""

    def identity(self, queue: str) -> bytes:
        """Returns an id of the message in that queue, which no other message of any export has (IDENTITY_BYTES)."""


class Export(Protocol):
    """An export. Definitions of addresses and queues are complete when the messages are; most are there before."""

    addresses: dict[str, ExportedAddress]
    bindings: dict[str, Binding]

    def messages(self) -> Iterator[ExportedMessage]:
        """Iterates over the messages in the order of the file. Refused (65) names the line."""


@dataclass
class ExportSurvey:
    """The whole export, read once before anything is sent: what is in it, and how much for each queue."""

    export: Export
    messages: dict[str, int] = field(default_factory=dict)  # by queue
    by_address: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.messages.values())

    def read(self) -> None:
        """Reads it. Refused (65) names the line of a fault: nothing is sent of a file that is not whole."""
        for exported in self.export.messages():
            if exported.body is not None:
                exported.body.close()
            for queue in exported.queues:
                self.messages[queue] = self.messages.get(queue, 0) + 1
                address = exported.address or self.binding(queue).address
                self.by_address[address] = self.by_address.get(address, 0) + 1

    def binding(self, queue: str) -> Binding:
        """Returns the definition of a queue; one that the export does not define is anycast, as its address."""
        found = self.export.bindings.get(queue)
        if found is None:
            found = self.export.bindings[queue] = Binding(queue, queue)
        return found
