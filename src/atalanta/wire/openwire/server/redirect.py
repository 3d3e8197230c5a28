"""The move of a connected failover client to another node (FailoverTransport of activemq-client 5.18 and 6.1).

A client that is told other brokers with RebalanceConnection drops its connection and takes one of them, or of the URIs
of its own URL: the first one, or with `randomize` (the default) any. So the target is told in front, and under many
names that differ in a harmless option. Most probably the client takes one of them; if the target is away then, it still
finds another broker. A client that has taken another one is moved again, if it has to be. ReconnectTo would be
exact, but it replaces the URIs of the client's own URL: a client whose target dies at that moment would wait for it.

A client at a URI of its `priorityURIs`, or at the first one of its URL with `priorityBackup`, takes note, but stays.
The end of the connection makes it go. So does it for a client that has taken this node again.

Behind the order nothing is executed that the client waits for: it repeats that at the target. What it does not wait for
is executed here, as it is never repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.connection import Redirect

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
        self.output.send_away(now, self.target_node, self.uri)

    def is_sending(self) -> bool:
        return self.output.decoder.has_part()

    def unwritten(self) -> str | None:
        if self.journal.durable < self.journal_mark:
            return "waits for the disk"
        return "has bytes on their way" if self.output.is_busy() else None
