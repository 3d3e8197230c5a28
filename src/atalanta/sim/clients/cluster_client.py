"""A simulated program that consumes one queue at all members of the cluster, as `consumer(…, members="all")` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.client import SimClient, then
from atalanta.sim.clients.queue_client import key_of
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client import (
    CallTimedOut,
    ClientSession,
    Delivery,
    Member,
    MemberConsumers,
    MemberPort,
    Reply,
)

POLL_NS: Final = 50_000_000


class MemberLink(SimClient):
    """The connection to one member."""

    def __init__(self, links: MemberLinks, member: Member) -> None:
        owner = links.owner
        name = f"{owner.name}/{owner.life}/{member.node_id}"
        super().__init__(owner.world, owner.network, name, member.host or "")
        self.links = links
        self.node_id = member.node_id

    def on_session(self) -> None:
        """The consumers know the session."""

    def on_lost(self) -> None:
        self.links.lost(self)

    def on_dial_failed(self, key: str, why: str) -> None:
        super().on_dial_failed(key, why)
        self.links.lost(self)


class MemberLinks(MemberPort):
    """The connections to the members, in one life of the program."""

    consumers: MemberConsumers

    def __init__(self, owner: ClusterClient) -> None:
        self.owner = owner
        self.by_node: dict[str, MemberLink] = {}
        self.ended = False

    def dial(self, member: Member) -> ClientSession:
        link = self.by_node[member.node_id] = MemberLink(self, member)
        link.start()
        return link.session

    def hang_up(self, node_id: str) -> None:
        link = self.by_node.pop(node_id)
        link.engine.close()
        link.kill()

    def lost(self, link: MemberLink) -> None:
        """Tells the consumers, unless the connection was given up."""
        if self.by_node.get(link.node_id) is link and not self.ended:
            self.consumers.lost(link.node_id)

    def later(self, delay_ns: int, call: Callable[[], None]) -> None:
        self.owner.world.at(delay_ns, lambda: None if self.ended else call())

    def warn(self, text: str) -> None:
        self.owner.world.note(f"{self.owner.name}: {text}")

    def end(self) -> None:
        """Kills all connections with the program."""
        self.ended = True
        for link in self.by_node.values():
            link.kill()


class ClusterClient(SimClient):
    """The program. Its own connection, to `target`, names the members."""

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger, queue: str, window: int
    ) -> None:
        super().__init__(world, network, name, target)
        self.ledger = ledger
        self.queue = queue
        self.random = world.random(f"cluster/{name}")
        self.window = window
        self.cumulative = self.random.random() < 0.3
        self.polls = self.random.random() < 0.3
        # So slow that an acknowledgement of several messages is one of several members.
        self.slowness_ns = 2 * SECOND if self.cumulative else self.random.choice((1_000_000, 30_000_000))
        self.links: MemberLinks | None = None
        self.held: list[Delivery] = []

    def start(self) -> None:
        if self.up:
            return
        super().start()
        links = self.links = MemberLinks(self)
        links.consumers = MemberConsumers(links, self.queue, None, False, 0, self.window, self.cumulative)
        self._wait(links)

    def kill(self) -> None:
        if self.links is not None:
            self.links.end()
        self.links = None
        self.held = []
        super().kill()

    def on_session(self) -> None:
        """The topology comes by itself."""

    def on_topology(self) -> None:
        engine = self.engine
        if self.links is not None and engine.topology_complete:
            self.links.consumers.topology([each for each in engine.topology.values() if each.host])

    # -- receiving ------------------------------------------------------------------------------
    def _wait(self, links: MemberLinks) -> None:
        """Waits for the next message, or asks for one again and again."""
        if links.ended:
            return
        consumers = links.consumers
        if self.polls:
            then(consumers.available(), lambda reply: links.later(POLL_NS, lambda: self._take(links)))
        else:
            then(consumers.arrival(), lambda reply: links.later(0, lambda: self._take(links)))

    def _take(self, links: MemberLinks) -> None:
        """Takes a message, and acknowledges it a little later."""
        if self.random.random() < 0.05:
            links.consumers.withdraw()  # a wait in vain
        delivery = links.consumers.take()
        if delivery is not None:
            self._taken(links, delivery)
        self._wait(links)

    def _taken(self, links: MemberLinks, delivery: Delivery) -> None:
        key = key_of(delivery.message)
        link = links.by_node[links.consumers.node_id_of(delivery)]
        self.ledger.deliver(self.queue, key, link.name, self.network.left_at(link.conn))
        self.held.append(delivery)
        links.later(self.random.randint(0, self.slowness_ns), lambda: self._acknowledge(links, delivery))

    def _acknowledge(self, links: MemberLinks, delivery: Delivery) -> None:
        if delivery not in self.held:
            return
        if delivery.lost:
            self.held.remove(delivery)
            return
        ended = self.held[: self.held.index(delivery) + 1] if self.cumulative else [delivery]
        self.held = [each for each in self.held if each not in ended]
        alive = [each for each in ended if not each.lost]
        for each in alive:
            self.ledger.acknowledge(self.queue, key_of(each.message))
        reply = links.consumers.acknowledge_and_wait(delivery, not self.cumulative)
        then(reply, lambda reply: self._acknowledged(alive, reply))

    def _acknowledged(self, ended: list[Delivery], reply: Reply) -> None:
        """Settles the messages. The answer to a lost connection settles nothing."""
        error = reply.error
        if error is None:
            for each in ended:
                self.ledger.settle(self.queue, key_of(each.message))
        elif isinstance(error, CallTimedOut):
            self.restart()
        elif not any(each.lost or each.consumer.failed is not None for each in ended):
            raise Violation(f"{self.name}: {error.text}")
