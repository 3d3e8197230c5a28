"""The check that each message is in one queue of a routing name only, over all nodes."""

from __future__ import annotations

from atalanta.kernel.queue import everything
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.host import Host


def check_one_queue(hosts: list[Host]) -> None:
    """Raises Violation for a message in queues of one name at two nodes, or in one of them twice.

    Store-and-forward queues do not count: they keep a message until its arrival is confirmed.
    """
    seen: dict[tuple[str, str], str] = {}
    for host in hosts:
        if host.node is None or not host.current():
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
