"""The output of an OpenWire connection, and what holds its input or its deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.wire.client_output import ClientOutput
from atalanta.wire.openwire.commands.connections import ConnectionError
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.encoding.structure import EncodeError
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import WireFormatOptions
from atalanta.wire.openwire.server.sessions.errors import throwable_of

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.kernel.ports import JournalPort
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.heart_beats import Beat
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.encoding.structure import Command
    from atalanta.wire.openwire.encoding.throwable import Throwable
    from atalanta.wire.server import WireServer

# Advisories that wait for a client that does not read.
ADVISORIES_MAX: Final = 10_000


@mypyc_attr(allow_interpreted_subclasses=True)
class OpenWireOutput(ClientOutput):
    """An OpenWire connection as its session uses it.

    No command is processed once `end_reason` is set. `came_back`: the client has had another connection before, and may
    still acknowledge what it got there.
    """

    def __init__(
        self,
        host: WireServer,
        conn: int,
        remote: str,
        now: int,
        acceptor: AcceptorConfig | None,
        options: WireFormatOptions,
    ) -> None:
        super().__init__(host, conn, remote, now, acceptor)
        self.decoder = FrameDecoder(options)
        self.end_reason: str = ""
        self.came_back: bool = False
        self.keep_alive: Beat | None = None
        self.advisories_unread: int = 0

    def holds_deliveries(self) -> bool:
        return self.end_reason != "" or self.current_redirect() is not None

    def temporary_taken(self, now: int, destination: ActiveMQDestination) -> None:
        """Handles that the creator of a temporary destination, which a bridge has brought, has come here."""
        return None

    def sets_aside(self) -> bool:
        """Returns whether a message for a full address may wait while other commands go on."""
        return True

    def refuse(self, command_id: int, wanted: bool, error: BrokerError) -> None:
        """Refuses a command, by an answer if its client wants one."""
        raise NotImplementedError

    # -- redirects ------------------------------------------------------------------------------
    def journal(self) -> JournalPort:
        """Returns the journal of the node."""
        return self.host.broker.journal

    def is_busy(self) -> bool:
        """Returns True while answers or commands of the client are on their way."""
        raise NotImplementedError

    def uri_of_node(self, node_id: str) -> str | None:
        """Returns the URI of a member or neighbour for this client; None if it has none, or may not go there."""
        raise NotImplementedError

    def send_away(self, now: int, node_id: str, uri: str) -> None:
        """Sends the client to another node."""
        raise NotImplementedError

    def end_redirect(self, now: int) -> None:
        """Gives the redirect up: deliveries go on."""
        raise NotImplementedError

    # -- commands out ---------------------------------------------------------------------------
    def send(self, command: Command) -> None:
        """Sends a command. EncodeError: nothing was sent. `answer` and `tell` handle that; a delivery is set aside."""
        if not self.gone:
            self.decoder.format.write(command, self.out)
            self.flush_later()

    def answer(self, command: Command) -> None:
        """Sends an answer to a command of the client, or what it has asked for; without it the connection ends."""
        try:
            self.send(command)
        except EncodeError as error:
            self.end_unanswered(command.__class__.__name__, error)

    def tell(self, command: Command, shown: str = "") -> None:
        """Sends what others have caused. It is left out if it cannot be encoded for this client.

        The report names it `shown`, or by its class.
        """
        try:
            self.send(command)
        except EncodeError as error:
            self.leave_out(shown or command.__class__.__name__, error)

    def _write(self, frame: bytes) -> None:
        self.flush_later()
        self.out.write(frame)

    def send_delivery(self, command: Command) -> None:
        """Sends a message, and stops the deliveries of this batch of inputs if they are enough."""
        self.send(command)
        self.delivered()

    def send_advisory(self, command: Command, shown: str) -> None:
        """Sends an advisory: it is stored nowhere. A client that reads none of them is closed."""
        if self.blocked:
            self.advisories_unread += 1
            if self.advisories_unread > ADVISORIES_MAX:
                self.end(f"{ADVISORIES_MAX} advisories wait for the client, which does not read")
                return
        self.tell(command, shown)

    def respond(self, command_id: int) -> None:
        """Confirms the command of that number."""
        self.answer(Response(command_id))

    def respond_error(self, command_id: int, exception: Throwable) -> None:
        """Answers a command that failed."""
        self.answer(ExceptionResponse(exception, command_id))

    def report(self, error: BrokerError) -> None:
        """Reports an error of a command whose client wants no answer. The connection goes on."""
        self.answer(ConnectionError(throwable_of(error)))

    def write(self, now: int, data: bytes) -> None:
        super().write(now, data)
        if self.keep_alive is not None:
            self.keep_alive.last_written = now

    # -- the end --------------------------------------------------------------------------------
    def end(self, why: str) -> None:
        """Processes no further command, and closes the connection after this batch of inputs."""
        if not self.end_reason and not self.gone:
            self.end_reason = why
            self.show_blocked()
            self.host.closing.append((self.conn, why))

    # -- slow reader ----------------------------------------------------------------
    def on_blocked(self, now: int, blocked: bool) -> None:
        self.advisories_unread = 0
        super().on_blocked(now, blocked)
