"""What the client's engine tells its shell, besides the replies the shell waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.wire.core.client.session import ClientSession


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientEvents:
    """Override what is of interest; nothing here may raise."""

    def ready(self) -> None:
        """Every session exists again (or for the first time) after `start`."""
        return None

    def broken(self, why: str) -> None:
        """This connection is of no more use: close it, then call `lost`."""
        return None

    def disconnected(
        self, reason: int, target_node_id: str | None, target: TransportConfiguration | None
    ) -> None:
        """DISCONNECT: the broker goes, and perhaps says where to go instead. `broken` follows."""
        return None

    def topology_changed(self) -> None:
        """ClientConnection.topology has changed."""
        return None

    def packet(self, channel: int, packet: Packet) -> bool:
        """A packet below the sessions' channels the engine has no use for itself; True: taken."""
        return False

    def session_error(self, session: ClientSession, error: ClientError) -> None:
        """The broker reported an error nobody had asked a question for."""
        return None

    def want_flush(self) -> None:
        """Call `flush` at the end of this turn."""
        return None
