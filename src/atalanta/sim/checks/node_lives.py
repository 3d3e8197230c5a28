"""The lives of one simulated node: none uses an id or number of another, and its clock goes on from the last one."""

from __future__ import annotations

from typing import Final

from atalanta.node import Node
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.world.machine_clock import DRIFT_PPM, MILLION

MESSAGE_ID: Final = "message id"
BINDING_ID: Final = "binding id"
MS: Final = 1_000_000


class NodeLives:
    """The record of one node, which may have several machines. A life is a number that no two lives of them share."""

    def __init__(self, name: str) -> None:
        self.name = name
        # By kind and life: the first one, and the one behind the last.
        self._ranges: dict[str, dict[int, tuple[int, int]]] = {MESSAGE_ID: {}, BINDING_ID: {}}
        self._numbers: dict[int, int] = {}  # of announcements: in which life
        self._numbers_before: dict[int, int] = {}  # the highest one when a life began
        # By life: the last instants of the clock of the node and of the world. A successor may have heard any last.
        self._shown: dict[int, tuple[int, int]] = {}

    def begin(self, life: int) -> None:
        """Records that a life begins. Its machine may stand still then, until others have followed."""
        self._numbers_before.setdefault(life, max(self._numbers, default=0))

    def note(self, life: int, node: Node) -> None:
        """Records what the node of that life has used until now. Raises Violation if another life has used it."""
        broker = node.broker
        bindings = broker.bindings
        before = self._numbers_before[life]
        if broker.reserved_ids.awaited_lsn > node.journal.durable:
            return  # nothing of it has left
        self._note(MESSAGE_ID, life, broker.store.next_message_id, broker.store.next_message_id)
        self._note(BINDING_ID, life, bindings.first_id, bindings.next_id)
        cluster = node.cluster
        if cluster is not None and cluster.local.event_id:  # else it has announced nothing
            number = broker.reserved_ids.announced
            if number <= before or self._numbers.get(number, life) != life:
                raise Violation(f"{self.name}: announcement {number} of life {life} is not above those before")
            self._numbers[number] = life

    def _note(self, kind: str, life: int, first: int, behind: int) -> None:
        ranges = self._ranges[kind]
        known = ranges.get(life)
        if known is not None:
            if known[1] == behind:
                return
            first = known[0]
        ranges[life] = (first, behind)
        for other, (begin, end) in ranges.items():
            if other != life and begin < behind and first < end:
                raise Violation(f"{self.name}: lives {other} and {life} have both used {kind} {max(begin, first)}")

    def show(self, life: int, now: int, world_now: int) -> None:
        """Records an instant of the clock of a node."""
        self._shown[life] = now, world_now

    def check_begin(self, life: int, now: int, wall: int, world_now: int, unheard_ns: int) -> None:
        """Raises Violation if the clock of a new life is not at its machine's wall clock, nor where the last was.

        That one has run on meanwhile, at the rate of any machine. For `unheard_ns` it was not heard of, and its rate
        may have been another one.
        """
        highest = wall
        for shown, at in self._shown.values():
            highest = max(highest, shown + (world_now - at) * (MILLION + DRIFT_PPM) // MILLION)
        if now > highest + MS + unheard_ns * 2 * DRIFT_PPM // (MILLION - DRIFT_PPM):
            ahead_ms = (now - highest) // MS
            raise Violation(f"the clock of {self.name} begins {ahead_ms} ms ahead of what anybody has shown")
        if now < wall:
            raise Violation(f"the clock of {self.name} begins {(wall - now) // MS} ms behind that of its machine")
        self._shown[life] = now, world_now
