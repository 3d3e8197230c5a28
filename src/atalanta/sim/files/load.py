"""The load of a rehearsal: producers with a rate, and consumers, for one address each."""

from __future__ import annotations

from dataclasses import dataclass, field

from atalanta.kernel.queue import ANYCAST, MULTICAST
from atalanta.message import Byte, Message
from atalanta.sim.clients.client import SimClient, then
from atalanta.sim.clients.queue_client import QueueClient, key_of
from atalanta.sim.files.world import FileWorld
from atalanta.sim.host import Host
from atalanta.sim.world.world import SECOND
from atalanta.wire.core.client import Delivery, Reply

OPEN_MAX = 100  # sent and not confirmed
CREDIT_BYTES = 100_000


@dataclass
class RehearsalLoad:
    """A load: `rate` messages a second for `address`, sent at node `source` and consumed at `targets` from `queue`."""

    address: str
    source: str
    targets: list[str]
    rate: float
    queue: str
    multicast: bool = False


@dataclass
class LoadTally:
    """The results of one load. `got` counts messages by node, `waited_ns` are times from the send to the delivery."""

    load: RehearsalLoad
    sent: int = 0
    confirmed: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    got: dict[str, int] = field(default_factory=dict)
    repeats: int = 0
    marked_repeats: int = 0
    sent_at: dict[str, int] = field(default_factory=dict)
    confirmed_keys: dict[str, bool] = field(default_factory=dict)
    arrived: dict[str, int] = field(default_factory=dict)
    waited_ns: list[int] = field(default_factory=list)
    confirmed_at: int = 0
    pause_ns: int = 0  # the longest time between two confirmations

    def note_confirmed(self, now: int, key: str) -> None:
        """Records a confirmation."""
        if self.confirmed:
            self.pause_ns = max(self.pause_ns, now - self.confirmed_at)
        self.confirmed_at = now
        self.confirmed += 1
        self.confirmed_keys[key] = True

    def missing(self) -> int:
        """Returns the number of confirmed messages without a delivery; without consumers it is 0."""
        if not self.load.targets:
            return 0
        return sum(1 for key in self.confirmed_keys if key not in self.arrived)


class FileClient(SimClient):
    """A client of a node that a file describes. It uses the node's first acceptor, and those of its group in turn."""

    def at_node(self, hosts: list[Host]) -> None:
        self.servers = [(host.address, host.port) for host in hosts]
        self.retry_ns = SECOND // 2

    def _dial(self) -> None:
        host, port = self.servers[self.attempts % len(self.servers)]
        self.network.dial(self, f"{self.life}", host, port)


class FileProducer(FileClient):
    """A producer of durable messages, confirmed one by one. After a lost connection it repeats with the same ids."""

    def __init__(self, world: FileWorld, name: str, host: Host, tally: LoadTally) -> None:
        super().__init__(world.world, world.network, name, host.address)
        self.at_node(world.members(host.name))
        self.tally = tally
        self.open: dict[int, bool] = {}
        self.next = 0
        self.stopped = False
        self.pause_ns = int(SECOND / tally.load.rate)

    def on_session(self) -> None:
        self.producer = self.session.producer(self.tally.load.address)
        self._tick_load()

    def _tick_load(self) -> None:
        if self.stopped:
            return
        if self.ready and len(self.open) < OPEN_MAX:
            number = self.next
            self.next += 1
            self.open[number] = True
            self.tally.sent += 1
            self.tally.sent_at[f"{self.name}/{number}"] = self.world.now
            self._transmit(number)
        self.in_session(self.pause_ns, self._tick_load)

    def _transmit(self, number: int) -> None:
        key = f"{self.name}/{number}"
        load = self.tally.load
        message = Message.create(
            load.address, key.encode(), 4, True, self.world.now // 1_000_000, 4
        )
        message.properties.put("key", key)
        message.properties.put("_AMQ_DUPL_ID", key)
        kind = MULTICAST if load.multicast else ANYCAST
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(kind))
        message.properties_changed()
        sending = self.producer.send_message(message)
        sending.reply = reply = Reply()
        then(reply, lambda reply: self._answered(number, reply))

    def _answered(self, number: int, reply: Reply) -> None:
        self.open.pop(number, None)
        if reply.error is None:
            self.tally.note_confirmed(self.world.now, f"{self.name}/{number}")
        else:
            text = reply.error.text
            self.tally.refused[text] = self.tally.refused.get(text, 0) + 1




class FileConsumer(FileClient, QueueClient):
    """A consumer that acknowledges each message, and counts repeats with and without a redelivery mark.

    `owners` are the tallies of all loads by their producers' names.
    """

    def __init__(
        self, world: FileWorld, name: str, host: Host, tally: LoadTally, owners: dict[str, LoadTally]
    ) -> None:
        QueueClient.__init__(self, world.world, world.network, name, host.address, tally.load.queue)
        self.at_node(world.members(host.name))
        self.credit_bytes = CREDIT_BYTES
        self.tally = tally
        self.owners = owners
        self.label = host.name

    def on_message(self, delivery: Delivery) -> None:
        self._count(key_of(delivery.message), delivery.delivery_count)
        self.consumer.acknowledge_one(delivery)
        self.consumer.handled(delivery.cost)

    def _count(self, key: str, delivery_count: int) -> None:
        """Counts a message for the load that sent it, since several loads may share a queue. Messages that another
        load's address or a divert routed here are counted at that load's own queue."""
        owner = self.owners.get(key.rpartition("/")[0])
        if owner is None or owner.load.queue != self.tally.load.queue:
            return  # of no load, such as a notification of a node
        if key in owner.arrived:
            owner.repeats += 1
            if delivery_count > 1:
                owner.marked_repeats += 1
            return
        owner.arrived[key] = self.world.now
        owner.got[self.label] = owner.got.get(self.label, 0) + 1
        owner.waited_ns.append(self.world.now - owner.sent_at[key])
