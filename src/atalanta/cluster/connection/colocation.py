"""The part of a colocated primary: it asks other members for a backup, and answers those that ask.

Source: ColocatedActivation of Artemis. Differences: a node asks again when its backup is gone; the member that hosts a
backup is remembered, and asked first; of members with equally many backups it takes the next one by node id, so that
nodes that start together form a ring.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from atalanta.cluster.connection.backup_call import (
    ASK,
    RELEASE,
    REQUEST,
    BackupAnswer,
    BackupCall,
    decode_answer,
    decode_call,
)
from atalanta.cluster.connection.colocation_seat import BackupCalls, ColocationSeat, HostingMember
from atalanta.cluster.part import Part
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL
from atalanta.wire.core.packets.cluster import QuorumVote
from atalanta.wire.core.server.pair_requests import HOSTED_BACKUP

if TYPE_CHECKING:
    from atalanta.cluster.connection.bridge import ClusterBridge
    from atalanta.cluster.connection.cluster_connections import ClusterConnections

TIMER: Final = "colocation.ask"
FIRST_NS: Final = 500_000_000
# A member that hosts the backup and is away may come back: before, no other one is asked.
AWAY_NS: Final = 60_000_000_000
WHAT_TO_DO: Final = "start another member, or raise max-backups of one"


class Colocation(Part, BackupCalls):
    """The calls of one node. A primary without a backup calls at each tick of its timer."""

    def __init__(self, seat: ColocationSeat, clusters: ClusterConnections) -> None:
        broker = clusters.broker
        self.seat = seat
        self.clusters = clusters
        self.node_id: str = broker.node_id
        self.timers = broker.timers
        self.trace = broker.trace
        self._missing_since: int = 0
        self._asked: int = 0
        self._answers: dict[str, BackupAnswer] = {}
        self._told: str = ""
        clusters.colocation = self

    def start(self, now: int) -> None:
        if self.seat.interval_ns:
            self.timers.set(TIMER, now + min(FIRST_NS, self.seat.interval_ns))

    def stop(self, now: int) -> None:
        self.timers.cancel(TIMER)

    # -- the calls of others --------------------------------------------------------------------
    def answer(self, body: bytes) -> bytes:
        """Returns the answer to the call of another member; DecodeError."""
        call = decode_call(body)
        seat, why, host, port = self.seat, "", "", 0
        try:
            if call.operation == REQUEST:
                why = self._refusal(call)
                if not why:
                    host, port = seat.host(call)
            elif call.operation == RELEASE:
                seat.release(call.node_id)
        except (OSError, ValueError) as error:
            why = str(error)
        count = len(seat.hosted())
        return BackupAnswer(call.operation, count, count < seat.backups_max, why, host, port).encode()

    def _refusal(self, call: BackupCall) -> str:
        seat, hosted = self.seat, self.seat.hosted()
        if call.form != seat.own.form:
            return f"it is colocated with {seat.own.form}, not with {call.form}"
        if call.group != seat.backup_group:
            return f"its backups have the group-name {seat.backup_group!r}, not {call.group!r}"
        if call.node_id not in hosted and len(hosted) >= self.seat.backups_max:
            return f"it hosts {len(hosted)} backups already"
        return ""

    # -- own calls ------------------------------------------------------------------------------
    def on_timer(self, now: int, key: str) -> None:
        self.timers.set(TIMER, now + self.seat.interval_ns)
        links = self._links()
        hosts = self.seat.hosts()
        if self.clusters.backup_address:
            self._missing_since = 0
            self._tidy(links, hosts)
            return
        self._missing_since = self._missing_since or now
        if hosts and hosts[0].node_id in links:
            self._call(links[hosts[0].node_id], REQUEST)
        elif not hosts or now - self._missing_since >= AWAY_NS:
            if self._answers:  # some have not answered since the last tick: they are not colocated
                self._choose()
                return
            self._asked = len(links)
            for bridge in links.values():
                self._call(bridge, ASK)
            if not links:
                self._tell("no other member is linked")

    def _links(self) -> dict[str, ClusterBridge]:
        """Returns the links to members that have proven the cluster password, by node id."""
        return {
            node_id: record.bridge
            for cluster in self.clusters.connections
            for node_id, record in cluster.peers.items()
            if record.bridge is not None and record.bridge.ready and record.bridge.proven
        }

    def _call(self, bridge: ClusterBridge, operation: int) -> None:
        own = replace(self.seat.own, operation=operation, node_id=self.node_id)
        bridge.send(QuorumVote(HOSTED_BACKUP, own.encode()), CLUSTER_CHANNEL)

    def _tidy(self, links: dict[str, ClusterBridge], hosts: list[HostingMember]) -> None:
        """Puts the host whose backup is connected first, and releases the others that can be reached."""
        used = [each for each in hosts if f"{each.host}:{each.port}" == self.clusters.backup_address]
        if not used or len(hosts) == 1:
            return
        if hosts[0] != used[0]:
            self._remember([used[0], *[each for each in hosts if each != used[0]]])
        for each in hosts:
            if each != used[0] and each.node_id in links:
                self._call(links[each.node_id], RELEASE)

    def on_answer(self, now: int, node_id: str, body: bytes) -> None:
        """Handles the answer of a member; DecodeError."""
        answer = decode_answer(body)
        others = [each for each in self.seat.hosts() if each.node_id != node_id]
        if answer.operation == ASK:
            self._answers[node_id] = answer
            if len(self._answers) == self._asked:
                self._choose()
        elif answer.operation == RELEASE:
            if not answer.why:
                self._remember(others)
        elif answer.why:
            self._tell(f"{node_id} hosts none: {answer.why}")
            self._remember(others)
        else:
            host = HostingMember(node_id, answer.host, answer.port)
            if host not in self.seat.hosts():
                self._told = ""
                self.trace.event("backup_hosted", {"by": node_id, "at": f"{host.host}:{host.port}"})
            self._remember([host, *others])

    def _choose(self) -> None:
        """Requests a backup of the member that hosts the fewest."""
        links = self._links()
        free = [
            (answer.count, node_id <= self.node_id, node_id)
            for node_id, answer in self._answers.items()
            if answer.room and node_id in links
        ]
        if free:
            self._call(links[min(free)[2]], REQUEST)
        else:
            self._tell("no other member has room for one")
        self._answers.clear()

    def _remember(self, hosts: list[HostingMember]) -> None:
        if hosts != self.seat.hosts():
            try:
                self.seat.remember(hosts)
            except OSError as error:
                self._tell(f"the host of the backup cannot be stored: {error}")

    def _tell(self, why: str) -> None:
        if why != self._told:
            self._told = why
            self.trace.event("backup_missing", {"why": why, "what_to_do": WHAT_TO_DO})
