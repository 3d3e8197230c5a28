"""The scale-downs of a simulation: all messages are moved, in their order. The record knows which order cannot be kept.

At the target, the moved messages are behind those that arrived there directly. Logs of the target may therefore show
any producer out of order. Messages that waited at the source for other nodes are sent over the target. Messages that
the source's own producers send after its return may overtake them. All other messages keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from atalanta.cluster.scale_down import DONE, ScaleDown
from atalanta.kernel.queue import READY, everything
from atalanta.node import Node
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.clients.client import SimClient
from atalanta.sim.host import Host

# Why messages may stay. The last one: the node that decides for groups is the one that leaves, or away.
REASONS: Final = (
    "not done within",
    "leaves itself",
    "the node with the LOCAL grouping-handler did not answer",
)


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


def order_at(node: Node) -> dict[str, dict[str, int]]:
    """Returns the position of each key by queue. Scheduled messages have none."""
    found: dict[str, dict[str, int]] = {}
    for queue in node.broker.queues.values():
        if queue.name.startswith("$") or not queue.durable:
            continue
        keys: dict[str, int] = {}
        for reference in everything(queue):
            key = reference.message.properties.get("key")
            if isinstance(key, str) and reference.message.scheduled_ms <= 0:
                keys[key] = len(keys)
        found[queue.name] = keys
    return found


def check_order(host: Host, source: str, order: dict[str, dict[str, int]]) -> None:
    """Raises Violation if messages that came from `source` in that order have another order at their target."""
    if host.node is None:
        return
    for name, positions in order.items():
        queue = host.node.broker.queues.get(name)
        if queue is None or not positions:
            continue
        last = -1
        last_key = ""
        for reference in everything(queue):
            key = str(reference.message.properties.get("key"))
            position = positions.get(key, -1)
            if position < 0 or reference.state != READY:
                continue
            if position < last:
                raise Violation(
                    f"{key} stands behind {last_key} in {name} of {host.name}, but stood before it at"
                    f" {source}, which has left",
                    key,
                )
            last = position
            last_key = key


def check_end(host: Host, part: ScaleDown) -> None:
    """Raises Violation if a node that had a target keeps messages without a reason, or without reporting them."""
    assert host.node is not None
    broker = host.node.broker
    left = [
        f"{queue.name}={queue.message_count + queue.pending}"
        for queue in broker.queues.values()
        if not queue.spec.temporary and queue.message_count + queue.pending > 0
    ]
    if broker.branches.prepared:
        left.append(f"{broker.branches.prepared} branches in doubt")
    if part.phase == DONE and left:
        raise Violation(f"{host.name} says that it has given all away, but has {left}")
    if part.phase != DONE and part.frozen and not any(reason in part.why for reason in REASONS):
        raise Violation(f"{host.name} leaves with {left}: {part.why}")
