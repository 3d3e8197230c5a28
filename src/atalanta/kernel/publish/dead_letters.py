"""Dead letters: messages that cannot be delivered or routed go to the dead-letter address of their address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.publish.message_mover import moved_copy
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.publish.dead_letter_resources import DeadLetterResources
    from atalanta.kernel.publish.message_mover import MessageMover
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.settings.repository import AddressSettingsRepository
    from atalanta.kernel.transactions.transaction import SessionTransaction

REFUSED: Final = "refused in a transaction"


class DeadLetters:
    """Moves messages to their dead-letter addresses."""

    def __init__(
        self,
        mover: MessageMover,
        resources: DeadLetterResources,
        settings: AddressSettingsRepository,
    ) -> None:
        self.mover = mover
        self.resources = resources
        self.settings = settings

    def move(
        self, now: int, reference: Reference, why: str = "too many delivery attempts", cause: str = ""
    ) -> None:
        """Moves the message to the dead-letter address, or drops it if there is none. Both are reported.

        `cause`: what the client gave as the reason.
        """
        target = self._target(now, reference)
        self.mover.move_to_address(now, reference, target, why, False, cause, self._lifetime_ms(reference))

    def move_with(self, now: int, reference: Reference, transaction: SessionTransaction) -> None:
        """Makes the move a part of a transaction that is about to commit: it sends the copy, and acknowledges."""
        target = self._target(now, reference)
        transaction.add_acknowledged(reference)
        if target is None:
            return
        if self.mover.addresses.routable(split_fqqn(target)[0]) is None:
            self.mover.diverts.report_lost(reference.message.id, reference.queue.name, target, REFUSED)
        else:
            transaction.add_send(moved_copy(reference, target, now, False, self._lifetime_ms(reference)))

    def _target(self, now: int, reference: Reference) -> str | None:
        """Counts and reports the dead letter; returns its address, whose queue exists then, or None."""
        queue = reference.queue
        queue.count_killed(1)
        settings = self.settings.match(queue.spec.address)
        target = self.resources.dead_letter_target(settings, reference)
        message_id = reference.message.id
        self.mover.trace.event(
            "message_dead_lettered",
            {"queue": queue.name, "message": message_id, "to": target or "nowhere (dropped)"},
        )
        if target is not None:
            self.resources.for_dead_letter(now, settings, reference.message)
        return target

    def _lifetime_ms(self, reference: Reference) -> int:
        """Returns the time after which a dead letter expires; -1: never."""
        return int(self.settings.match(reference.queue.spec.address).dead_letter_expiry_ms)
