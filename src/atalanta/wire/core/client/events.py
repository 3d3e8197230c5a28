"""The events of the client engine for its owner, besides the replies that the owner waits for."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.transport import TransportConfiguration


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientEvents:
    """The handler of events. Override the methods of interest; none may raise."""

    def ready(self) -> None:
        """The sessions exist (again) after `start`."""
        return None

    def broken(self, why: str) -> None:
        """The transport must be closed; call `lost` then."""
        return None

    def failed(self) -> None:
        """The connection has ended for ever, with BrokerConnection.failed."""
        return None

    def disconnected(
        self, reason: int, target_node_id: str | None, target: TransportConfiguration | None
    ) -> None:
        """The broker sent DISCONNECT, with another broker to connect to or without. `broken` follows."""
        return None

    def topology_changed(self) -> None:
        """BrokerConnection.topology has changed."""
        return None

    def packet(self, channel: int, packet: Packet) -> bool:
        """Returns True if it took a packet of a channel below the sessions' that the engine does not use."""
        return False

    def session_error(self, channel: int, error: ClientError) -> None:
        """The broker reported an error on a session's channel that answers no request."""
        return None

    def want_flush(self) -> None:
        """The owner must call `flush` at the end of this event-loop iteration."""
        return None
