"""A node on a machine of its own whose cable is pulled: the check of the network as it is without any command.

Part of `make soak`, which sets ATALANTA_SOAK; needs root and `ip`.
"""

from __future__ import annotations

import signal
from pathlib import Path

from tests.broker_xml import write_broker_xml
from tests.namespaces.network import MARKS, PORT, Namespaces, until

pytestmark = MARKS


def test_a_pulled_cable_stops_the_node_until_it_is_plugged_in_again(tmp_path: Path) -> None:
    with Namespaces(["a", "gateway"]) as network:
        more = (
            f"<network-check-list>{network.address('gateway')}</network-check-list>"
            "<network-check-period>200</network-check-period>"
            "<network-check-timeout>300</network-check-timeout>"
            "<network-check-NIC>e0</network-check-NIC>"
            '<addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>'
        )
        broker_xml = write_broker_xml(tmp_path, PORT, more=more)
        log = tmp_path / "log"
        text = broker_xml.read_text(encoding="utf-8").replace("127.0.0.1", network.address("a"))
        broker_xml.write_text(text, encoding="utf-8")
        node = network.start("a", log, "-m", "atalanta", "run", str(broker_xml))

        def logged(words: str, times: int = 1) -> None:
            until(words, lambda: log.read_text(encoding="utf-8").count(words) >= times)

        logged("node_ready")
        sent = network.client("gateway", "send", network.url("a"), "orders", 0, 20)
        assert sent.result() == 20
        network.pull("a")
        logged("node_stopped")
        network.plug("a")
        logged("node_ready", 2)
        coming = network.client("gateway", "receive", network.url("a"), "orders", 20, 60)
        assert coming.result() == list(range(20))
        node.send_signal(signal.SIGTERM)
        node.wait(60)
