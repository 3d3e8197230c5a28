"""A node with messages parked for a member: what tests of them begin with."""

from __future__ import annotations

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Client, Rig, cluster_of, remote_consumers, waiting

TIMEOUT = 10  # seconds, the default


def numbers(first: int, end: int) -> list[bytes]:
    return [bytes([number]) for number in range(first, end)]


class Parked:
    """n0 sends `orders`, whose only consumer is at n1; `sent` of them left n0 unanswered, the others did not."""

    def __init__(
        self, nodes: int = 2, sent: int = 0, unsent: int = 5, **properties: object
    ) -> None:
        self.rig = Rig()
        self.hosts = self.rig.cluster(nodes)
        self.far = self.consumer(self.hosts[1])
        self.rig.until(lambda: remote_consumers(self.hosts[0], self.hosts[1], "orders") == 1)
        self.producer = self.rig.client(self.hosts[0])
        if sent:
            # Credits for the address are there: what follows leaves at once.
            self.publish(b"warm")
            self.rig.until(lambda: self.far.bodies and waiting(self.hosts[0], "node-1") == 0)
            self.rig.network.block("n1", "n0")
            for body in numbers(0, sent):
                self.publish(body, **properties)
            self.rig.until(lambda: len(self.far.bodies) == 1 + sent)
            cluster_of(self.hosts[0]).peers["node-1"].bridge.outgoing.credits.by_address.clear()  # type: ignore[union-attr]
        self.rig.network.block("n0", "n1")
        for body in numbers(sent, sent + unsent):
            self.publish(body, **properties)
        self.rig.until(lambda: waiting(self.hosts[0], "node-1") == sent + unsent)

    def publish(self, body: bytes, **properties: object) -> None:
        self.producer.publish("orders", body, ANYCAST, **properties)

    def consumer(self, host: Host, name: str = "orders") -> Client:
        return self.rig.consuming(host, name)

    def crash_far(self) -> None:
        self.hosts[1].crash()
        self.rig.network.heal()
        self.rig.run(0.5)

    def far_is_back(self) -> None:
        self.hosts[1].start()
        self.rig.until(lambda: waiting(self.hosts[0], "node-1") == 0)
        self.rig.run(1)
