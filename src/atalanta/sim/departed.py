"""What order a departure cannot keep.

What a node that leaves gives away stands at its target behind what came there by itself: logs of the target may show
any producer out of order. What waited at that node for others takes the way over the target, and may be overtaken by
what its own producers send when it is back. Everything else keeps its order.
"""

from __future__ import annotations

from collections.abc import Sequence

from atalanta.sim.clients import SimClient
from atalanta.sim.host import Host


class Departed:
    """`targets` and `sources` of all departures so far, by name of the host."""

    def __init__(self, hosts: list[Host], producers: Sequence[SimClient]) -> None:
        self.hosts = hosts
        self.homes = {producer.name: producer.target for producer in producers}
        self.targets: dict[str, bool] = {}
        self.sources: dict[str, bool] = {}

    def look(self) -> None:
        """While a departure is under way; its target may change."""
        for host in self.hosts:
            part = None if host.node is None else host.node.scale_down
            if part is not None and part.frozen and part.target is not None:
                self.sources[host.name] = True
                self.targets[part.target.node_id.replace("node-", "n")] = True

    def under_way(self) -> bool:
        """Is a node that is up giving away what it has? Until the target has answered a message is at both."""
        for host in self.hosts:
            part = None if host.node is None else host.node.scale_down
            if part is not None and part.frozen:
                return True
        return False

    def excuses(self, node: str, producer: str) -> bool:
        """May the log of that node show messages of that producer out of order?"""
        self.look()
        return node in self.targets or self.homes.get(producer) in self.sources
