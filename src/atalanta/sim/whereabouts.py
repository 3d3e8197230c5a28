"""Where every message is at one moment: in one of the queues of a routing name, over all nodes, and in order."""

from __future__ import annotations

from atalanta.kernel.arrival import place_of
from atalanta.kernel.paging_view import everything
from atalanta.kernel.queue import Queue
from atalanta.kernel.reference import READY
from atalanta.sim.host import Host
from atalanta.sim.jobs import later_ms
from atalanta.sim.ledger import ORDERS, PARCELS, Violation


def check_one_queue(hosts: list[Host]) -> None:
    """Violation for a message that lies in queues of one name at two nodes, or in one of them twice.

    Queues for other nodes (store-and-forward) do not count: what they hold is there until its arrival is confirmed.
    """
    seen: dict[tuple[str, str], str] = {}
    for host in hosts:
        if host.node is None:
            continue
        for queue in host.node.broker.queues.values():
            if queue.name.startswith("$"):
                continue
            for reference in everything(queue):
                key = reference.message.properties.get("key")
                if not isinstance(key, str):
                    continue
                where = seen.get((queue.name, key))
                if where is not None:
                    raise Violation(
                        f"{key} lies in {queue.name} of {where} and in that of {host.name}", key
                    )
                seen[(queue.name, key)] = host.name


def check_arrivals(hosts: list[Host]) -> None:
    """Violation for an order or parcel that stands behind one which came to its node later, wherever it was meanwhile.

    Ids of a node ascend with arrival, and a copy of what was parked has the place of its first one. What came late over
    a link may stand in front of lower ones (`Reference.placed`). Scheduled ones arrive when their time comes.
    """
    for host in hosts:
        if host.node is not None:
            for name in (ORDERS, PARCELS):
                queue = host.node.broker.queues.get(name)
                if queue is not None:
                    _check_arrivals(host, queue)


def _check_arrivals(host: Host, queue: Queue) -> None:
    last = 0
    last_key = ""
    for reference in everything(queue):
        key = reference.message.properties.get("key")
        if not isinstance(key, str) or reference.state != READY:
            continue
        number = key.rpartition("/")[2]
        if not number.isdigit() or (queue.name == ORDERS and later_ms(int(number)) > 0):
            continue
        if reference.placed:
            continue
        if place_of(reference.message) < last:
            raise Violation(
                f"{key} stands behind {last_key} in {queue.name} of {host.name}, which came later",
                key,
            )
        last = int(place_of(reference.message))
        last_key = key
