"""Networks over TLS: a networkConnector with `ssl://` of a real broker of Classic to our node, and of ours to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.certificates import PASSWORD, Authority
from tests.config.activemq.classic_files import classic_file
from tests.interop.harness.classic import Classic, ClassicBroker, numbers
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


class Stores:
    """One authority, a key for Classic's broker and one for our node, and the trust store of both."""

    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        authority = Authority()
        self.trust = authority.trust_store(folder)
        self.theirs = authority.holder("theirs", host).key_store(folder)
        self.ours = authority.holder("ours", host).key_store(folder)

    def context(self) -> list[str]:
        """Returns the options of a broker of Classic."""
        return [f"keyStore={self.theirs}", f"trustStore={self.trust}", f"storePassword={PASSWORD}"]

    def acceptor(self, port: int, more: str = "") -> str:
        """Returns an acceptor of our node."""
        options = f"protocols=OPENWIRE;sslEnabled=true;keyStorePath={self.ours};keyStorePassword={PASSWORD}"
        trust = f"trustStorePath={self.trust};trustStorePassword={PASSWORD}"
        return f'<acceptor name="secure">tcp://127.0.0.1:{port}?{options};{trust}{more}</acceptor>'


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("stores"))


class Pair:
    """A broker of Classic and our node. Clients reach both without TLS, at `there` and `here`."""

    def __init__(self, classic: Classic, node: BrokerProcess) -> None:
        self.classic = classic
        self.node = node
        self.secure: int = free_port()  # where the end with TLS listens
        self.broker: ClassicBroker | None = None
        self.here = f"tcp://127.0.0.1:{node.port}"

    def start_classic(self, stores: Stores, *options: str) -> ClassicBroker:
        self.broker = self.classic.broker("classic", None, *stores.context(), *options)
        return self.broker

    def start_node(self, acceptor: str = "", network: str = "") -> None:
        """Starts our node with a further acceptor and with the content of its atalanta.toml."""
        path = (self.node.folder / "etc" / "broker.xml")
        path.write_text(path.read_text().replace("</acceptors>", f"{acceptor}</acceptors>"))
        (path.parent / "atalanta.toml").write_text(network)
        self.node.start()

    def serves_both_directions(self) -> None:
        """Sends over a duplex bridge from either broker to a consumer at the other one."""
        assert self.broker is not None
        for sender, receiver, queue in ((self.broker.url, self.here, "a"), (self.here, self.broker.url, "b")):
            consumer = self.classic.consumer(receiver, f"queue:{queue}")
            self.classic.send(sender, f"queue:{queue}", range(20))
            assert self.classic.receive(consumer, 20) == numbers(0, 20) and self.classic.rest(consumer) == []

    def tells(self, event: str) -> str:
        """Waits for an event of our node, and returns its line of the log."""
        found: list[str] = []

        def told() -> bool:
            found[:] = [line for line in self.node.log.read_text().splitlines() if event in line]
            return found != []

        until(event, told)
        return found[0]


@pytest.fixture
def pair(classic: Classic, brokers: Lineup) -> Iterator[Pair]:
    """A pair; none of them runs."""
    made = Pair(classic, brokers.openwire())
    yield made
    classic.close_all()
    made.node.close()
    if made.broker is not None:
        made.broker.stop()


USER = ("userName=neighbour", "password=neighbour")


@pytest.mark.parametrize("more", ["", ";needClientAuth=true"], ids=["server", "both"])
def test_a_connector_of_classic_leads_to_our_acceptor(pair: Pair, stores: Stores, more: str) -> None:
    """With the certificate of our node alone, and of both ends."""
    pair.start_node(stores.acceptor(pair.secure, more))
    broker = pair.start_classic(stores)
    broker.connect(f"static:(ssl://127.0.0.1:{pair.secure})", *USER, "duplex=true")
    until("the bridge is up", lambda: len(broker.bridges()) == 1)
    pair.serves_both_directions()


