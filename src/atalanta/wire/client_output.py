"""The output of a client connection, for every protocol: the bytes of a batch of inputs, and what stops deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter
from mypy_extensions import mypyc_attr

from atalanta.wire.login import LoginConnection

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.server import WireServer

# Limit of deliveries in one batch of inputs; other messages stay in their queue.
DELIVERED_BYTES_MAX: Final = 1 << 20


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientOutput(LoginConnection):
    """A client connection whose `out` goes to the wire at the end of a batch of inputs.

    Deliveries stop while the peer reads too slowly (`blocked`), and for the rest of a batch that has enough (`full`).
    """

    def __init__(
        self, host: WireServer, conn: int, remote: str, now: int, acceptor: AcceptorConfig | None
    ) -> None:
        super().__init__(host, conn, remote, now, acceptor)
        self.out: BytesWriter = BytesWriter()
        self.dirty: bool = False  # a flush follows
        self.blocked: bool = False
        self.full: bool = False

    # -- the protocol's part --------------------------------------------------------------------
    def block_deliveries(self, blocked: bool) -> None:
        """Stops the deliveries of all sessions, or lets them go on."""
        raise NotImplementedError

    def holds_deliveries(self) -> bool:
        """Returns True while something else than the output stops them."""
        raise NotImplementedError

    def write(self, now: int, data: bytes) -> None:
        """Gives bytes to the wire."""
        self.host.wire.write(self.conn, data)

    # -- bytes out ------------------------------------------------------------------------------
    def flush_later(self) -> None:
        """Asks for a flush at the end of this batch of inputs."""
        if not self.dirty:
            self.dirty = True
            self.host.dirty.append(self.conn)

    def delivered(self) -> None:
        """Stops the deliveries of this batch of inputs if they are enough."""
        if len(self.out) > DELIVERED_BYTES_MAX:
            self.delivered_enough()

    def delivered_enough(self) -> None:
        """Stops the deliveries of this batch of inputs."""
        if not self.full:
            self.full = True
            self.show_blocked()

    def flush(self, now: int) -> None:
        self.write_out(now)

    def write_out(self, now: int) -> None:
        """Writes what is in `out`, also in the middle of a batch of inputs, and lets the deliveries go on."""
        self.dirty = False
        if len(self.out):
            data = self.out.getvalue()
            self.out.truncate(0)
            self.write(now, data)
        if self.full:
            self.full = False
            self.show_blocked()
            self.host.broker.wake(now)

    def write_long(self, now: int, data: bytes) -> None:
        """Gives many bytes to the wire, behind what is in `out`, without a copy of them."""
        if self.gone:  # what a session keeps is read from `out`
            self.out.write(data)
            return
        if len(self.out):
            self.write(now, self.out.getvalue())
            self.out.truncate(0)
        self.write(now, data)

    def left_out(self, queue: str, error: BrokerError, news: bool) -> None:
        """Reports a queue that matches the wildcards of a consumer, but cannot be consumed."""
        broker = self.host.broker
        broker.trace.count("wildcard_queues_left_out")
        if news:
            broker.trace.event("wildcard_queue_left_out", {"queue": queue, "why": error.text})

    # -- slow reader ----------------------------------------------------------------------------
    def show_blocked(self) -> None:
        """Stops the deliveries while anything is in their way."""
        if not self.gone:
            self.block_deliveries(self.blocked or self.full or self.holds_deliveries())

    def on_blocked(self, now: int, blocked: bool) -> None:
        """Stops deliveries until the peer has read the output; its input is still processed.

        Before login the connection is closed instead: no client needs so many answers before login.
        """
        self.blocked = blocked
        if blocked and not self.authenticated:
            self.host.close_unread(now, self)
        self.show_blocked()
