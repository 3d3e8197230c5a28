"""Which messages are in doubt: a bridge had sent them when it ended, or when its node did before that was on disk.

The other broker may have them, and they are again in the queue here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.sim.host import Host
from atalanta.sim.loads.networks.account import NetworksAccount
from atalanta.wire.openwire import DemandBridge, OpenWireProtocol, id_text

if TYPE_CHECKING:
    from atalanta.node import Node


class WatchedBridge:
    """A bridge of a node, and the ids of what it had under way at the end of the last turn."""

    def __init__(self, bridge: DemandBridge) -> None:
        self.bridge = bridge
        self.under_way: list[str] = []

    def look(self) -> list[str]:
        """Returns the ids that have been answered, or given up, since the last look."""
        found = [each.message_id for each in self.bridge.unanswered.values()]
        before = self.under_way
        self.under_way = [id_text(each) for each in found if each is not None]
        return [each for each in before if each not in self.under_way]


class NodeWatch:
    """The bridges of one node. `answered`: ids with the lsn of their acknowledgement here, which a crash may undo."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.bridges: list[WatchedBridge] = []
        self.answered: list[tuple[str, int]] = []
        self.ended = 0  # messages of bridges that have ended

    def look(self) -> list[str]:
        """Returns the ids of messages that bridges had under way when they ended, after a turn of the node."""
        for bridge in bridges_of(self.node):
            if all(each.bridge is not bridge for each in self.bridges):
                self.bridges.append(WatchedBridge(bridge))
        journal = self.node.journal
        self.answered = [each for each in self.answered if each[1] > journal.durable]
        doubtful: list[str] = []
        left: list[WatchedBridge] = []
        for each in self.bridges:
            if each.bridge.local.gone:
                doubtful += each.under_way
                self.ended += each.bridge.forwarded
            else:
                self.answered += [(key, journal.last) for key in each.look()]
                left.append(each)
        self.bridges = left
        return doubtful

    def all_keys(self) -> list[str]:
        """Returns everything that is in doubt if the node has ended."""
        return [key for each in self.bridges for key in each.under_way] + [key for key, _ in self.answered]

    def forwarded(self) -> int:
        return self.ended + sum(each.bridge.forwarded for each in self.bridges)


class BridgeWatch:
    """The nodes that run, by name: another machine, or the same after a restart, goes on with another node."""

    def __init__(self, account: NetworksAccount) -> None:
        self.account = account
        self.by_name: dict[str, NodeWatch] = {}
        self.ended = 0

    def forwarded(self) -> int:
        """Returns how many messages the bridges have sent, repeats too."""
        return self.ended + sum(each.forwarded() for each in self.by_name.values())

    def look(self, host: Host) -> None:
        """Notes what is under way after a turn of a node, and what is in doubt."""
        node = host.node
        if node is None:
            return
        name = node.config.broker.name
        watch = self.by_name.get(name)
        doubtful: list[str] = []
        if watch is None or watch.node is not node:
            if watch is not None:
                doubtful += watch.all_keys()
                self.ended += watch.forwarded()
            watch = NodeWatch(node)
            self.by_name[name] = watch
        for key in doubtful + watch.look():
            self.account.doubt(key, f"a bridge of {name}")


def bridges_of(node: Node) -> list[DemandBridge]:
    """Returns the bridges of a node that have demand."""
    found: dict[int, DemandBridge] = {}
    for protocol in node.host.protocols:
        if isinstance(protocol, OpenWireProtocol):
            shared = protocol.node_clients.bridges
            for ways in shared.demands.by_destination.values():
                for _, owner in ways.entries.values():
                    if isinstance(owner, DemandBridge):
                        found[id(owner)] = owner
    return list(found.values())
