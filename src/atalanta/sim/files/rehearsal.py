"""A rehearsal: the nodes of configuration files under load, while nodes crash, stop, start and join."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from atalanta.kernel.queue import DONE, Queue
from atalanta.sim.files.group import FileMember
from atalanta.sim.files.load import FileConsumer, FileProducer, LoadTally, RehearsalLoad
from atalanta.sim.files.world import FileNode, FileWorld
from atalanta.sim.host import Host
from atalanta.sim.world.world import EPOCH, SECOND

KILL, STOP, START, JOIN, CUT, HEAL = "kill", "stop", "start", "join", "cut", "heal"
KILL_ACTIVE, START_AGAIN = "kill the active member of", "start again all members of"  # a replicated group
FORMING_S: Final = 15.0  # before any load
SETTLING_S: Final = 30.0  # after the end of the load
STUCK_S: Final = 3.0  # messages that wait longer without a consumer there are reported


@dataclass
class Event:
    """An event at `at_s` seconds of load: `what` happens to the node (or to the two nodes) `label`."""

    at_s: float
    what: str
    label: str
    node: FileNode | None = None  # for JOIN

    def __str__(self) -> str:
        return f"{self.at_s:g} s: {self.what} {self.label}"


@dataclass
class Takeover:
    """A takeover: `node` serves as `epoch` of its replicated group.

    `after_s`: since an event ended the node before; None if none did.
    """

    at_s: float
    node: str
    epoch: int
    after_s: float | None


@dataclass
class RehearsalBacklog:
    """A backlog of `queue` at `node`: the same message first from `since_s` to `until_s`, at most `most` messages."""

    node: str
    queue: str
    since_s: float
    until_s: float
    most: int
    consumers: bool

    @property
    def lasted_s(self) -> float:
        return self.until_s - self.since_s


FORWARD: Final = ".sf."  # in the names of store-and-forward queues


@dataclass
class RehearsalReport:
    """The result of a rehearsal. `left` are messages in queues at the end, by node and queue. `down` are nodes that are
    down then, with the messages on their disks."""

    events: list[Event]
    tallies: list[LoadTally]
    backlogs: list[RehearsalBacklog] = field(default_factory=list)
    left: dict[tuple[str, str], int] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # by node id
    down: list[str] = field(default_factory=list)
    takeovers: list[Takeover] = field(default_factory=list)
    digest: str = ""
    seconds: float = 0.0

    def waiting(self, tally: LoadTally) -> int:
        """Returns the number of messages of that load in queues of running nodes."""
        return sum(
            count
            for (_, queue), count in self.left.items()
            if queue == tally.load.queue or FORWARD in queue
        )

    def lost(self, tally: LoadTally) -> int:
        """Returns the number of confirmed messages in no queue and at no consumer; 0 while nodes are down."""
        return 0 if self.down else max(0, tally.missing() - self.waiting(tally))


class Rehearsal:
    """A run; `run` returns the report. Times are seconds since the start of the load."""

    def __init__(
        self, nodes: list[FileNode], loads: list[RehearsalLoad], events: list[Event], seconds: float, seed: int
    ) -> None:
        self.world = FileWorld(nodes, seed)
        self.loads = loads
        self.events = sorted(events, key=lambda event: event.at_s)
        self.seconds = seconds
        self.report = RehearsalReport(self.events, [])
        self.producers: list[FileProducer] = []
        self.open: dict[tuple[str, str], RehearsalBacklog] = {}
        self.heads: dict[tuple[str, str], int] = {}  # id of the first message, by node and queue
        self.began = 0
        self.lost_at: dict[str, float] = {}  # when the service of its group ended, by member

    def run(self) -> RehearsalReport:
        """Runs the rehearsal. The same files, load, events and seed give the same report."""
        world = self.world
        for host in world.hosts.values():
            host.on_gave_up = self._gave_up
        world.start()
        world.run(FORMING_S)
        self.began = world.world.now
        for group in world.groups.values():
            for member in group.machines:
                member.on_started.append(self._taken_over)
        self._clients()
        for event in self.events:
            world.world.at_time(self.began + int(event.at_s * SECOND), self._happening(event))
        while world.world.now < self.began + int(self.seconds * SECOND):
            world.run(1.0)
            self._record_backlogs()
        for producer in self.producers:
            producer.stopped = True
        for _ in range(int(SETTLING_S)):
            world.run(1.0)
            self._record_backlogs()
        self._finish()
        return self.report

    def now_s(self) -> float:
        return (self.world.world.now - self.began) / SECOND

    def _clients(self) -> None:
        owners = {f"producer-{number}": LoadTally(load) for number, load in enumerate(self.loads)}
        for number, (producing, tally) in enumerate(owners.items()):
            self.report.tallies.append(tally)
            for target in tally.load.targets:
                name = f"consumer-{number}-{target}"
                FileConsumer(self.world, name, self.world.hosts[target], tally, owners).start()
            source = self.world.hosts[tally.load.source]
            producer = FileProducer(self.world, producing, source, tally)
            self.producers.append(producer)
            producer.start()

    # -- events ---------------------------------------------------------------------------------
    def _happening(self, event: Event) -> Callable[[], None]:
        return lambda: self._happen(event)

    def _happen(self, event: Event) -> None:
        network = self.world.network
        if event.what == JOIN and event.node is not None:
            host = self.world.add(event.node)
            host.on_gave_up = self._gave_up
            host.start()
        elif event.what == CUT:
            one, _, two = event.label.partition("/")
            network.block(one, two)
            network.block(two, one)
        elif event.what == HEAL:
            network.heal()
        else:
            self._change(event.what, self.world.hosts[event.label])

    def _change(self, what: str, host: Host) -> None:
        if what == KILL_ACTIVE:
            serving = [each for each in self.world.members(host.name) if each.node is not None]
            for each in serving[:1]:
                self._change(KILL, each)
        elif what == START_AGAIN:
            for each in self.world.members(host.name):
                self._change(START, each)
        elif what == KILL and host.up:
            self._note_loss(host)
            host.crash()
        elif what == STOP and host.up:
            self._note_loss(host)
            host.stop()
        elif what == START and not host.up:
            host.start()

    def _note_loss(self, host: Host) -> None:
        """Records since when a group is without a serving member."""
        if host.node is not None:
            for each in self.world.members(host.name):
                self.lost_at[each.name] = self.now_s()

    def _taken_over(self, host: Host) -> None:
        """Records that a member serves."""
        now = self.now_s()
        epoch = host.epoch if isinstance(host, FileMember) else 0
        ended_at = [self.lost_at.pop(each.name, None) for each in self.world.members(host.name)][0]
        self.report.takeovers.append(Takeover(now, host.name, epoch, None if ended_at is None else now - ended_at))

    def _gave_up(self, host: object, why: str) -> None:
        self.report.ended[getattr(host, "name", "")] = why

    # -- observations ---------------------------------------------------------------------------
    def _record_backlogs(self) -> None:
        """Records queues whose first message has not changed for a second."""
        now = self.now_s()
        up = self.world.up()
        heads: dict[tuple[str, str], int] = {}
        for label, node in up.items():
            self.report.labels[node.broker.node_id] = label
            for name, queue in node.broker.queues.items():
                front = front_of(queue)
                if front < 0 or (queue.spec.internal and FORWARD not in name):
                    continue
                if queue.spec.address == node.broker.config.management_notification_address:
                    continue
                key = (label, name)
                heads[key] = front
                if self.heads.get(key) != heads[key]:
                    continue
                backlog = self.open.setdefault(key, RehearsalBacklog(label, name, now - 1, now, 0, False))
                backlog.until_s = now
                backlog.most = max(backlog.most, queue.message_count)
                backlog.consumers = backlog.consumers or bool(queue.consumers)
        for key in list(self.open):
            if key[0] not in up:
                self.open[key].until_s = now  # messages of a stopped node wait until it starts again
                heads[key] = self.heads[key]
            elif heads.get(key) != self.heads.get(key):
                self._close(self.open.pop(key))
        self.heads = heads

    def _close(self, backlog: RehearsalBacklog) -> None:
        if backlog.lasted_s >= STUCK_S:
            self.report.backlogs.append(backlog)

    def _finish(self) -> None:
        report = self.report
        for backlog in self.open.values():
            self._close(backlog)
        up = self.world.up()
        for label, node in up.items():
            for name, queue in node.broker.queues.items():
                if queue.message_count and (not queue.spec.internal or FORWARD in name):
                    report.left[(label, name)] = queue.message_count
            if node.clusters is not None:
                report.members[label] = len(node.clusters.connections[0].topology.members)
        report.down = [
            label for label in self.world.hosts if not any(each.name in up for each in self.world.members(label))
        ]
        report.digest = self.world.world.digest()
        report.seconds = (self.world.world.now - EPOCH) / SECOND


def front_of(queue: Queue) -> int:
    """Returns the id of the first message in the queue, -1 if it is empty."""
    if queue.message_count:
        for reference in queue.references:
            if reference.state != DONE:
                return int(reference.message.id)
    return -1
