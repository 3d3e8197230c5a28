"""TLS and hashed passwords with the real ones: JMS clients, and a cluster of both kinds of node."""

from __future__ import annotations

import pytest

from atalanta.config.users.users_file import UserFiles
from atalanta.kernel.security.password import hash_password
from tests.interop.harness.broker_xml import USERS
from tests.interop.harness.jms import Jms, JmsError, run_scenarios, until
from tests.interop.harness.lineup import KINDS, Lineup
from tests.interop.harness.tls import Stores, change

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

SCENARIOS = "security.*,bodies.*,transactions.*"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("stores"))


@pytest.mark.parametrize("kind", KINDS)
def test_jms_over_tls_with_hashed_passwords(kind: str, brokers: Lineup, stores: Stores) -> None:
    node = brokers.single(kind)
    change(node, "?protocols=CORE", f"?protocols=CORE;{stores.asking()}")
    users = UserFiles(node.folder / "etc")
    for name, (password, _) in USERS.items():
        users.reset(name, hash_password(password, name.encode() * 4), None)
    node.start()
    url = f"{node.url}&{stores.connector('&')}"
    results, output = run_scenarios(f"{url}&{stores.client_key('&')}", "--only", SCENARIOS)
    assert len(results) > 10, output
    assert {name: why for name, why in results.items() if why} == {}, output
    # Without a certificate of its own nobody gets in.
    results, output = run_scenarios(url, "--only", "bodies.text", "--seconds", "20")
    assert results and all(results.values()), output
    node.stop()


MODULES = "org.apache.activemq.artemis.spi.core.security.jaas"
LOGIN = f"""activemq {{
   {MODULES}.PropertiesLoginModule sufficient
       org.apache.activemq.jaas.properties.user="artemis-users.properties"
       org.apache.activemq.jaas.properties.role="artemis-roles.properties";
   {MODULES}.TextFileCertificateLoginModule sufficient
       org.apache.activemq.jaas.textfiledn.user="subjects.properties"
       org.apache.activemq.jaas.textfiledn.role="subject-roles.properties";
}};
"""


@pytest.mark.parametrize("kind", KINDS)
def test_users_by_client_certificate(
    kind: str, brokers: Lineup, jms: Jms, stores: Stores
) -> None:
    node = brokers.single(kind)
    change(node, "?protocols=CORE", f"?protocols=CORE;{stores.asking()}".replace("need", "want"))
    etc = node.folder / "etc"
    (etc / "login.config").write_text(LOGIN)
    (etc / "subjects.properties").write_text("robot=CN=client\n")
    (etc / "subject-roles.properties").write_text("amq=robot\n")
    node.start()
    without = f"{node.url}&{stores.connector('&')}"
    certified = f"{without}&{stores.client_key('&')}"
    jms("open", "robot", certified, "", "")
    producer = jms.producer("p", "robot", "queue:certified")
    jms.send(producer, range(3))
    jms("open", "person", without, "admin", "admin")
    consumer = jms.consumer("c", "person", "queue:certified")
    assert jms.collect([consumer], 3) == [["0", "1", "2"]]
    with pytest.raises(JmsError, match="AMQ229031|unable to validate"):
        jms("open", "stranger", without, "robot", "")
    jms.close_all("robot", "person")
    node.stop()


def test_a_mixed_cluster_over_tls(brokers: Lineup, jms: Jms, stores: Stores) -> None:
    nodes = brokers.pair("artemis+atalanta")
    for node in nodes:
        change(node, "?protocols=CORE", f"?protocols=CORE;{stores.acceptor()}")
        for each in nodes:
            old = f"tcp://127.0.0.1:{each.port}</connector>"
            change(node, old, f"tcp://127.0.0.1:{each.port}?{stores.connector()}</connector>")
        node.start()
    urls = [f"{node.url}&{stores.connector('&')}" for node in nodes]

    def members(url: str) -> int:
        return len(jms("topology", url, "admin", "admin"))

    for url in urls:
        until("each knows the other", lambda url=url: members(url) == 2)  # type: ignore[misc]
    for sender, receiver in ((0, 1), (1, 0)):
        queue = f"queue:tls{sender}"
        for name, url in (("s", urls[sender]), ("r", urls[receiver])):
            jms("open", f"{name}{sender}", url, "admin", "admin")
        consumer = jms.consumer(f"c{sender}", f"r{sender}", queue)
        producer = jms.producer(f"p{sender}", f"s{sender}", queue)
        jms.send(producer, range(-1, 0))
        until("a message crosses", lambda c=consumer: bool(jms.receive(c, 1)))  # type: ignore[misc]
        jms.send(producer, range(10))
        assert jms.collect([consumer], 10) == [[str(n) for n in range(10)]]
        jms.close_all(f"s{sender}", f"r{sender}")
    for node in nodes:
        node.stop()
