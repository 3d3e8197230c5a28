"""The record of all scale-downs, and of the order that a scale-down cannot keep.

At the target, the moved messages are behind those that arrived there directly. Logs of the target may therefore show
any producer out of order. Messages that waited at the source for other nodes are sent over the target. Messages that
the source's own producers send after its return may overtake them. All other messages keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable

from atalanta.sim.checks.scale_down_check import check_order, order_at
from atalanta.sim.clients.client import SimClient
from atalanta.sim.host import Host


class SeenScaleDown:
    """A scale-down of `source` to `target`. `ended` is the last time when it was seen in progress.

    `order` is the order of the source's messages when the scale-down was first seen; empty once it is not valid any
    more.
    """

    def __init__(self, source: str, target: str, now: int) -> None:
        self.source = source
        self.target = target
        self.began = now
        self.ended = now
        self.order: dict[str, dict[str, int]] = {}


class ScaleDownRecord:
    """The scale-downs so far. `targets` and `sources` are by name of the host.

    `in_order` means that messages are moved by scale-downs only, so that they keep their order at the target.
    """

    in_order: bool = False

    def __init__(self) -> None:
        self.hosts: list[Host] = []
        self.homes: dict[str, str] = {}
        self.targets: dict[str, bool] = {}
        self.sources: dict[str, bool] = {}
        self.handovers: list[SeenScaleDown] = []

    def watch(self, hosts: list[Host], senders: Iterable[SimClient]) -> None:
        """Sets the nodes that may be scaled down, and their senders."""
        self.hosts = hosts
        for host in hosts:
            host.ending = self.look  # a node may scale down and end between two calls
        self.homes = {sender.name: sender.target for sender in senders}

    def look(self) -> None:
        """Records the scale-downs in progress."""
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
        handover = SeenScaleDown(host.name, target, now)
        if self.in_order and host.node is not None:
            handover.order = order_at(host.node)
        self.handovers.append(handover)

    def check_orders(self) -> None:
        for handover in self.handovers:
            for host in self.hosts:
                if handover.order and host.name == handover.target:
                    check_order(host, handover.source, handover.order)

    def under_way(self) -> bool:
        """Returns True during the scale-down of a running node. Until the target answers, a message is at both
        nodes."""
        for host in self.hosts:
            part = None if host.node is None else host.node.scale_down
            if part is not None and part.frozen:
                return True
        return False

    def moved_from(self, node: str) -> bool:
        """Returns True if that node was ever scaled down."""
        self.look()
        return node in self.sources

    def excuses(self, node: str, sender: str) -> bool:
        """Returns True if that node may show messages of that sender out of order."""
        self.look()
        return node in self.targets or self.homes.get(sender) in self.sources

    def origins(self, node: str, since: int) -> dict[str, bool]:
        """Returns the nodes where a message at `node` may have been, if it was sent at `since` (ns)."""
        self.look()
        found = {node: True}
        for handover in reversed(self.handovers):
            if handover.target in found and handover.ended >= since:
                found[handover.source] = True
        return found
