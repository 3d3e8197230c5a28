"""A frame that must wait until the queue of a message group is decided (kernel/publish/grouping.py).

The frame is a send, or the commit of a transaction with such sends. The connection processes no input until then, as
a session of Artemis blocks. So each producer's order is kept, and nothing is confirmed too early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.publish.grouping import GroupWaiter, Undecided
from atalanta.wire.core.server import requests

if TYPE_CHECKING:
    from atalanta.message.message import Message
    from atalanta.wire.core.server.session import CoreSession


class GroupWait(GroupWaiter):
    """A waiting frame: `message` for a send, else the frame's type and body."""

    def __init__(
        self,
        session: CoreSession,
        message: Message | None,
        requires_response: bool,
        correlation: int,
        packet_type: int,
        body: bytes,
    ) -> None:
        super().__init__()
        self.session = session
        self.message = message
        self.requires_response = requires_response
        self.correlation = correlation
        self.packet_type = packet_type
        self.body = body
        self.waits: bool = False

    def begin(self) -> None:
        """Holds the connection's input, and the file of a large message."""
        self.session.connection.hold_input()
        message = self.message
        if message is not None and message.large is not None:
            self.session.broker.large.hold(message.large, 1)

    def ask(self, now: int, ids: list[str]) -> None:
        self.waits = True
        handler = self.session.broker.router.grouping
        assert handler is not None
        handler.wait(now, ids, self)

    def decided(self, now: int) -> None:
        """Processes the frame again; the session may have to wait again."""
        session = self.session
        self.waits = False
        if self.message is not None:
            session.publish(now, self.message, self.requires_response, self.correlation)
        else:
            requests.answer(session, now, self.packet_type, self.body)
        if not self.waits:
            self.end()
            if session.confirmations.window_bytes != -1:
                session.confirm()

    def end(self) -> None:
        """Releases the connection's input: the frame is processed, refused or given up."""
        session = self.session
        session.group_wait = None
        handler = session.broker.router.grouping
        if self.waits and handler is not None:
            handler.forget(self)
        message = self.message
        if message is not None and message.large is not None:
            session.broker.large.release(message.large)
        session.connection.release_input()


def wait_for_group(
    session: CoreSession,
    now: int,
    undecided: Undecided,
    message: Message | None,
    requires_response: bool,
    correlation: int,
    packet_type: int,
    body: bytes,
) -> None:
    """Holds the frame until the groups are decided."""
    wait = session.group_wait
    if wait is None:
        wait = GroupWait(session, message, requires_response, correlation, packet_type, body)
        session.group_wait = wait
        wait.begin()
    wait.ask(now, undecided.ids)
