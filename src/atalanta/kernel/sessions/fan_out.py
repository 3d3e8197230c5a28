"""The copies that senders cause in one turn: a message for a thousand subscriptions is as much work as a thousand.

A client sends hundreds of messages in one piece of input. When the copies of a turn are enough, the input of the sender
is held, and goes on in the next turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session_endpoint import SessionEndpoint

COPIES_A_TURN: Final = 10_000


class FanOut:
    """The count of the present turn. `waiting`: senders whose input is held until its end."""

    def __init__(self) -> None:
        self.copies: int = 0
        self.waiting: list[SessionEndpoint] = []

    def count(self, sender: SessionEndpoint, copies: int) -> None:
        """Counts the copies of one message; holds the sender's input if they are enough for this turn."""
        self.copies += copies
        if self.copies >= COPIES_A_TURN and sender not in self.waiting:
            sender.hold_input()
            self.waiting.append(sender)

    def let_go(self, sender: SessionEndpoint) -> None:
        """Releases the input of a sender that moves to another connection."""
        if sender in self.waiting:
            self.waiting.remove(sender)
            sender.release_input()

    def end_turn(self) -> bool:
        """Begins to count anew, and releases what is held; returns True if anything was."""
        self.copies = 0
        waiting = self.waiting
        self.waiting = []
        for sender in waiting:
            sender.release_input()
        return len(waiting) > 0
