"""The schedules that clients of OpenWire and STOMP ask for (`AMQ_SCHEDULED_…`), and what an acceptor does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace


class Scheduler:
    """The scheduler of one acceptor. Without `on` messages are delivered at once, with the properties as they are.

    Repeated messages of clients are at least `period_ms_min` apart.
    """

    def __init__(self, acceptor: str, on: bool, period_ms_min: int) -> None:
        self.acceptor = acceptor
        self.on = on
        self.period_ms_min = period_ms_min
        self._told: bool = False

    def pass_over(self, trace: Trace, client: str) -> None:
        """Reports the first message that wants to be scheduled in vain."""
        if not self._told:
            self._told = True
            trace.event(
                "message_not_scheduled",
                {
                    "acceptor": self.acceptor,
                    "client": client,
                    "why": "schedulerSupport=false: messages with AMQ_SCHEDULED_… are delivered at once",
                    "what_to_do": 'write schedulerSupport=true (in activemq.xml: schedulerSupport="true" of <broker>)',
                },
            )
