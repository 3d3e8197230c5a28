"""A core bridge whose target left knows where it went, also after a crash: what it sent there last comes once."""

from __future__ import annotations

from typing import Any

from atalanta.cluster.core_bridges.config import CoreBridgeSettings
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.nodes import PORT, queue
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import Rig, count, linked, node_of
from tests.cluster.core_bridges.bridge_rig import bridge, bridge_of, connected
from tests.cluster.scale_down.scale_down_rig import held, leave

BODIES = [b"%d" % number for number in range(5)]
MORE = [b"more %d" % number for number in range(5)]
INBOX = [queue("inbox", "inbox", ANYCAST)]


class Followed:
    """n0 has a bridge to n1, which has left to n2 and is back; the bridge is at n2."""

    def __init__(self, **values: Any) -> None:
        self.rig = rig = Rig()
        settings = self.settings = CoreBridgeSettings()
        settings.bridges = [bridge(producer_window_bytes=-1, **values)]
        for name in ("n1", "n2"):
            settings.connectors[name] = ConnectorConfig(name, name, PORT)
        self.source = rig.node(peers=[], bridges=settings)
        self.target = rig.node(peers=[2], queues=INBOX)
        self.other = rig.node(peers=[1], queues=INBOX)
        for host in rig.hosts:
            host.start()
        rig.until(lambda: linked(self.target) == 1 and linked(self.other) == 1)
        rig.until(lambda: connected(self.source))
        self.publish(BODIES)
        rig.until(lambda: bridge_of(self.source).acknowledged == len(BODIES))
        leave(rig, self.target)
        rig.until(lambda: self.place() == "n2")
        self.target.start()
        rig.until(lambda: linked(self.other) == 1)

    def place(self) -> str:
        target = bridge_of(self.source).targets.current
        return target.transport.host if target is not None and connected(self.source) else ""

    def publish(self, bodies: list[bytes]) -> None:
        self.rig.stored(self.source, "orders", bodies, ANYCAST)

    def crash_without_an_answer(self) -> None:
        """n2 has the messages, and n0 crashes before it knows."""
        self.rig.network.block("n2", "n0")
        self.publish(MORE)
        self.rig.until(lambda: count(self.other, "inbox") == len(BODIES) + len(MORE))
        self.source.crash()
        self.rig.network.heal()

    def sent(self) -> list[bytes]:
        """Returns the messages that have come to the two."""
        self.rig.until(lambda: count(self.source, "orders") == 0, 60)
        return held(self.other, "inbox") + held(self.target, "inbox")


def test_after_a_crash_it_goes_back_to_the_node_that_took_over() -> None:
    play = Followed()
    play.crash_without_an_answer()
    play.source.start()
    assert play.sent() == BODIES + MORE
    assert play.place() == "n2"


def test_with_another_target_in_its_configuration_it_goes_there() -> None:
    play = Followed()
    play.source.crash()
    play.settings.connectors["n1"] = ConnectorConfig("n1", "n9", PORT)
    play.source.start()
    play.rig.run(1)
    current = bridge_of(play.source).targets.current
    assert current is not None and current.transport.host == "n9"


def test_a_bridge_that_went_back_forgets_it() -> None:
    play = Followed(reconnect_attempts_same_node=2)
    play.other.stop()
    play.rig.until(lambda: play.place() == "n1", 60)
    play.other.start()
    play.source.crash()
    play.source.start()
    play.rig.until(lambda: play.place() == "n1")
    assert not node_of(play.source).broker.values.keys("followed.")


def test_nothing_is_kept_of_a_bridge_that_is_gone() -> None:
    play = Followed()
    play.source.crash()
    play.settings.bridges.clear()
    play.source.start()
    assert not node_of(play.source).broker.values.keys("followed.")
