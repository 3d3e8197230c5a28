"""What a consumer of one queue gets in the order in which it was sent there, while parked messages come back to it."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.away import Away
from atalanta.cluster.cluster import Cluster
from atalanta.cluster.parked import sent_by_another
from atalanta.kernel.paging_view import everything
from atalanta.kernel.queue import Queue
from atalanta.kernel.reference import DELIVERING, READY, Reference
from atalanta.sim.host import Host
from atalanta.sim.ledger import Violation

HERE: Final = ""  # in place of a member's id: it waits in the queue itself


class ReturnOrder:
    """`promised`: key -> where it waits: HERE, or for the member that it was parked for as the consumer came.

    Those get to the consumer before anything younger of their sender. Not what is parked for a member whose time is
    not over yet: it comes to its place later, when younger ones may have been taken. Nor, from then on, what is still
    parked for a member that is back, or what finds no room to come into memory: only younger ones that go make it.
    """

    def __init__(self, host: Host, queue: str) -> None:
        self.host = host
        self.queue = queue
        self.active = False
        self.promised: dict[str, str] = {}
        self.away: dict[str, Away] = {}
        self.newest: dict[str, int] = {}  # by sender

    def begin(self, nothing: bool = False) -> None:
        """The consumer comes now; with `nothing` it is promised nothing."""
        self.promised = {}
        self.away = {}
        self.newest = {}
        cluster = self._cluster()
        self.active = cluster is not None and not nothing
        if cluster is None or nothing:
            return
        for member, away in cluster.parked.away.items():
            queue = self._parked(cluster, member)
            if not away.due or queue is None:
                continue
            self.away[member] = away
            through = cluster.parked.mark_of(member, queue).through
            for reference in everything(queue):
                certain = reference.sequence > through and not sent_by_another(reference.message)
                if reference.state == READY and certain:
                    self.promised[str(reference.message.properties.get("key"))] = member
        self._promise_here(cluster)

    def look(self) -> None:
        """Often, so that it shows what has come back by the time a member is back."""
        cluster = self._cluster()
        if cluster is None or not self.active:
            return
        for member, away in list(self.away.items()):
            queue = self._parked(cluster, member)
            broken = cluster.parked.away.get(member) is not away or away.look.without_room > 0
            if broken:
                del self.away[member]
                self._forget(member)
                continue
            parked = [] if queue is None else everything(queue)
            still = {str(each.message.properties.get("key")): True for each in parked}
            for key, where in self.promised.items():
                if where == member and key not in still:
                    self.promised[key] = HERE
        self._promise_here(cluster)

    def waiting(self, cluster: Cluster, name: str) -> list[tuple[Reference, str, str, int]]:
        """In the order in which the queue of that name has it: key, sender and number."""
        queue = cluster.broker.queues.get(name)
        found: list[tuple[Reference, str, str, int]] = []
        for reference in [] if queue is None else everything(queue):
            key = str(reference.message.properties.get("key"))
            sender, _, number = key.partition("/")
            found.append((reference, key, sender, int(number)))
        return found

    def _promise_here(self, cluster: Cluster) -> None:
        """What waits in the queue and has no younger one of its sender before it, or with the consumer."""
        waiting = self.waiting(cluster, self.queue)
        newest = dict(self.newest)
        for wanted in (DELIVERING, READY):
            for reference, key, sender, number in waiting:
                if reference.state == wanted and number > newest.get(sender, -1):
                    newest[sender] = number
                    if wanted == READY:
                        self.promised[key] = HERE

    def came(self, name: str, key: str) -> None:
        """Violation if the consumer of that name has had a younger one of the sender that had to wait for it."""
        self.look()
        sender, _, number = key.partition("/")
        newest = self.newest.get(sender, -1)
        if int(number) < newest and key in self.promised:
            raise Violation(
                f"{name} gets {key} after {sender}/{newest}, though it came when that was here, or to"
                " come back",
                key,
            )
        self.newest[sender] = max(int(number), newest)

    def _forget(self, member: str) -> None:
        self.promised = {key: where for key, where in self.promised.items() if where != member}

    def _cluster(self) -> Cluster | None:
        return None if self.host.node is None else self.host.node.cluster

    def _parked(self, cluster: Cluster, member: str) -> Queue | None:
        return cluster.broker.queues.get(cluster.forward_name(member))
