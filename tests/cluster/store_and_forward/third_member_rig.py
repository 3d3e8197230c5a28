"""Three nodes: n0 sends to all, n1 goes away with messages parked for it, n2 keeps its own in its queue."""

from __future__ import annotations

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from tests.cluster.cluster_rig import Client, Rig, cluster_of, count, remote_consumers, waiting
from tests.cluster.scale_down.scale_down_rig import held

TIMEOUT = 10  # seconds, the default


def numbered(count: int) -> list[int]:
    return list(range(count))


class Third:
    """`total` numbered messages of one producer at n0: half of them for n1, which gets none, the others at n2.

    `delay_ms`: of redistribution at n2.
    """

    def __init__(
        self,
        total: int = 20,
        memory_bytes: int = 100 << 20,
        body_bytes: int = 0,
        delay_ms: int = -1,
    ) -> None:
        self.rig = Rig()
        self.total = total
        self.body_bytes = body_bytes
        self.near = self.rig.node()
        self.away = self.rig.node()
        self.third = self.rig.node(memory_bytes=memory_bytes, delay_ms=delay_ms)
        self.rig.form()
        self.producer = self.rig.client(self.near)
        self.slow = self.slow_consumer(self.third)
        self._attended(self.third)
        self.slow_consumer(self.away)
        self._attended(self.away)
        self.rig.network.block("n0", "n1")
        self._publish_all(0, total)
        self.rig.until(lambda: count(self.third, "orders") == total // 2)
        self.rig.until(lambda: waiting(self.near, "node-1") == total // 2)
        parked = held(self.near, "$.artemis.internal.sf.test.node-1")
        self.parked = [int(body[:5]) for body in parked]  # numbers of the messages for n1
        self.kept = [number for number in range(total) if number not in self.parked]  # of those at n2

    def _attended(self, host: Host, consumers: int = 1) -> None:
        self.rig.until(lambda: remote_consumers(self.near, host, "orders") == consumers)

    def _publish_all(self, first: int, end: int) -> None:
        for number in range(first, end):
            self.publish(number)
            if number % 20 == 19:
                self.rig.run(0.02)  # the link takes what its window allows, and no more

    def publish(self, number: int, **properties: object) -> None:
        body = b"%05d" % number + bytes(self.body_bytes)
        self.producer.publish("orders", body, ANYCAST, **properties)

    def slow_consumer(self, host: Host) -> Client:
        """Takes one message, and never acknowledges it."""
        client = self.rig.client(host)
        client.on_packet = lambda packet: None  # type: ignore[method-assign]
        client.send(CreateConsumer(consumer_id=0, queue="orders"))
        client.send(FlowToken(0, 1))
        return client

    def crash_away(self) -> None:
        self.away.crash()
        self.rig.network.heal()

    def block_third(self, more: int = 0) -> None:
        """Moves what was parked for n1 to n0's store-and-forward queue of n2, behind `more` others, and no further."""
        bridge = cluster_of(self.near).peers["node-2"].bridge
        assert bridge is not None
        bridge.outgoing.credits.by_address.clear()
        self.rig.network.block("n0", "n2")
        self._publish_all(self.total, self.total + more)
        self.rig.until(lambda: waiting(self.near, "node-2") == more)
        self.rig.until(lambda: waiting(self.near, "node-2") == more + self.total // 2, TIMEOUT)

    def until_all_there(self) -> None:
        """n2 has all of them."""
        self.rig.until(lambda: count(self.third, "orders") == self.total, TIMEOUT + 20)
        assert waiting(self.near, "node-1") == 0

    def taken(self, host: Host, total: int = -1, seconds: float = 20) -> list[int]:
        """Returns what a consumer gets there, until it has them all, and a second more."""
        client = self.rig.consuming(host)
        wanted = self.total if total < 0 else total
        self.rig.until(lambda: len(client.bodies) >= wanted, seconds)
        self.rig.run(1)
        client.close()
        return [int(body[:5]) for body in client.bodies]
