"""A large message from a client: its pieces go to a file, and the message is published when the file is safe.

While the disk is slow, or syncs the file of a complete message, the connection's input is held. This bounds the
memory and keeps the order of the client's packets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.memory.large_body import LargeBody, LargeWriter
from atalanta.message.codec import decode_header
from atalanta.message.encoding.buffer import Reader
from atalanta.message.message import LARGE_SIZE, Message
from atalanta.wire.core.packet_types import SESS_SEND_CONTINUATION, packet_name

if TYPE_CHECKING:
    from atalanta.wire.core.server.session import CoreSession

# A management request has no file: the limit of its bytes in memory.
REQUEST_BYTES_MAX: Final = 1 << 20


class LargeReceiver(LargeWriter):
    """The receiver of one message: SESS_SEND_LARGE has the header, continuations the body. `complete` after the last
    one.
    """

    def __init__(self, session: CoreSession, reader: Reader) -> None:
        self.session = session
        self.message: Message = decode_header(reader)
        session.complete_address(self.message)
        # Only clusters with a real Artemis need it: a node starts without.
        from atalanta.wire.amqp.large_embedded_message import pieces_of

        self.embedded = pieces_of(self.message, session.broker.trace)
        self.body: LargeBody | None = None
        self.error: BrokerError | None = None
        self.request: list[bytes] | None = None
        self.request_bytes: int = 0
        self.kept: int = 0  # bytes of the body in memory
        self.body_size: int = -1  # of the whole body, as the last piece says
        self.complete: bool = False
        self.holding: bool = False
        self.requires_response: bool = False
        self.correlation: int = 0
        self.sender_id: int = -1
        broker = session.broker
        if broker.session_services.request_handler(self.message.address) is not None:
            self.request = []
            return
        try:
            session.session.check("send", self.message.address)
            broker.command.begin_change()
            self.body = broker.large.create(broker.store.take_message_id(), self.message.durable, self)
        except BrokerError as error:
            self.error = error

    def add(self, piece: bytes) -> None:
        """Takes one more piece of the body."""
        large = self.session.broker.large
        if self.request is not None:
            self.request_bytes += len(piece)
            if self.request_bytes <= REQUEST_BYTES_MAX:
                self.request.append(piece)
                self._keep(len(piece))
            else:
                self.request.clear()
                self._keep(-self.kept)
                self.error = BrokerError(
                    ILLEGAL_STATE, f"management request is larger than {REQUEST_BYTES_MAX} bytes"
                )
        elif self.body is not None and self.error is None:
            if self.embedded is not None:
                size = len(piece)
                piece = self.embedded.add(piece)
                self._keep(max(size - len(piece), -self.kept))
            session = self.session
            broker = session.broker
            if broker.memory.refusing:
                peer = session.session.identity.cluster
                try:
                    broker.session_services.full_addresses.check_piece(
                        self.message.address, len(piece), peer, session
                    )
                except BrokerError as error:
                    self.refuse(error)
                    return
            large.append(self.body, piece)
            if large.too_much(self.body):
                self._hold()

    def refuse(self, error: BrokerError) -> None:
        """Drops the body; the message is refused at its end."""
        self.error = error
        self.abort()

    def finish(
        self, now: int, body_size: int, requires_response: bool, correlation: int, sender_id: int
    ) -> None:
        """Takes the end of the message: it is published now, or when the file is synced. `body_size` -1: not named."""
        self.complete = True
        if self.embedded is None:
            self.body_size = body_size
        self.requires_response = requires_response
        self.correlation = correlation
        self.sender_id = sender_id
        body = self.body
        if body is not None and self.error is None and self.embedded is not None:
            self.message, rest = self.embedded.finish(now)
            self.session.broker.large.append(body, rest)
        if body is not None and self.error is None:
            broker = self.session.broker
            if self.message.durable or broker.log_views.any_leased():  # it may reach a leased queue, which keeps it
                broker.large.sync(body)
                self._hold()
                return
        self._publish(now)

    # -- from the file --------------------------------------------------------------------------
    def written(self, now: int) -> None:
        if self.holding and not self.complete and self.body is not None:
            if not self.session.broker.large.too_much(self.body):
                self._go_on()

    def synced(self, now: int) -> None:
        if self.complete:
            self._publish_later(now)

    def failed(self, now: int, why: str) -> None:
        """Drops the body: its file takes room that others may need. The message is refused at its end."""
        self.refuse(BrokerError(ILLEGAL_STATE, f"the large message cannot be stored: {why}"))
        if self.complete:
            self._publish_later(now)

    # -- the end --------------------------------------------------------------------------------
    def _publish_later(self, now: int) -> None:
        """Publishes the message outside an input of its connection, as an input would: a mistake of ours costs that one
        only."""
        session = self.session
        command = session.broker.command
        before = command.enter()
        try:
            command.begin()
            self._publish(now)
        except Exception as error:
            if command.changing:
                raise
            session.connection.hold_input()  # what follows must not be processed without it
            session.connection.end_unanswered(packet_name(SESS_SEND_CONTINUATION), error)
        command.leave(before)

    def _publish(self, now: int) -> None:
        """Publishes or refuses the message, and releases the body in any case."""
        session = self.session
        session.large = None
        try:
            self._send(now)
        finally:
            self.abort()
        if session.confirmations.window_bytes != -1:
            session.confirm()

    def _send(self, now: int) -> None:
        session = self.session
        message = self.message
        body = self.body
        error = self.error
        if body is not None:
            body.writer = None
        if error is not None:
            session.refuse(error, self.correlation if self.requires_response else SILENT)
        else:
            if self.request is not None:
                message.body = b"".join(self.request)
            elif body is not None:
                message.large = body
                if self.body_size >= 0 or not message.has_property(LARGE_SIZE):
                    # The size that the sender names is that before a compression (ClientLargeMessageImpl.getBodySize).
                    message.properties.put(LARGE_SIZE, self.body_size if self.body_size >= 0 else body.size)
                body.in_transaction = not session.session.auto_commit_sends
            session.publish(
                now, message, self.requires_response, self.correlation, self.sender_id
            )

    def _keep(self, size: int) -> None:
        """Counts bytes that stay in memory."""
        self.kept += size
        self.session.connection.keep_large(size)

    def abort(self) -> None:
        """Releases the body: the sender needs it no more."""
        self._keep(-self.kept)
        body = self.body
        if body is not None:
            self.body = None
            body.writer = None
            self.session.broker.large.release(body)
        self._go_on()

    def moved(self) -> None:
        """Holds the input of the new connection after a reattach."""
        connection = self.session.connection
        connection.keep_large(self.kept)
        if self.holding:
            connection.hold_input()

    def _hold(self) -> None:
        if not self.holding:
            self.holding = True
            self.session.connection.hold_input()

    def _go_on(self) -> None:
        if self.holding:
            self.holding = False
            self.session.connection.release_input()
