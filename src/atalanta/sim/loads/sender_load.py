"""A subject with senders of a fixed number of messages. It ends when all of them are confirmed."""

from __future__ import annotations

from atalanta.sim.clients.senders import Sender
from atalanta.sim.subject import Subject


class SenderLoad(Subject):
    """The base class. Entries of `senders` other than Sender have an end of their own."""

    def repair(self) -> None:
        super().repair()
        for sender in self.senders:
            if isinstance(sender, Sender):
                sender.finish()

    def left(self) -> list[str]:
        return [
            f"{sender.name} waits for {list(sender.open)}"
            for sender in self.senders
            if isinstance(sender, Sender) and sender.open
        ]
