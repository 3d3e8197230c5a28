"""A simulation: a cluster under load with faults from the seed, then without faults until it is idle."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from atalanta.kernel.queue import everything
from atalanta.sim.checks.instants import Instants
from atalanta.sim.checks.ledger import ALERTS, ARCHIVE, BOOK, ORDERS, Ledger, Violation
from atalanta.sim.checks.one_queue import check_one_queue
from atalanta.sim.checks.replay import check_replay
from atalanta.sim.checks.scale_down import ScaleDownRecord
from atalanta.sim.checks.views import check_last_stop, wrong_views
from atalanta.sim.clients.client import SimClient
from atalanta.sim.clients.followers import choose_followers
from atalanta.sim.clients.jobs import SimConsumer, SimProducer
from atalanta.sim.clients.mover import OrderMover
from atalanta.sim.clients.readers import LogReader
from atalanta.sim.faults import LONG_RUN_SECONDS, Faults, start
from atalanta.sim.loads.networks.load import NetworksLoad
from atalanta.sim.nodes import HEADLESS, PRICES, Shape, make_hosts
from atalanta.sim.pairs.pair import Pair
from atalanta.sim.replicas.group import ReplicaGroup
from atalanta.sim.subject import Load, Subject
from atalanta.sim.subjects import draw_subjects
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import EPOCH, SECOND, World
from atalanta.store import segment_number

HEAL_SECONDS_MAX: Final = 120
MESSAGES_PER_SECOND: Final = (6, 16)  # of one producer
LAST_MESSAGES: Final = 12  # of one producer, after the end of the faults
LATE_SECONDS_MAX: Final = 60.0
REPLAY_CHECK_NS: Final = 30 * SECOND
LOOK_NS: Final = SECOND
PATIENT_SHARE: Final = 0.4  # of the clients reattach their sessions after a lost connection
NEAR_NS: Final = 2 * SECOND  # events of the nodes this close to a message's history are part of it


class ScenarioOutcome:
    """Figures of a run without a violation."""

    def __init__(self) -> None:
        self.digest = ""
        self.virtual_seconds = 0.0
        self.steps = 0
        self.confirmed = 0
        self.crashes = 0
        self.failovers = 0
        self.lost_epochs = 0
        self.departures = 0
        self.failed_disks = 0
        self.redeliveries = 0
        self.moved = 0
        self.forwarded = 0
        self.segments_cleaned = 0
        self.replays = 0
        self.reattached = 0
        self.resumed = 0
        self.followed = 0
        self.doubled = 0  # messages of a network that may come twice, and did


class Scenario:
    """A run. `telling` records the history of every message, or of `about` only (history_of), without other effects.

    `load` makes the only subject, in place of those that the seed draws. `grouped`: nodes are replicated groups.
    `networked`: the nodes are no cluster but a network of brokers, and all clients are of OpenWire.
    """

    def __init__(
        self,
        seed: int,
        nodes: int = 3,
        seconds: float = 12.0,
        faults: bool = True,
        telling: bool = False,
        about: str = "",
        load: Load | None = None,
        grouped: bool = False,
        networked: bool = False,
    ) -> None:
        self.world = World(seed, telling, about)
        self.network = Network(self.world)
        self.random = self.world.random("scenario")
        self.seconds = seconds
        self.with_faults = faults
        self.ledger = Ledger(self.world)
        self.instants = Instants(self.world, self.ledger)
        self.replays = 0
        self.shape = Shape()
        self.shape.draw(self.world)
        self.joins_at: int = self._draw_joiner(nodes)
        self.departed = ScaleDownRecord()
        self._draw_form(nodes, load is None, grouped, networked)
        self.shape.subjects = self._make_subjects(nodes, load)
        self.hosts = make_hosts(self.world, self.network, nodes, self.shape)
        self.pair = self._make_pair(nodes)
        self.groups = self._make_groups(nodes)
        # The nodes that have several machines.
        self.several: list[Pair | ReplicaGroup] = [*([] if self.pair is None else [self.pair]), *self.groups]
        for several in self.several:
            self.hosts[several.index] = several.primary
        self.producers = [] if networked else self._make_producers()
        self.consumers = [] if networked else self._make_consumers(nodes)
        self.readers = [] if networked else self._make_readers()
        self.late: list[SimClient] = self._choose_late()
        self.subjects = self.shape.subjects
        for subject in self.subjects:
            subject.departed = self.departed
            subject.populate(self.hosts, seconds)
        self._add_backups()
        senders = [*self.producers, *(each for subject in self.subjects for each in subject.senders)]
        self.departed.watch(self.hosts, senders)
        self._give_patience()
        self.faults = Faults(
            self.world,
            self.network,
            self.hosts,
            [*senders, *(each for subject in self.subjects for each in subject.machines)],
            [
                each
                for each in self.consumers
                if isinstance(each, SimConsumer) and each.queue == ORDERS
            ],
            [
                *self.readers,
                *self.consumers,
                *(client for each in self.subjects for client in each.takers),
            ],
            seconds,
            self.departed,
        )
        self.faults.shape()
        self.faults.may_leave = self.shape.departures
        self._prepare_departures()
        self.faults.staying = [name for subject in self.subjects for name in subject.staying]
        self.ledger.excuses = self.departed.excuses
        self.instants.watch(self.hosts)

    def _draw_form(self, nodes: int, drawn: bool, grouped: bool, networked: bool) -> None:
        """Draws which nodes have several machines. `drawn`: the seed draws the subjects, too."""
        if networked:
            self.shape.become_network()
        elif drawn:
            self.shape.draw_pair(self.world, nodes)
        if (drawn and not networked) or grouped:
            self.shape.draw_groups(self.world, nodes, grouped)

    def _make_pair(self, nodes: int) -> Pair | None:
        if self.shape.pair < 0:
            return None
        return Pair(self.world, self.network, nodes, self.shape)

    def _make_groups(self, nodes: int) -> list[ReplicaGroup]:
        indexes = sorted(self.shape.groups)
        return [ReplicaGroup(self.world, self.network, nodes, self.shape, index) for index in indexes]

    def _add_backups(self) -> None:
        """Adds the other machines of nodes that have several."""
        for several in self.several:
            for backup in several.backups:
                self.hosts.append(backup)
                self.network.names[HEADLESS].append((backup.name, 0))

    def _draw_joiner(self, nodes: int) -> int:
        """Returns when the last node joins (ns), 0 if no node does."""
        # A separate generator: the simulations of older seeds stay the same.
        joining = self.world.random("join")
        if nodes <= 2 or joining.random() >= 0.3:
            return 0
        self.shape.joiner = nodes - 1
        return int(joining.uniform(0.1, 0.7) * min(self.seconds, LATE_SECONDS_MAX) * SECOND)

    def _give_patience(self) -> None:
        """Lets some clients reattach their sessions after a lost connection."""
        for client in self._clients():
            patience = self.world.random(f"patience/{client.name}")
            if patience.random() < PATIENT_SHARE:
                client.window_bytes = patience.choice((1, 2_000, 1 << 20))

    def _make_subjects(self, nodes: int, load: Load | None) -> list[Subject]:
        if load is not None:
            return [load(self.world, self.network, self.ledger)]
        if self.shape.networked:
            return [NetworksLoad(self.world, self.network, self.ledger, nodes, self.shape, self.with_faults)]
        return draw_subjects(
            self.world, self.network, self.ledger, self.shape, nodes, self.with_faults
        )

    def _prepare_departures(self) -> None:
        self.departed.in_order = not self.shape.redistributes()
        leaves = self.shape.departures
        self.faults.followers = choose_followers(self.world, self._roaming(), leaves)
        for subject in self.subjects:
            subject.leave = self.faults.leave_now

    # -- clients --------------------------------------------------------------------------------
    def _make_producers(self) -> list[SimProducer]:
        total = max(8, int(self.seconds * self.random.randint(*MESSAGES_PER_SECOND)))
        mean_ns = int(self.seconds * 0.8 * SECOND / total)
        if self.seconds > LONG_RUN_SECONDS:
            total *= 2  # The load must not end before the faults.
        made = [
            SimProducer(self.world, self.network, f"p{index}", host.name, self.ledger, total, mean_ns)
            for index, host in enumerate(self.hosts)
        ]
        for producer in made:
            producer.knows_alerts = self.knows_alerts
        return made

    def _make_consumers(self, nodes: int) -> list[SimClient]:
        """Creates consumers: at least one of orders, or one at every node."""
        count = nodes if self.shape.taken_everywhere() else self.random.randint(1, nodes)
        made: list[SimClient] = [
            SimConsumer(self.world, self.network, f"c{index}", self._home(index), self.ledger, ORDERS, self.instants)
            for index in range(count)
        ]
        for index in range(self.random.randint(0, 2)):
            made.append(
                OrderMover(self.world, self.network, f"m{index}", self._somewhere(), self.ledger)
            )
        # The target of a scale-down takes over subscriptions; unless they return, they must be read there.
        away = self.shape.departures and self.shape.taken_everywhere()
        for host in self.hosts if away else self.hosts[:1]:
            name = "alert" if host is self.hosts[0] else f"alert-{host.name}"
            made.append(
                SimConsumer(self.world, self.network, name, host.name, self.ledger, ALERTS)
            )
        return made

    def _make_readers(self) -> list[SimClient]:
        made: list[SimClient] = []
        for index, host in enumerate(self.hosts):
            made.append(
                LogReader(self.world, self.network, f"r{index}", host.name, self.ledger, ARCHIVE)
            )
            made.append(
                LogReader(self.world, self.network, f"b{index}", host.name, self.ledger, BOOK)
            )
        return made

    def _choose_late(self) -> list[SimClient]:
        """Chooses clients that start late, up to LATE_SECONDS_MAX: their messages must survive every compaction."""
        return [reader for reader in self.readers if self.random.random() < 0.25]

    def _somewhere(self) -> str:
        return self.random.choice(self.hosts).name

    def _home(self, index: int) -> str:
        return self.hosts[index].name if self.shape.taken_everywhere() else self._somewhere()

    def knows_alerts(self, name: str) -> int:
        """Returns the life of that node while it has a binding for alerts, else 0."""
        machines = (name, *self.network.partners.get(name, []))
        for host in self.hosts:
            if host.name in machines and host.node is not None and host.current():
                address = host.node.broker.addresses.get(PRICES)
                if address is not None and ALERTS in address.groups:
                    return host.life
        return 0

    def _roaming(self) -> list[SimClient]:
        own = (each for each in self.subjects if each.roams)
        return [
            *self.producers,
            *self.consumers,
            *(client for each in own for client in [*each.senders, *each.takers]),
        ]

    # -- run ------------------------------------------------------------------------------------
    def run(self) -> ScenarioOutcome:
        """Runs the simulation. Raises Violation."""
        for index, host in enumerate(self.hosts):
            delay_ns = self.random.randint(0, SECOND)
            if index == self.shape.joiner:
                self.world.at(self.joins_at, self._join)
            else:
                self.world.at(delay_ns, host.start)
        self.world.at(LOOK_NS, self._check_nodes)
        for client in [*self.producers, *self.consumers, *self.readers]:
            delay_ns = self.random.randint(0, 2 * SECOND)
            if client in self.late:
                delay_ns = int(min(self.seconds, LATE_SECONDS_MAX) * SECOND)
            self.world.at(delay_ns, client.start)
        for subject in self.subjects:
            for client in [*subject.senders, *subject.takers]:
                delay_ns = self.world.random("subjects").randint(0, 2 * SECOND)
                self.world.at(delay_ns, client.start)
        if self.with_faults:
            self.world.at(SECOND, self.faults.strike)
            for several in self.several:
                several.begin(self.seconds)
        for group in self.groups:
            group.watch()
        self.world.at(REPLAY_CHECK_NS, self._check_replays)
        self.world.run_until(EPOCH + int(self.seconds * SECOND))
        self._heal()
        self._come_to_rest()
        self._check()
        check_last_stop(self.world, self.hosts, self._clients())
        return self._outcome()

    def _join(self) -> None:
        start(self.hosts[self.shape.joiner])

    def _check_nodes(self) -> None:
        """Checks the nodes. During a scale-down a message may be at both nodes for a moment, as behind a network's
        bridge."""
        if not self.shape.networked and not self.departed.under_way():
            check_one_queue(self.hosts)
        self.departed.check_orders()
        self.world.at(LOOK_NS, self._check_nodes)

    def _check_replays(self) -> None:
        for host in self.hosts:
            self.replays += check_replay(host)
        if self.world.seconds() < self.seconds:
            self.world.at(REPLAY_CHECK_NS, self._check_replays)

    # -- end ------------------------------------------------------------------------------------
    def _heal(self) -> None:
        for host in self.hosts:
            self.replays += check_replay(host)
        for producer in self.producers:
            producer.total = min(producer.total, producer.next + LAST_MESSAGES)
        if self.with_faults:
            self.faults.end()
        for several in self.several:
            several.end()
        for host in self.hosts:
            start(host)
        if self.shape.taken_everywhere():
            for consumer in self.consumers:
                if isinstance(consumer, SimConsumer):
                    consumer.go_home()
        for client in self._clients():
            if client.abroad:
                client.go_home()
        for client in [*self.consumers, *self.readers]:
            if not client.up:
                client.start()
        for subject in self.subjects:
            subject.repair()

    def _come_to_rest(self) -> None:
        limit = self.world.now + HEAL_SECONDS_MAX * SECOND
        while self.world.now < limit:
            self.world.run_until(self.world.now + SECOND)
            for host in self.hosts:
                start(host)
            if self._at_rest():
                if not any([subject.resume() for subject in self.subjects]):
                    return
                limit = self.world.now + HEAL_SECONDS_MAX * SECOND
        left = self._left()
        key = self._key_left()
        raise Violation(f"no rest {HEAL_SECONDS_MAX} s after healing: {left}, first {key}", key)

    def _at_rest(self) -> bool:
        return all(producer.done() for producer in self.producers) and not self._left()

    def _left(self) -> list[str]:
        """Returns messages still in queues, by node and queue, and nodes that do not know every member yet."""
        left = [
            f"{producer.name} waits for {sorted(producer.open)[:5]}"
            for producer in self.producers
            if producer.open
        ]
        for subject in self.subjects:
            left.extend(subject.left())
        for group in self.groups:
            left.extend(group.members.left())
        for host in self.hosts:
            if host.standby():
                continue
            if host.node is None:
                left.append(f"{host.name} is down")
                continue
            for queue in host.node.broker.queues.values():
                if queue.durable and queue.message_count + queue.pending > 0:
                    count = sum(1 for each in everything(queue) if each.durable)
                    waiting = host.node.broker.scheduled.of_queue(queue)
                    count += sum(1 for _, each in waiting if each.durable)
                    if count + queue.pending > 0:
                        left.append(f"{host.name}:{queue.name}={count}+{queue.pending}")
        return left or wrong_views(self.hosts, self._clients())

    def _clients(self) -> list[SimClient]:
        own = (client for each in self.subjects for client in [*each.senders, *each.takers])
        return [*self.producers, *self.consumers, *self.readers, *own]

    def _key_left(self) -> str:
        """Returns the key of one remaining message, for its history."""
        for host in self.hosts:
            if host.node is None:
                continue
            for queue in host.node.broker.queues.values():
                for reference in everything(queue):
                    if queue.durable and reference.durable:
                        return str(reference.message.properties.get("key"))
        for producer in self.producers:
            for number in producer.open:
                return f"{producer.name}/{number}"
        return "".join(subject.key_left() for subject in self.subjects[:1])

    def _check(self) -> None:
        self.ledger.check()
        for subject in self.subjects:
            subject.check()
        for group in self.groups:
            group.check()
        for host in self.hosts:
            host.trace.check()
            if host.standby():
                continue
            assert host.node is not None
            host.node.validate()
            self.replays += check_replay(host)

    def _outcome(self) -> ScenarioOutcome:
        outcome = ScenarioOutcome()
        for key in sorted(self.ledger.delivered):
            self.world.note(f"delivered {key} {self.ledger.delivered[key]}")
        for key in sorted(self.ledger.read):
            self.world.note(f"read {key}")
        outcome.digest = self.world.digest()
        outcome.virtual_seconds = self.world.seconds()
        outcome.steps = self.world.steps
        outcome.confirmed = len(self.ledger.confirmed)
        outcome.crashes = self.faults.crashes
        for several in self.several:
            outcome.failovers += sum(machine.takeovers for machine in several.machines) - 1
            outcome.lost_epochs += sum(machine.losses for machine in several.machines)
        outcome.departures = self.faults.departures
        outcome.failed_disks = self.faults.failed_disks
        outcome.redeliveries = self.ledger.redelivered
        outcome.moved = len(self.ledger.moved)
        outcome.replays = self.replays
        outcome.reattached = sum(client.reattached for client in self._clients())
        outcome.resumed = sum(client.resumed for client in self._clients())
        outcome.followed = sum(client.followed for client in self._clients())
        for subject in self.subjects:
            if isinstance(subject, NetworksLoad):
                outcome.followed += subject.failovers()
                outcome.doubled += subject.account.doubled
                outcome.moved += len(subject.account.moved)
                outcome.forwarded += subject.watch.forwarded()
        for host in self.hosts:
            numbers = [segment_number(name) for name in host.disk.files]
            outcome.segments_cleaned += min([number for number in numbers if number > 0] or [1]) - 1
            if host.node is not None and host.node.cluster is not None:
                peers = host.node.cluster.peers.values()
                outcome.forwarded += sum(record.forwarded for record in peers)
        return outcome


def history_of(scenario: Scenario, key: str, lines_max: int = 60) -> list[str]:
    """Returns the history of message `key`, if it was recorded, and the nodes' events close to its lines."""
    about = [line for line in scenario.world.history if key and line.key == key]
    events = [line for line in scenario.world.history if not line.key]
    if not about:
        return [str(line) for line in events[-lines_max:]]
    times = [line.when for line in about]
    near = [str(line) for line in events if _distance_ns(times, line.when) <= NEAR_NS]
    return [f"history of {key}:", *map(str, about), "the nodes meanwhile:", *near[-lines_max:]]


def _distance_ns(times: list[int], when: int) -> int:
    """Returns the distance from `when` to the nearest of the sorted `times`."""
    index = bisect_left(times, when)
    return min(abs(time - when) for time in times[max(0, index - 1) : index + 1])
