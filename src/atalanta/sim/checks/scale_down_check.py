"""The checks of a scale-down: all messages are moved, in their order."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.scale_down import DONE, ScaleDown
from atalanta.kernel.queue import READY, everything
from atalanta.node import Node
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.host import Host

# Why messages may stay. The last one: the node that decides for groups is the one that leaves, or away.
REASONS: Final = (
    "not done within",
    "leaves itself",
    "the node with the LOCAL grouping-handler did not answer",
)


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
