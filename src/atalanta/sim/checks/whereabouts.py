"""Where every message is at one moment: in one of the queues of a routing name, over all nodes."""

from __future__ import annotations

from atalanta.kernel.queue.paging.iteration import everything
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.host import Host


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
