"""Requests on a session channel that the broker answers, and what becomes of them at a loss."""

from __future__ import annotations

from typing import Final

from atalanta.wire.core.client_reply import Reply

# What a lost connection means for a request that was not answered yet.
REPEAT: Final = 0  # send it again on the next connection
FORGET: Final = 1  # a loss did the same: it counts as done
FAIL: Final = 2  # the asker learns of the loss
ROLLED_BACK: Final = 3  # likewise: the transaction is gone, or its outcome unknown once sent

NO_CORRELATION: Final = -1
NOTHING_TOLERATED: Final = -1


class Request:
    """`frame` is complete: channel and correlation stay the same over reconnections.

    `tolerated`: a repeated request that is refused with this code had been carried out the first
    time (a queue that exists, a queue that is gone).
    """

    def __init__(
        self,
        frame: bytes,
        reply: Reply,
        at_loss: int,
        correlation: int = NO_CORRELATION,
        tolerated: int = NOTHING_TOLERATED,
    ) -> None:
        self.frame = frame
        self.reply = reply
        self.at_loss = at_loss
        self.correlation = correlation
        self.tolerated = tolerated
        self.sent: bool = False
        self.repeated: bool = False
        self.deadline: int = 0  # ns; 0 before it is sent
