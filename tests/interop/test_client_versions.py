"""JMS clients of Artemis 1.4 to 2.56, javax and jakarta, whose node goes and comes back, and over a pair.

`--target artemis` asks a real Artemis 2.44 the same.
"""

from __future__ import annotations

import subprocess

import pytest

from atalanta.client.blocking import connect
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.client_versions import JAKARTA, PREFIXES, VERSIONS_1X, client_class_path
from tests.interop.harness.failover import Failover
from tests.interop.harness.jms import PASSWORD, USER, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.shared_store import share
from tests.interop.harness.tools import SMALL_JVM, java

pytestmark = [pytest.mark.interop, pytest.mark.versions, pytest.mark.timeout(300)]

JAVAX = ("2.6.4", "2.16.0", "2.28.0", "2.40.0", "2.54.0")  # the last one
VERSIONS = (*JAVAX, f"2.28.0{JAKARTA}", f"2.40.0{JAKARTA}", f"2.56.0{JAKARTA}")
QUEUE = '<address name="both"><anycast><queue name="both"/></anycast></address>'
STEPS = ["old producer", "new producer", "temporary queue", "topic", "transaction"]
SHARED = "<ha-policy><shared-store>{role}</shared-store></ha-policy>"
ROLES = ("<primary><failover-on-shutdown>true</failover-on-shutdown></primary>", "<backup/>")
OPTIONS = "ha=true&reconnectAttempts=-1&retryInterval=100&callTimeout=5000"


def announces(node: BrokerProcess, backup: BrokerProcess) -> bool:
    """Whether the topology of the node has its backup: a client that comes before does not learn of it."""
    with connect(f"tcp://127.0.0.1:{node.port}", user=USER, password=PASSWORD) as connection:
        return str(backup.port) in str(connection.management().call("broker", "listNetworkTopology"))


@pytest.mark.parametrize("ending", ["stop", "kill"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_goes_on_when_its_node_is_back(target: str, brokers: Lineup, version: str, ending: str) -> None:
    """Its login after a reconnect names the node's version, not its own."""
    (node,) = brokers.cluster(target, lambda index, ports: Shape(Cluster(), addresses=QUEUE))
    node.start()
    url = f"tcp://127.0.0.1:{node.port}?{OPTIONS}"
    command = [java(), *SMALL_JVM, "-cp", client_class_path(version), "atalanta.interop.Reconnect", url]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True) as client:
        assert client.stdin is not None and client.stdout is not None
        seen = [client.stdout.readline()]
        while seen[-1] not in ("before\n", ""):
            seen.append(client.stdout.readline())
        getattr(node, ending)()
        node.start()
        rest, _ = client.communicate("\n")
    steps = [line for line in rest.splitlines() if line in STEPS]
    assert steps == STEPS, "".join(seen) + rest
    node.stop()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("ending", ["stop", "kill"])
@pytest.mark.parametrize("version", [*VERSIONS_1X, *VERSIONS])
def test_the_clients_follow_a_pair(target: str, brokers: Lineup, version: str, ending: str) -> None:
    def shaping(index: int, ports: list[int]) -> Shape:
        core = SHARED.format(role=ROLES[index])
        return Shape(Cluster((ports[1 - index],)), core=core)

    primary, backup = brokers.cluster(f"{target}+{target}", shaping)
    share(primary.folder / "data", backup.folder / "data")
    for node in (primary, backup):
        path = node.folder / "etc" / "broker.xml"
        path.write_text(path.read_text().replace("protocols=CORE<", f"protocols=CORE{PREFIXES}<"))
    primary.start()
    backup.launch()
    until("the pair is known", lambda: announces(primary, backup), 40)
    # They take one address, and learn the backup's from the topology.
    with Failover(f"tcp://127.0.0.1:{primary.port}?{OPTIONS}", "orders", classes=client_class_path(version)) as clients:
        clients.working(50)
        getattr(primary, ending)()
        clients.working(100)
        clients.over()
    backup.stop()