@pytest.mark.parametrize("side", ["theirs", "ours"])
def test_a_broker_of_another_authority_does_not_come_in(
    pair: Pair, stores: Stores, tmp_path: Path, side: str
) -> None:
    """Neither does Classic's connector take our certificate, nor our acceptor that of Classic's broker."""
    strange = Stores(tmp_path)
    pair.start_node(stores.acceptor(pair.secure, ";needClientAuth=true"))
    if side == "theirs":
        strange.trust = stores.trust  # it believes us, and has a key of another authority
    else:
        strange.theirs = stores.theirs  # we believe it, and it does not believe us
    broker = pair.start_classic(strange)
    broker.connect(f"static:(ssl://127.0.0.1:{pair.secure})", *USER)
    pair.tells("tls_refused")
    assert broker.bridges() == []
    consumer = pair.classic.consumer(pair.here, "queue:a")
    pair.classic.send(broker.url, "queue:a", range(2))
    assert pair.classic.rest(consumer) == [] and broker.depth("queue:a") == (2, 0)


def network(pair: Pair, options: str) -> str:
    """Returns the atalanta.toml of a duplex connector to the TLS port of Classic."""
    uri = f"static:(ssl://127.0.0.1:{pair.secure}?{options})"
    return f'[networks.NC]\nuri = "{uri}"\nduplex = true\nuserName = "neighbour"\npassword = "neighbour"\n'


def trusting(stores: Stores) -> str:
    return f"trustStorePath={stores.trust}&trustStorePassword={PASSWORD}"


@pytest.mark.parametrize("certified", [False, True], ids=["server", "both"])
def test_our_connector_leads_to_classic(pair: Pair, stores: Stores, certified: bool) -> None:
    """The stores are parameters of its address."""
    asking = ["secureOptions=needClientAuth=true"] if certified else []
    pair.start_classic(stores, f"secure={pair.secure}", *asking)
    key = f"&keyStorePath={stores.ours}&keyStorePassword={PASSWORD}" if certified else ""
    pair.start_node(network=network(pair, trusting(stores) + key))
    pair.tells("network_bridge_connected")
    pair.serves_both_directions()


def test_the_stores_of_activemq_xml_are_those_of_its_connectors(pair: Pair, stores: Stores) -> None:
    """Our node runs with a file of Classic, whose <sslContext> has the stores of both directions."""
    pair.start_classic(stores, f"secure={pair.secure}", "secureOptions=needClientAuth=true")
    classic_file(
        pair.node.folder,
        f'<networkConnectors><networkConnector uri="static:(ssl://127.0.0.1:{pair.secure})" duplex="true"/>'
        f'</networkConnectors><sslContext><sslContext keyStore="file:{stores.ours}" keyStorePassword="{PASSWORD}"'
        f' trustStore="file:{stores.trust}" trustStorePassword="{PASSWORD}"/></sslContext>'
        f'<transportConnectors><transportConnector uri="tcp://127.0.0.1:{pair.node.port}"/></transportConnectors>',
        'brokerName="ours" dataDirectory="${activemq.data}"',
    )
    pair.node.start()
    pair.tells("network_bridge_connected")
    pair.serves_both_directions()


@pytest.mark.parametrize(
    ("host", "options", "says"),
    [
        ("127.0.0.1", lambda stores: "", "certificate verify failed"),
        ("elsewhere", trusting, "not valid for '127.0.0.1'"),
        ("127.0.0.1", trusting, "asks for one: see keyStorePath"),
    ],
    ids=["authority", "host", "key"],
)
def test_our_connector_says_why_it_does_not_come_in(
    pair: Pair, tmp_path: Path, host: str, options: Callable[[Stores], str], says: str
) -> None:
    """An unknown authority, a certificate for another host, and none of its own where Classic asks for one."""
    stores = Stores(tmp_path, host)
    asking = ["secureOptions=needClientAuth=true"] if "keyStorePath" in says else []
    broker = pair.start_classic(stores, f"secure={pair.secure}", *asking)
    pair.start_node(network=network(pair, options(stores)))
    why = pair.tells("network_bridge_refused" if asking else "network_bridge_connect_failed")
    assert says in why
    consumer = pair.classic.consumer(broker.url, "queue:b")
    pair.classic.send(pair.here, "queue:b", range(2))
    assert pair.classic.rest(consumer) == []


def test_our_connector_need_not_compare_the_name_of_the_host(pair: Pair, tmp_path: Path) -> None:
    stores = Stores(tmp_path, "elsewhere")
    pair.start_classic(stores, f"secure={pair.secure}")
    pair.start_node(network=network(pair, trusting(stores) + "&socket.verifyHostName=false"))
    pair.tells("network_bridge_connected")
    pair.serves_both_directions()
