"""A node without a cluster connection is found by UDP: its broadcast groups announce it, as in Artemis."""

from __future__ import annotations

import random
from pathlib import Path

from atalanta.kernel.ports import Links
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import Node
from atalanta.sim.world.disk import SimDisk
from atalanta.store.config import JournalConfig
from atalanta.wire.core.broadcast_datagram import decode_announcement
from tests.config.core_xml import read
from tests.kernel.broker_rig import START, CountingIds, RecordingTimers, RecordingTrace
from tests.wire.core.server.server_rig import RecordingWire

CORE = """
<connectors><connector name="own">tcp://broker-a:61616</connector></connectors>
<broadcast-groups>
   <broadcast-group name="bg">
      <group-address>231.7.7.7</group-address><group-port>9876</group-port>
      <connector-ref>own</connector-ref>
   </broadcast-group>
</broadcast-groups>
<acceptors><acceptor name="own">tcp://0.0.0.0:61616</acceptor></acceptors>
"""


class RecordedGroups(Links):
    """The groups that a node has joined, and what it has sent to them."""

    def __init__(self) -> None:
        self.joined: list[tuple[str, int]] = []
        self.sent: list[bytes] = []

    def join_to_send(self, group: str, address: str, port: int, interface: str, local_port: int) -> None:
        self.joined.append((address, port))

    def multicast(self, group: str, data: bytes) -> None:
        self.sent.append(data)


def test_a_node_without_a_cluster_connection_announces_its_connectors(tmp_path: Path) -> None:
    found = read(tmp_path, CORE)
    assert found.cluster_settings() is None
    links, calls = RecordedGroups(), []
    disk = SimDisk(lambda _, call: calls.append(call), random.Random(1))
    ports = Ports(RecordingWire(), disk, RecordingTimers(), links, CountingIds(), RecordingTrace())
    config = NodeConfig(
        "node-a", found.broker, AddressSettingsRepository(), Security(False), JournalConfig(bytes(16)),
        found.acceptors, bridges=found.bridge_settings(),
    )  # fmt: skip
    node = Node(config, ports)
    node.recover(START)
    node.start(START)
    assert links.joined == [("231.7.7.7", 9876)]
    [connector] = decode_announcement(links.sent[0]).connectors
    assert (connector.host, connector.port) == ("broker-a", 61616)
