"""Dead letters: messages that cannot be delivered or routed go to the dead-letter address of their address."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.publish.dead_letter_resources import DeadLetterResources
    from atalanta.kernel.publish.message_mover import MessageMover
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.settings.repository import AddressSettingsRepository


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
        queue = reference.queue
        queue.count_killed(1)
        settings = self.settings.match(queue.spec.address)
        target = settings.dead_letter_address
        message_id = reference.message.id
        self.mover.trace.event(
            "message_dead_lettered",
            {"queue": queue.name, "message": message_id, "to": target or "nowhere (dropped)"},
        )
        self.resources.for_dead_letter(now, settings, reference.message)
        self.mover.move_to_address(now, reference, target, why, False, cause)
