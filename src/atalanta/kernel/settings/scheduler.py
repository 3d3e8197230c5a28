"""What an acceptor does with the schedules that clients of OpenWire and STOMP ask for (`AMQ_SCHEDULED_…`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.message.repetition import PERIOD_MS_MIN

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.wire.core.config import AcceptorConfig


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


class Schedulers:
    """The schedulers of a node's acceptors, and the one for the bridges that it dials."""

    def __init__(self) -> None:
        self._by_acceptor: dict[str, Scheduler] = {}
        self.of_bridges: Scheduler = Scheduler("", True, PERIOD_MS_MIN)

    def follow(self, acceptors: list[AcceptorConfig]) -> None:
        """Makes bridges schedule as the acceptors do: not if all those for OpenWire and STOMP have it off."""
        serving = [each for each in acceptors if each.serves("OPENWIRE") or each.serves("STOMP")]
        if serving and not any(each.scheduler_support for each in serving):
            self.of_bridges = Scheduler(serving[0].name, False, PERIOD_MS_MIN)

    def of(self, acceptor: AcceptorConfig | None) -> Scheduler:
        """Returns the scheduler of an acceptor; None is one without parameters."""
        name = "" if acceptor is None else acceptor.name
        found = self._by_acceptor.get(name)
        if found is None:
            on = acceptor is None or acceptor.scheduler_support
            found = Scheduler(name, on, PERIOD_MS_MIN if acceptor is None else acceptor.scheduler_period_min_ms)
            self._by_acceptor[name] = found
        return found
