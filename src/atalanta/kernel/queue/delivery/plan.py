"""What is going to happen with one message, before anything of it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.routing.router import Route
    from atalanta.message.message import Message


class Plan:
    """Outcome of preparing a message: its routes and the duplicate ids it brings.

    `repeats_lsn` >= 0: the message is a repeat, and its answer waits for that lsn. `after_lsn`: a message that is not
    durable itself, but tells of something that must be durable before anybody hears of it.
    """

    def __init__(self, message: Message) -> None:
        self.message = message
        self.routes: list[Route] = []
        self.duplicates: list[tuple[str, bytes]] = []
        self.repeats_lsn: int = -1
        self.after_lsn: int = 0
        self.origin: Plan | None = None  # what it is a copy of: names the id that gets (origin_headers.py)
        self.acknowledged: list[Route] | None = None  # by a transaction in doubt: kernel/publish/scale_down_target.py
        self.diverted: list[Plan] | None = None  # copies that diverts make: written with the message
