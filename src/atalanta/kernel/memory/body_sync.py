"""The sync of large bodies that became durable after their arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.memory.large_body import LargeWriter

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.memory.large_body import LargeBodies, LargeBody


class BodySync(LargeWriter):
    """The sync of complete bodies, one after another; then `reply.done(token)`.

    A sync that fails is in the log (`large_message_write_failed`), and the next body follows: the content is there, but
    a power failure may damage it.
    """

    def __init__(self, large: LargeBodies, bodies: list[LargeBody], reply: Reply, token: int) -> None:
        self.large = large
        self.bodies = bodies
        self.reply = reply
        self.token = token
        self.at: int = 0
        for body in bodies:
            large.borrow(body)

    def go_on(self) -> None:
        """Starts the sync of the next body that needs one."""
        while self.at < len(self.bodies):
            body = self.bodies[self.at]
            if not body.synced and not body.failed:
                self.large.sync_for(body, self)
                return
            self.large.release(body)
            self.at += 1
        self.reply.done(self.token)

    def synced(self, now: int) -> None:
        self.go_on()

    def failed(self, now: int, why: str) -> None:
        self.go_on()
