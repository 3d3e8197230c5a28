"""One run: a cluster under load with faults from the seed, then everything heals and must come to rest.

Fault rates, pace and disks are drawn from the seed ("swarm"), so that seeds differ in kind and not only in timing.
"""

from __future__ import annotations

from typing import Final

from atalanta.sim.host import Host
from atalanta.sim.jobs import Consumer, LogReader, Producer
from atalanta.sim.ledger import Ledger, Violation
from atalanta.sim.network import Network
from atalanta.sim.nodes import ALERTS, ARCHIVE, ORDERS, PRICES, make_hosts
from atalanta.sim.world import EPOCH, SECOND, World

HEAL_SECONDS_MAX: Final = 240


class Outcome:
    """Figures of a run that kept its promises."""

    def __init__(self) -> None:
        self.digest = ""
        self.virtual_seconds = 0.0
        self.steps = 0
        self.confirmed = 0
        self.crashes = 0
        self.redeliveries = 0
        self.forwarded = 0


class Scenario:
    def __init__(self, seed: int, nodes: int, seconds: float, faults: bool = True) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.random = self.world.random("scenario")
        self.seconds = seconds
        self.faults = faults
        self.crashes = 0
        self.ledger = Ledger()
        self.hosts = make_hosts(self.world, self.network, nodes)
        self.down: dict[str, bool] = {}
        self._shape()
        total = max(8, int(seconds * self.random.randint(4, 12)))
        self.producers = [
            Producer(self.world, self.network, f"p{index}", host.name, self.ledger, total)
            for index, host in enumerate(self.hosts)
        ]
        self.consumers = [
            Consumer(self.world, self.network, f"c{index}", self._somewhere(), self.ledger, ORDERS)
            for index in range(self.random.randint(1, nodes))
        ]
        self.consumers.append(
            Consumer(self.world, self.network, "alert", "n0", self.ledger, ALERTS)
        )
        for producer in self.producers:
            producer.knows_alerts = self.knows_alerts
        self.readers = [
            LogReader(self.world, self.network, f"r{index}", host.name, self.ledger, ARCHIVE)
            for index, host in enumerate(self.hosts)
        ]

    def knows_alerts(self, name: str) -> int:
        """The life of that node while it has a binding for alerts, else 0."""
        for host in self.hosts:
            if host.name == name and host.node is not None:
                address = host.node.broker.addresses.get(PRICES)
                if address is not None and ALERTS in address.groups:
                    return host.life
        return 0

    def _shape(self) -> None:
        """Latency, chunking and disks of this world."""
        draw = self.random
        self.network.latency_ns = (50_000, draw.choice((300_000, 2_000_000, 20_000_000)))
        self.network.chunk_bytes_max = draw.choice((7, 200, 4_000, 65_536))
        for host in self.hosts:
            host.disk.job_max_ns = draw.choice((200_000, 2_000_000, 30_000_000))
        self.fault_every_ns = draw.choice((SECOND // 2, 2 * SECOND, 5 * SECOND))

    def _somewhere(self) -> str:
        return self.random.choice(self.hosts).name

    # -- run ------------------------------------------------------------------------------------
    def run(self) -> Outcome:
        """Violation if a promise is broken."""
        for host in self.hosts:
            self.world.at(self.random.randint(0, SECOND), host.start)
        for client in [*self.producers, *self.consumers, *self.readers]:
            self.world.at(self.random.randint(0, 2 * SECOND), client.start)
        if self.faults:
            self.world.at(SECOND, self._fault)
        self.world.run_until(EPOCH + int(self.seconds * SECOND))
        self._heal()
        self._come_to_rest()
        self._check()
        return self._outcome()

    # -- faults ---------------------------------------------------------------------------------
    def _fault(self) -> None:
        if self.world.seconds() >= self.seconds:
            return
        draw = self.random.random()
        if draw < 0.35:
            self._crash()
        elif draw < 0.45:
            self._stop()
        elif draw < 0.60:
            self._partition()
        elif draw < 0.70:
            self._cut()
        elif draw < 0.78:
            self.network.slow[self._somewhere()] = self.random.choice((5, 50))
        elif draw < 0.84:
            self.random.choice(self.hosts).disk.slow = self.random.choice((1, 20))
        elif draw < 0.87:
            self.random.choice(self.hosts).disk.fail_next_sync()
        elif draw < 0.94:
            self.random.choice(self.consumers[:-1]).move(self._somewhere())
        else:
            self._restart_client()
        self.world.at(self.random.randint(1, 2 * self.fault_every_ns), self._fault)

    def _crash(self) -> None:
        host = self.random.choice(self.hosts)
        if host.up:
            self.crashes += 1
            host.crash()
            self._start_later(host)

    def _stop(self) -> None:
        host = self.random.choice(self.hosts)
        if host.up:
            host.stop()
            self._start_later(host)

    def _start_later(self, host: Host) -> None:
        self.world.at(self.random.randint(1, 4 * SECOND), lambda: self._start(host))

    def _start(self, host: Host) -> None:
        if not host.up:
            host.start()

    def _partition(self) -> None:
        first, second = self._somewhere(), self._somewhere()
        if first != second:
            self.network.block(first, second)
            if self.random.random() < 0.6:
                self.network.block(second, first)
            self.world.at(self.random.randint(1, 12 * SECOND), self.network.heal)

    def _cut(self) -> None:
        connections = sorted(self.network.streams)
        if connections:
            self.network.cut_connection(self.random.choice(connections))

    def _restart_client(self) -> None:
        client = self.random.choice([*self.readers, *self.consumers])
        if client.up:
            client.kill()
            self.world.at(self.random.randint(1, 2 * SECOND), client.start)

    # -- rest -----------------------------------------------------------------------------------
    def _heal(self) -> None:
        self.faults = False
        self.network.heal()
        for host in self.hosts:
            host.disk.slow = 1
            if not host.up:
                host.start()
        for client in [*self.consumers, *self.readers]:
            if not client.up:
                client.start()

    def _come_to_rest(self) -> None:
        limit = self.world.now + HEAL_SECONDS_MAX * SECOND
        while self.world.now < limit:
            self.world.run_until(self.world.now + SECOND)
            for host in self.hosts:
                if not host.up:
                    host.start()
            if self._at_rest():
                return
        raise Violation(f"no rest {HEAL_SECONDS_MAX} s after healing: {self._left()}")

    def _at_rest(self) -> bool:
        return all(producer.done() for producer in self.producers) and not self._left()

    def _left(self) -> list[str]:
        """Messages that are still somewhere, by node and queue."""
        left = [
            f"{producer.name} waits for {sorted(producer.open)[:5]}"
            for producer in self.producers
            if producer.open
        ]
        for host in self.hosts:
            if host.node is None:
                left.append(f"{host.name} is down")
                continue
            for queue in host.node.broker.queues.values():
                if queue.durable and queue.message_count + queue.pending > 0:
                    left.append(f"{host.name}:{queue.name}={queue.message_count}")
        return left

    def _check(self) -> None:
        missing = self.ledger.missing()
        if missing:
            raise Violation(f"{len(missing)} confirmed messages lost: {missing[:5]}")
        for host in self.hosts:
            assert host.node is not None
            host.node.validate()

    def _outcome(self) -> Outcome:
        outcome = Outcome()
        for key in sorted(self.ledger.delivered):
            self.world.note(f"delivered {key} {self.ledger.delivered[key]}")
        outcome.digest = self.world.digest()
        outcome.virtual_seconds = self.world.seconds()
        outcome.steps = self.world.steps
        outcome.confirmed = len(self.ledger.confirmed)
        outcome.crashes = self.crashes
        outcome.redeliveries = self.ledger.redelivered
        return outcome


def story_of(scenario: Scenario, text: str, lines_max: int = 40) -> list[str]:
    """The last things that happened, those that name `text` first."""
    named = [line for line in scenario.world.story if text and text in line[1]]
    chosen = (named + scenario.world.story)[-lines_max:]
    return [f"{(when - EPOCH) / SECOND:12.6f}  {line}" for when, line in chosen]
