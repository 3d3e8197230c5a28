"""Who left, to whom, and when; and what order a departure cannot keep.

What a node that leaves gives away stands at its target behind what came there by itself: logs of the target may show
any producer out of order. What waited at that node for others takes the way over the target, and may be overtaken by
what its own producers send when it is back. Everything else keeps its order.
"""

from __future__ import annotations

from collections.abc import Iterable

from atalanta.sim.checks.departure import check_order, order_at
from atalanta.sim.clients.client import SimClient
from atalanta.sim.host import Host


class Handover:
    """One node gave what it had to another; `ended` is the last time it was seen at it.

    `order` of what the source had when this was seen first; empty when that order holds no more.
    """

    def __init__(self, source: str, target: str, now: int) -> None:
        self.source = source
        self.target = target
        self.began = now
        self.ended = now
        self.order: dict[str, dict[str, int]] = {}


class Departed:
    """`targets` and `sources` of all departures so far, by name of the host.

    `in_order`: messages go nowhere else than with a departure, so that they stay in their order at its target.
    """

    in_order: bool = False

    def __init__(self) -> None:
        self.hosts: list[Host] = []
        self.homes: dict[str, str] = {}
        self.targets: dict[str, bool] = {}
        self.sources: dict[str, bool] = {}
        self.handovers: list[Handover] = []

    def watch(self, hosts: list[Host], senders: Iterable[SimClient]) -> None:
        """Nodes that may leave, and who sends to them."""
        self.hosts = hosts
        for host in hosts:
            host.ending = self.look  # a node may have left between two looks, and be gone at the second
        self.homes = {sender.name: sender.target for sender in senders}

    def look(self) -> None:
        """Records the departures that are under way."""
        for host in self.hosts:
            part = None if host.node is None else host.node.scale_down
            if part is not None and part.frozen and part.target is not None:
                target = part.target.node_id.replace("node-", "n")
                self.sources[host.name] = True
                self.targets[target] = True
                self._under_way(host, target)

    def _under_way(self, host: Host, target: str) -> None:
        now = host.world.now
        for known in reversed(self.handovers):
            if known.source == host.name:
                if known.target == target and not any(known.ended < at for at in host.stops):
                    known.ended = now
                    return
                break
        for known in self.handovers:
            if host.name in (known.source, known.target):
                known.order = {}
        handover = Handover(host.name, target, now)
        if self.in_order and host.node is not None:
            handover.order = order_at(host.node)
        self.handovers.append(handover)

    def check_orders(self) -> None:
        for handover in self.handovers:
            for host in self.hosts:
                if handover.order and host.name == handover.target:
                    check_order(host, handover.source, handover.order)

    def under_way(self) -> bool:
        """Is a node that is up giving away what it has? Until the target has answered a message is at both."""
        for host in self.hosts:
            part = None if host.node is None else host.node.scale_down
            if part is not None and part.frozen:
                return True
        return False

    def moved_from(self, node: str) -> bool:
        """Has that node ever given what it had to another?"""
        self.look()
        return node in self.sources

    def excuses(self, node: str, sender: str) -> bool:
        """May that node show messages of that sender out of order?"""
        self.look()
        return node in self.targets or self.homes.get(sender) in self.sources

    def origins(self, node: str, since: int) -> dict[str, bool]:
        """Where a message that is at `node` may have been, if it was sent at `since` (ns)."""
        self.look()
        found = {node: True}
        for handover in reversed(self.handovers):
            if handover.target in found and handover.ended >= since:
                found[handover.source] = True
        return found
