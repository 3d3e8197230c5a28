"""The preparation of a transaction's messages: duplicate check and routes of each, in steps if they are many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import Unfinished
from atalanta.kernel.publish.duplicate_detection import headers_of_links, put_back
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.publish.publisher import Publisher
    from atalanta.kernel.queue.delivery.plan import RoutingPlan
    from atalanta.kernel.routing.address import Address
    from atalanta.message.message import Message
    from atalanta.message.properties import PropertyValue

# A preparation that is outdated begins again; the last one so many does everything in one step.
TRIES_MAX: Final = 3


class Preparation:
    """The plans of a transaction's messages. Nothing is written, and no queue knows of them.

    With `strict` a message that no queue takes is an error, unless its address may be without subscribers. `work`
    counts messages, routes and KiB so far.
    """

    def __init__(self, publisher: Publisher, messages: list[Message], strict: bool) -> None:
        self.publisher = publisher
        self.messages = messages
        self.strict = strict
        self.plans: list[RoutingPlan] = []
        self.work: int = 0
        self.tries: int = 1
        self._next: int = 0
        self._headers: list[tuple[Message, str, PropertyValue]] = []
        self._names: list[str] = []  # addresses of this step's messages
        # Addresses of earlier steps' messages and of their copies: name -> what they were routed by. Empty in the first
        # step, in which nobody else can change anything.
        self._routed_by: dict[str, tuple[Address | None, list[int]]] = {}

    def in_steps(self) -> bool:
        """Returns True if the work may be done in several steps.

        With a grouping handler all is one step: its refusal of a group counts for one event-loop iteration.
        """
        return self.tries < TRIES_MAX and self.publisher.router.grouping is None

    def advance(self, now: int) -> None:
        """Prepares the next messages, and raises Unfinished if some are left.

        Raises BrokerError with DUPLICATE_ID for a repeat, and Undecided if the node of a group is not known yet; then
        the messages can be prepared again.
        """
        publisher = self.publisher
        messages = self.messages
        work_max = self.work + publisher.step_work_max
        in_steps = self.in_steps()
        count = publisher.few_max if in_steps else len(messages)
        while self._next < len(messages):
            if in_steps and self.work >= work_max:
                self._note_routing()
                raise Unfinished
            self._prepare(now, messages[self._next : self._next + count])
        if self.work > publisher.step_work_max:  # else the draft is done in this step, too, which is the first one
            self._note_routing()

    def _prepare(self, now: int, messages: list[Message]) -> None:
        names = [message.address for message in messages]
        headers = headers_of_links(messages)
        plans = self.publisher.prepare_all(now, messages, self.strict)
        self._next += len(messages)
        self._headers.extend(headers)
        self._names.extend(names)
        self.plans.extend(plans)
        for plan in plans:
            size = plan.message.size >> 10
            self.work += 1 + len(plan.routes) + size
            if plan.diverted is not None:
                for copy in plan.diverted:
                    self._names.append(copy.message.address)
                    self.work += 1 + len(copy.routes) + size

    def _note_routing(self) -> None:
        """Notes what the messages of this step were routed by, before others may change it."""
        registry = self.publisher.registry
        for address in self._names:
            name = split_fqqn(address)[0]
            if name not in self._routed_by:
                found = registry.routable(name)
                self._routed_by[name] = (found, [] if found is None else found.routing_state())
        self._names = []

    def is_current(self) -> bool:
        """Returns True if all messages would be prepared in the same way now: no binding has changed since the first
        step, no duplicate id has arrived elsewhere, and the transaction has got no further message."""
        if not self._routed_by:
            return True
        return self._next == len(self.messages) and self._same_routing() and not self._repeats()

    def _same_routing(self) -> bool:
        registry = self.publisher.registry
        for name, (address, state) in self._routed_by.items():
            found = registry.routable(name)
            if found is not address or (found is not None and found.routing_state() != state):
                return False
        return True

    def _repeats(self) -> bool:
        caches = self.publisher.duplicates.caches
        for plan in self.plans:
            for name, duplicate_id in plan.duplicates:
                if caches.cache_of(name).first_lsn_of(duplicate_id) >= 0:
                    return True
        return False

    def begin_again(self) -> None:
        """Forgets the plans, because they are outdated."""
        self.tries += 1
        put_back(self._headers)
        self._headers = []
        self._names = []
        self._routed_by = {}
        self._next = 0
        self.plans = []
        self.work = 0
