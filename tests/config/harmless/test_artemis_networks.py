"""Attributes of network connectors without effect: clients at both brokers see the same with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.cluster.networks.network_rig import ORDERS, NetworkRig, bridges_of, connector, depth
from tests.config.activemq.classic_files import network_file
from tests.config.harmless.cases import case
from tests.config.harmless.file_server import quiet

MESSAGES = 40


@case("NetworkConnectorConfig", "checkDuplicateMessagesOnDuplex")
def test_a_cut_duplex_bridge_doubles_nothing(tmp_path: Path) -> None:
    """What was under way when the connection was cut goes again, in the direction that the other broker opened."""
    for further in ("", 'checkDuplicateMessagesOnDuplex="true"'):
        path = network_file(tmp_path / f"x{further[-6:-1]}", "n0", 0, "static:(tcp://n1:1)", f'duplex="true" {further}')
        (config,) = quiet(path).networks.connectors
        rig = NetworkRig()
        usual = connector(1)
        a, b = rig.start([replace(config, way=usual.way, user_name=usual.user_name, password=usual.password)], [])
        reader = rig.consumer(a, ORDERS)
        rig.demand(b, ORDERS)
        sender = rig.user(b)
        for number in range(MESSAGES):
            sender.send(str(number), ORDERS)
        rig.until(lambda reader=reader: len(reader.texts) > 3)  # type: ignore[misc]
        link = bridges_of(a)[0].link
        assert link is not None
        rig.network.close(link.conn, "cut")
        link.host.close(link.conn, "cut")
        rig.until(lambda b=b: depth(b, "orders") == 0)  # type: ignore[misc]
        rig.run(2)
        assert sorted(reader.texts, key=str) == sorted(map(str, range(MESSAGES)))
