"""The check that a message group is never split: it records node, consumer and order of every delivery.

A group belongs to one queue of each routing name. It may move to another node only after a graceful stop of its node,
if it was unused for its timeout, or if the LOCAL node did not reach its node for some time after a graceful stop of its
own (docs/guide/message-groups.md). Two messages that were certainly routed close in time must therefore be at one node.
A message is certainly routed between its first send and its confirmation.
"""

from __future__ import annotations

from typing import Final

from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.checks.scale_down import ScaleDownRecord
from atalanta.sim.clients.jobs import SimConsumer
from atalanta.sim.host import Host
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

# Until every node knows of a stop, messages may still go to the group's old node.
NEWS_NS: Final = 5 * SECOND
BEHIND_RECORDS: Final = 12  # of 30 ms each: nearly the timeout of 400 ms
REJOIN_NS: Final = 7 * SECOND // 2  # a node that runs has tried to connect every 500 ms since the LOCAL one stopped
SEEN_NS: Final = SECOND // 5  # a scale-down is checked for ten times a second


class Grouped:
    """A message: `at` is the node by queue after its delivery; `last` if it was sent after the faults had ended.

    `durable` is the number of the last durable record by node when it was sent.
    """

    def __init__(self, key: str, group: str, now: int, last: bool) -> None:
        self.key = key
        self.group = group
        self.sent_at = now
        self.confirmed_at: int = 0
        self.refused = False
        self.last = last
        self.at: dict[str, str] = {}
        self.durable: dict[str, int] = {}


