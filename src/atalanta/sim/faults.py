"""The faults of a simulation, drawn from its seed: crashes, stops, partitions, cuts, slow links and disks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.checks.scale_down import ScaleDownRecord, check_end
from atalanta.sim.clients.client import SimClient
from atalanta.sim.clients.jobs import SimConsumer
from atalanta.sim.host import Host
from atalanta.sim.world.disk import NO_ROOM
from atalanta.sim.world.network import Machine, Network
from atalanta.sim.world.planted_commands import draw_commands
from atalanta.sim.world.world import SECOND, World

RESTART_NS_MAX: Final = 4 * SECOND
PARTITION_NS_MAX: Final = 12 * SECOND
AWAY_NS_MAX: Final = 30 * SECOND  # of a consumer that moved
ABSENCE_NS_MAX: Final = 2 * SECOND  # of a client that was killed
LONG_ABSENCE_NS_MAX: Final = 60 * SECOND  # occasional, in long runs
BURST_NS: Final = SECOND  # in which what was on its way may use up the reserve of a full disk
LEAVE_SHARES: Final = (0.05, 0.15, 0.3)  # share of the faults, in simulations with scale-down
CUT_AT_FREEZE: Final = 0.5  # share of the scale-downs, in simulations whose clients follow
CUT_SHARES: Final = (0.0, 0.1, 0.3)  # share of the faults: clients lose their connections without another fault
LONG_RUN_SECONDS: Final = 60.0  # a longer run has fewer faults, so that nodes make progress


class Faults:
    """The generator of faults. Their rates are drawn too ("swarm testing"), so that seeds differ in kind."""

    def __init__(
        self,
        world: World,
        network: Network,
        hosts: list[Host],
        producers: Sequence[Machine],
        consumers: list[SimConsumer],
        others: list[SimClient],
        until: float,
        departed: ScaleDownRecord,
    ) -> None:
        self.world = world
        self.network = network
        self.hosts = hosts
        self.producers = producers
        self.consumers = consumers
        self.others = others
        self.until = until
        self.random = world.random("faults")
        self.every_ns: int = self.random.choice((SECOND // 3, SECOND, 3 * SECOND))
        self.absences_ns = [ABSENCE_NS_MAX]
        if until > LONG_RUN_SECONDS:
            self.every_ns *= 5
            self.absences_ns = [ABSENCE_NS_MAX] * 4 + [LONG_ABSENCE_NS_MAX]
        self.over = False
        self.crashes: int = 0
        self.stops: int = 0
        self.departures: int = 0
        self.leaving: dict[str, int] = {}  # life of the node that is being scaled down
        self.may_leave = False
        self.followers = False  # clients follow the messages of a scaled-down node
        self.cut_share: float = self.random.choice(CUT_SHARES)
        self.staying: list[str] = []  # nodes that are never scaled down
        self.leave_share: float = self.random.choice(LEAVE_SHARES)
        self.departed = departed
        self.failed_disks: int = 0
        for host in hosts:
            host.on_gave_up = self._gave_up
            host.on_started.append(self._started)

    def shape(self) -> None:
        """Draws latency, chunk size and disk speed, and whether commands fail by mistakes."""
        draw = self.random
        self.network.latency_ns = (50_000, draw.choice((300_000, 2_000_000, 20_000_000)))
        self.network.chunk_bytes_max = draw.choice((31, 200, 1_500, 4_000, 65_536, 65_536))
        for host in self.hosts:
            host.disk.job_max_ns = draw.choice((200_000, 2_000_000, 30_000_000))
            host.commands = draw_commands(self.world, host.name)

    def strike(self) -> None:
        """Causes one fault now and schedules the next, until the time is over."""
        if self.over or self.world.seconds() >= self.until:
            return
        for host in self.hosts:
            if host.node is not None:
                host.node.validate()
        draw = self.random.random()
        if self.may_leave and self.random.random() < self.leave_share:
            self._leave(self.random.choice(self.hosts))
        elif self.random.random() < self.cut_share:
            self._cut_clients(self.random.choice(self.hosts))
        elif draw < 0.15:
            self.crash(self.random.choice(self.hosts))
        elif draw < 0.28:
            self._crash_at_commit(self.random.choice(self.hosts))
        elif draw < 0.35:
            self._crash_after_reconnects(self.random.choice(self.hosts))
        elif draw < 0.42:
            self._stop(self.random.choice(self.hosts))
        elif draw < 0.55:
            self._partition()
        elif draw < 0.70:
            self._cut()
        elif draw < 0.78:
            self.network.slow[self._somewhere()] = self.random.choice((5, 50))
        elif draw < 0.84:
            self.random.choice(self.hosts).disk.slow = self.random.choice((1, 20))
        elif draw < 0.87:
            self._fail_disk(self.random.choice(self.hosts))
        elif draw < 0.94 and self.consumers:
            self._move(self.random.choice(self.consumers))
        else:
            self._restart_client()
        self.world.at(self.random.randint(1, 2 * self.every_ns), self.strike)

    def end(self) -> None:
        """Ends every fault and cancels the planned ones."""
        self.over = True
        self.network.heal()
        for host in self.hosts:
            host.disk.heal()
            if host.commands is not None:
                host.commands.heal()

    def _somewhere(self) -> str:
        return self.random.choice(self.hosts).name

    def crash(self, host: Host) -> None:
        if host.up:
            self.crashes += 1
            host.crash()
            host.disk.slow = 1
            self._start_later(host)

    def _crash_at_commit(self, host: Host) -> None:
        """Crashes the node between two commits or inside one, to show records that must be atomic together."""
        life = host.life
        commits = self.random.randint(1, 12)
        host.disk.strike_at_commit(commits, lambda: self._crash_if(host, life))

    def _crash_if(self, host: Host, life: int) -> None:
        if host.life == life and not self.over:
            self.crash(host)

    def _gave_up(self, host: Host, why: str) -> None:
        """Restarts a node that ended itself after a disk failure. Any other reason is a violation."""
        if not host.disk.failed:
            raise Violation(f"{host.name} gave up on a disk that works: {why}")
        disk = host.disk
        # What came to a node in one turn may be more than a file of the reserve: the limit stands in the guide.
        if NO_ROOM in why and not disk.outgrown and self.world.now - disk.exhausted_ns > BURST_NS:
            raise Violation(f"{host.name} gave up, and its reserve was no help: {why}")
        self.failed_disks += 1
        host.disk.slow = 1
        self._start_later(host)

    def _crash_after_reconnects(self, host: Host) -> None:
        """Blocks the disk, disconnects all producers, so that they reconnect and repeat, and then crashes the node."""
        if not host.up:
            return
        life = host.life
        host.disk.slow = 2_000
        self.world.at(self.random.randint(1, 200) * 1_000_000, lambda: self._cut_off(host, life))
        self.world.at(self.random.randint(200, 600) * 1_000_000, lambda: self._crash_if(host, life))

    def _cut_off(self, host: Host, life: int) -> None:
        if host.life != life or self.over:
            return
        streams = self.network.streams
        for connection in sorted(streams):
            if streams[connection].target is host and streams[connection].source in self.producers:
                self.network.cut_connection(connection)

    def _stop(self, host: Host) -> None:
        if host.up and not self._leaves(host):
            self.stops += 1
            host.stop()
            host.disk.slow = 1
            self._start_later(host)

    def _fail_disk(self, host: Host) -> None:
        host.disk.fail_next_sync()

    def leave_now(self, name: str) -> None:
        """Scales the node down at a moment chosen by another load."""
        for host in self.hosts:
            if host.name == name and self.may_leave and not self.over:
                self._leave(host)

    def _leave(self, host: Host) -> None:
        """Scales the node down to another one if there is one. The node returns later with the rest."""
        if host.node is None or host.node.scale_down is None or host.disk.failed:
            return
        if host.name in self.staying:
            return
        if not self._leaves(host):
            host.node.leave(self.world.now)
            host.flush_later()
            self._watch(host)
            if self.followers and self.world.random("links").random() < CUT_AT_FREEZE:
                self._cut_when_frozen(host, host.life, self.world.now + 5 * SECOND)

    def _cut_when_frozen(self, host: Host, life: int, until: int) -> None:
        """Cuts the members' connections to it, and with them the answers to the last accepted messages."""
        part = None if host.node is None else host.node.scale_down
        if part is None or host.life != life or self.over or self.world.now > until:
            return
        if not part.frozen:
            self.world.at(1_000_000, lambda: self._cut_when_frozen(host, life, until))
            return
        streams = self.network.streams
        for connection in sorted(streams):
            stream = streams[connection]
            if stream.target is host and stream.source in self.hosts and stream.dialed:
                self.network.cut_connection(connection)

    def _started(self, host: Host) -> None:
        """Watches a scale-down that continues after a crash."""
        if host.node is not None and host.node.scale_down is not None:
            if host.node.scale_down.frozen:
                self._watch(host)

    def _leaves(self, host: Host) -> bool:
        return self.leaving.get(host.name, -1) == host.life

    def _watch(self, host: Host) -> None:
        self.leaving[host.name] = host.life
        self._look_at(host, host.life)

    def _look_at(self, host: Host, life: int) -> None:
        if host.node is None or host.life != life:
            return
        self.departed.look()
        part = host.node.scale_down
        assert part is not None
        if not part.over():
            self.world.at(SECOND // 10, lambda: self._look_at(host, life))
            return
        del self.leaving[host.name]
        check_end(host, part)
        if part.frozen:
            self.departures += 1
            self.departed.check_orders()
            self._stop(host)

    def _start_later(self, host: Host) -> None:
        self.world.at(self.random.randint(1, RESTART_NS_MAX), lambda: start(host))

    def _partition(self) -> None:
        first, second = self._somewhere(), self._somewhere()
        if first != second:
            self.network.block(first, second)
            if self.random.random() < 0.6:
                self.network.block(second, first)
            self.world.at(self.random.randint(1, PARTITION_NS_MAX), self.network.heal)

    def _cut(self) -> None:
        """Cuts a connection. Sometimes its node crashes shortly after, when the client has reconnected."""
        connections = sorted(self.network.streams)
        if not connections:
            return
        connection = self.random.choice(connections)
        ends = (self.network.streams[connection].source, self.network.streams[connection].target)
        self.network.cut_connection(connection)
        if self.random.random() < 0.4:
            for host in self.hosts:
                if host in ends:
                    self._crash_later(host)
                    return

    def _cut_clients(self, host: Host) -> None:
        """Cuts about half of the clients connected to the node."""
        streams = self.network.streams
        for connection in sorted(streams):
            stream = streams[connection]
            if stream.target is host and stream.source not in self.hosts:
                if self.random.random() < 0.5:
                    self.network.cut_connection(connection)

    def _crash_later(self, host: Host) -> None:
        life = host.life
        delay_ns = self.random.randint(1, 40) * 1_000_000
        self.world.at(delay_ns, lambda: self._crash_if(host, life))

    def _restart_client(self) -> None:
        clients = [*self.others, *self.consumers]
        if not clients:
            return
        client = self.random.choice(clients)
        if client.up:
            client.kill()
            absence_ns_max = self.random.choice(self.absences_ns)
            self.world.at(self.random.randint(1, absence_ns_max), client.start)

    def _move(self, consumer: SimConsumer) -> None:
        """Moves a consumer for a limited time: without redistribution, messages of its old queue wait for it."""
        consumer.move(self._somewhere())
        self.world.at(self.random.randint(1, AWAY_NS_MAX), consumer.go_home)


def start(host: Host) -> None:
    if not host.up:
        host.start()
