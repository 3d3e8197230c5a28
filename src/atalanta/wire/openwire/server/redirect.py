"""The move of a connected failover client to another node (FailoverTransport of activemq-client 5.18 and 6.1).

Two ConnectionControl make the client go to one URI, whatever its `randomize` is: the first makes this URI the only one
of the list that brokers tell, the second makes it the only one of the client's own (ReconnectTo), and lets it
reconnect. With one command the client could begin between both. The target tells it of all brokers at its login there.

A client at a URI of its `priorityURIs`, or at the first one of its URL with `priorityBackup`, takes note, but stays.
The end of the connection makes it go. So does it for a client that does not obey (`reconnectSupported=false`); that one
goes where it wants to.

Behind the order nothing is executed that the client waits for: it repeats that at the target. What it does not wait for
is executed here, as it is never repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.connection import Redirect
from atalanta.wire.openwire.commands.connections import ConnectionControl

if TYPE_CHECKING:
    from atalanta.wire.core.transport import TransportConfiguration
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput

LINGER_NS: Final = 1_000_000_000


class OpenWireRedirect(Redirect):
    """The redirect of an OpenWire client to `uri`.

    `journal_mark`: the client's answers are written when the journal is durable so far.
    """

    def __init__(self, connection: OpenWireOutput, now: int, target_node: str, uri: str) -> None:
        super().__init__(connection, now, target_node)
        self.output = connection
        self.uri = uri
        self.linger_ns = LINGER_NS
        self.journal = connection.journal()
        self.journal_mark: int = self.journal.last

    def begin(self) -> None:
        self.output.show_blocked()

    def mark_received(self) -> None:
        """Records that commands of the client were processed up to now."""
        self.journal_mark = self.journal.last

    def answered(self, now: int) -> None:
        """Records that an answer is in the output, and that nothing follows it in this batch of inputs."""
        if self.on_answer is not None:
            self.on_answer(self, now)

    def cancel(self, now: int) -> None:
        self.output.end_redirect(now)

    def send(self, now: int, target: TransportConfiguration, others: list[tuple[str, int]]) -> None:
        self.sent_at = now
        self.on_answer = None
        self.output.send(ConnectionControl(connected_brokers=self.uri))
        self.output.send(ConnectionControl(connected_brokers=self.uri, reconnect_to=self.uri))
        self.output.sent_away(now, self.target_node)

    def is_sending(self) -> bool:
        return self.output.decoder.has_part()

    def unwritten(self) -> str | None:
        if self.journal.durable < self.journal_mark:
            return "waits for the disk"
        return "has bytes on their way" if self.output.is_busy() else None