class GroupLedger:
    """The record of all groups. `apart_ns`: a group unused for that long may move; negative: never."""

    def __init__(self, world: World, network: Network, ledger: Ledger, apart_ns: int) -> None:
        self.world = world
        self.network = network
        self.ledger = ledger
        self.apart_ns = apart_ns
        self.hosts: list[Host] = []
        self.departed = ScaleDownRecord()
        self.messages: dict[str, Grouped] = {}
        self.unordered: dict[
            str, bool
        ] = {}  # repeated by a sender that did not wait for each answer
        self.newest: dict[
            tuple[str, str, str, str], int
        ] = {}  # number by queue, node, sender, group
        self.held: dict[
            tuple[str, str, str], dict[str, SimConsumer]
        ] = {}  # by queue, node, group: key -> consumer
        self.closing = False

    # -- senders --------------------------------------------------------------------------------
    def sending(self, key: str, group: str) -> None:
        self.ledger.sent[key] = True
        self.messages[key] = sent = Grouped(key, group, self.world.now, self.closing)
        for host in self.hosts:
            if host.node is not None:
                sent.durable[host.name] = host.node.broker.journal.durable

    def confirm(self, key: str) -> None:
        self.ledger.confirm(key, False)
        self.messages[key].confirmed_at = self.world.now

    def refuse(self, key: str, why: str) -> None:
        self.ledger.tell(key, f"{key} is refused: {why}")
        found = self.messages[key]
        if found.last and not self._disk_behind(found):
            raise Violation(f"{key} is refused after the faults have ended: {why}", key)
        if found.at:
            raise Violation(f"{key} was delivered and then refused: {why}", key)
        found.refused = True

    def _disk_behind(self, found: Grouped) -> bool:
        """Returns True if a node's disk still writes what it has got since the message was sent. A decision is sent
        after it is on disk. With 30 ms per small block, earlier records (a journal compaction) may take longer than
        `timeout`."""
        for host in self.hosts:
            if host.node is not None:
                journal = host.node.broker.journal
                since = found.durable.get(host.name, 0)
                if journal.last > journal.durable and journal.last - since > BEHIND_RECORDS:
                    return True
        return False

    # -- consumers ------------------------------------------------------------------------------
    def deliver(self, who: SimConsumer, key: str, group: str | None) -> None:
        """Records a delivery to `who`. The consumer holds the message until it acknowledges it."""
        found = self.messages.get(key)
        queue = who.queue
        if found is None or found.group != group:
            raise Violation(f"{queue} delivered {key} of group {group}, which no client sent in that group", key)
        if found.refused:
            raise Violation(f"{queue} delivered {key}, which was refused to its sender", key)
        before = found.at.get(queue, "")
        first = before != who.target
        if before and first and before not in self.departed.origins(who.target, found.sent_at):
            raise Violation(f"{key} was in {queue} of {before} and of {who.target}", key)
        found.at[queue] = who.target
        if first:
            self._check_order(queue, who.target, found)
        held = self.held.setdefault((queue, who.target, found.group), {})
        for other_key, other in held.items():
            if other is not who and self._connected(other):
                raise Violation(
                    f"group {group} of {queue} at {who.target} is read by {other.name} ({other_key}) and"
                    f" {who.name} ({key})",
                    key,
                )
        held[key] = who

    def _check_order(self, queue: str, node: str, found: Grouped) -> None:
        sender, _, number = found.key.partition("/")
        stream = (queue, node, sender, found.group)
        if found.key in self.unordered or self.departed.excuses(node, sender):
            return
        if int(number) < self.newest.get(stream, -1):
            raise Violation(
                f"{queue} of {node} delivered {found.key} of group {found.group} after number"
                f" {self.newest[stream]} of the same sender",
                found.key,
            )
        self.newest[stream] = int(number)

    def _connected(self, who: SimConsumer) -> bool:
        """Returns True if both the client and the node regard the connection as open."""
        if not who.attached() or self.network.left_at(who.conn):
            return False
        return self.network.peer_of[who.conn] in self.network.streams

    def release(self, who: SimConsumer, key: str) -> None:
        """Records the acknowledgement of a message."""
        found = self.messages[key]
        self.held.get((who.queue, who.target, found.group), {}).pop(key, None)

    def release_all(self, who: SimConsumer) -> None:
        for held in self.held.values():
            for key in [key for key, other in held.items() if other is who]:
                del held[key]

    # -- at the end -----------------------------------------------------------------------------
    def check(self, queues: list[str]) -> None:
        for found in self.messages.values():
            for queue in queues:
                if found.confirmed_at and (queue, found.key) not in self.ledger.acknowledging:
                    raise Violation(
                        f"confirmed message lost: {found.key} was never in {queue}", found.key
                    )
        groups: dict[str, list[Grouped]] = {}
        for found in self.messages.values():
            if found.confirmed_at:
                groups.setdefault(found.group, []).append(found)
        for messages in groups.values():
            for queue in queues:
                self._check_group(queue, messages)

    def _check_group(self, queue: str, messages: list[Grouped]) -> None:
        for index, one in enumerate(messages):
            for other in messages[:index]:
                if one.at[queue] != other.at[queue] and not self._may_differ(queue, one, other):
                    raise Violation(
                        f"group {one.group} of {queue} was split: {other.key} went to {other.at[queue]},"
                        f" {one.key} to {one.at[queue]}",
                        one.key,
                    )

    def _was_freed(self, node: str, until: int) -> bool:
        """Returns whether the LOCAL node had taken that node for one that had left, and not too early."""
        for host in self.hosts:
            for freed_at, freed in host.freed:
                stopped_at = max((each for each in host.stops if each <= freed_at), default=freed_at)
                if freed == node and stopped_at + REJOIN_NS <= freed_at <= until:
                    return True
        return False

    def _may_differ(self, queue: str, one: Grouped, other: Grouped) -> bool:
        if self.apart_ns >= 0 and (
            one.confirmed_at >= other.sent_at + self.apart_ns
            or other.confirmed_at >= one.sent_at + self.apart_ns
        ):
            return True
        if one.last and other.last:
            return False
        origins = self.departed.origins(one.at[queue], one.sent_at)
        others = self.departed.origins(other.at[queue], other.sent_at)
        if any(node in others for node in origins):
            return True
        since = min(one.sent_at, other.sent_at) - NEWS_NS
        until = max(one.confirmed_at, other.confirmed_at)
        for host in self.hosts:
            if host.name in origins or host.name in others:
                if any(since <= stopped_at <= until for stopped_at in host.stops):
                    return True
        if any(self._was_freed(node, until) for node in [*origins, *others]):
            return True
        return any(
            (handover.source in origins or handover.source in others)
            and handover.began <= until + SEEN_NS
            and handover.ended >= since
            for handover in self.departed.handovers
        )
