"""Connections, users, advisories and temporary destinations, with and without harmless options of activemq.xml."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.activemq import tables
from atalanta.kernel.broker.broker import SWEEP_TIMER
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.connections import RemoveInfo, WireFormatInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQTempQueue, ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import (
    ConnectionId,
    ConsumerId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.commands.producers import DestinationInfo, ProducerInfo, SessionInfo
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of, options_of
from atalanta.wire.openwire.wire_format import WireFormat
from atalanta.wire.protocol import Peer
from atalanta.wire.sniffer import Sniffer
from tests.config.activemq.classic_files import classic_file, findings, read
from tests.config.harmless.cases import case
from tests.config.harmless.classic_node import ClassicFile, attributes, same, warned
from tests.kernel.broker_rig import SECOND
from tests.wire.classic_server import ThreeProtocols
from tests.wire.openwire.server.bridge_rig import bridge
from tests.wire.openwire.server.openwire_rig import OpenWireClient, text

TOPIC = ActiveMQTopic("t")
NOBODYS = ActiveMQTempQueue("ID:nobody:1")
DAY = 86_400 * SECOND


def advisory(*names: str) -> ActiveMQTopic:
    return ActiveMQTopic(",".join(f"ActiveMQ.Advisory.{name}" for name in names))


def heard(watcher: OpenWireClient) -> list[tuple[str, bool]]:
    """The topics of the advisories that came, and whether each has a message with its body."""
    found = []
    for each in watcher.dispatches():
        assert each.message is not None and each.message.destination is not None
        name = (each.message.destination.physical_name or "").removeprefix("ActiveMQ.Advisory.")
        data = each.message.data_structure
        found.append((name, isinstance(data, OpenWireMessage) and data.content is not None))
    return found


def greet_and_pass(server: ThreeProtocols, options: WireFormatOptions) -> object:
    """What a client with these options is told, and the text that it gets back."""
    client = OpenWireClient(server, f"c-{options.version}", options)
    client.feed(WireFormat(HANDSHAKE).encode(info_of(options)))
    info, broker = client.output()
    assert isinstance(info, WireFormatInfo) and isinstance(broker, BrokerInfo)
    told = options_of(info)
    client.succeeds(client.login_info(client.id, "admin", "admin"))
    client.succeeds(SessionInfo(SessionId(client.id, 1)))
    client.publish("text", f"q{options.version}")
    kind, why = client.fails(client.message("x", NOBODYS))
    client.consume(f"q{options.version}")
    (got,) = client.dispatches()
    client.ack(got)
    return told, broker.broker_name, kind, why, text(got)


# -- the transport ----------------------------------------------------------------------------------
NEGOTIATED = (
    "wireFormat.tightEncodingEnabled", "wireFormat.cacheEnabled", "wireFormat.cacheSize",
    "wireFormat.sizePrefixDisabled", "wireFormat.stackTraceEnabled", "wireFormat.tcpNoDelayEnabled",
    "wireFormat.version", "wireFormat.host",
)  # fmt: skip
OF_STOMP = (
    "transport.hbGracePeriodMultiplier", "transport.defaultHeartBeat", "transport.maxDataLength",
    "wireFormat.maxDataLength",
)  # fmt: skip
UNUSUAL = {"wireFormat.version": "6", "wireFormat.cacheSize": "16", "wireFormat.host": "elsewhere"}


@case("OPTIONS_SILENT", *NEGOTIATED, *OF_STOMP)
@pytest.mark.parametrize("name", [*NEGOTIATED, *OF_STOMP])
def test_a_client_negotiates_its_own_wire_format(tmp_path: Path, name: str) -> None:
    """With a server that wants less, a client library speaks in less; what its application sees is the same."""

    def scenario(server: ThreeProtocols) -> object:
        small = WireFormatOptions(version=6, tight=False, cache=False, cache_size=0)
        return [greet_and_pass(server, options) for options in (WireFormatOptions(), small)]

    files = [ClassicFile(options=f"?{name}={UNUSUAL.get(name, value)}") for value in ("true", "false")]
    if name in OF_STOMP:
        files = [ClassicFile(options=f"?{name}=1")]
    same(tmp_path, scenario, ClassicFile(), *files)


@case("OPTIONS_FIXED", *(name for name in tables.OPTIONS_FIXED if name != "http.enableTrace"))
def test_fixed_options_of_the_transport(tmp_path: Path) -> None:
    """Frames have a limit; nothing is told of the machine; old clients, slow readers and all host names are served."""

    def scenario(server: ThreeProtocols) -> object:
        found = [greet_and_pass(server, WireFormatOptions(version=version)) for version in (12, 1)]
        slow = server.openwire_client("slow")
        slow.consume("slow")
        server.connection(slow.conn).on_blocked(server.now, True)
        server.now += 20 * SECOND
        server.openwire_client("s").publish("late", "slow")
        server.connection(slow.conn).on_blocked(server.now, False)
        large = server.openwire_client("large")
        large.feed(WireFormat(WireFormatOptions()).encode(large.message("x" * 20_000, "q")))
        client = OpenWireClient(server, "tls")
        peer = Peer("1.2.3.4:5", None, "CN=elsewhere.example.com")
        server.connections[client.conn] = Sniffer(server.host, client.conn, peer, server.now, server.acceptor)
        client.greet()
        return found, slow.closed, slow.texts(), large.closed is not None, client.closed

    limit = "?wireFormat.maxFrameSize=10000"
    stated = "".join(
        f"&amp;{name}={value.here[0]}" for name, value in tables.OPTIONS_FIXED.items() if name != "http.enableTrace"
    )
    found = same(tmp_path, scenario, ClassicFile(options=limit), ClassicFile(options=limit + stated))
    assert found[1:] == (None, ["late"], True, None)
    assert all(told[0].platform_details is None for told in found[0])
    for name, value in tables.OPTIONS_FIXED.items():
        other = "true" if value.here[0] == "false" else "false" if value.here[0] == "true" else "7"
        assert warned(tmp_path, ClassicFile(options=f"?{name}={other}"), name)


OF_OTHERS = [name for name, why in tables.OPTIONS_SILENT.items() if why.startswith("of AMQP or MQTT")]


@case("OPTIONS_SILENT", *OF_OTHERS)
@pytest.mark.parametrize("scheme", ["amqp", "mqtt+nio", "amqp+ssl"])
def test_connectors_of_amqp_and_mqtt_open_no_port_and_are_named(tmp_path: Path, scheme: str) -> None:
    connector = '<transportConnectors><transportConnector name="x" uri="{}://0.0.0.0:1?{}"/></transportConnectors>'
    options = "&amp;".join(f"{name}=1000000" for name in OF_OTHERS)
    told = findings(read(classic_file(tmp_path, connector.format(scheme, options))))
    assert any(each.startswith("!3: acceptor x") for each in told), told


def test_with_other_protocols_at_their_port_clients_see_the_same(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client = server.stomp_client()
        client.subscribe("/queue/stomp")
        client.receipt("SEND", "1", destination="/queue/stomp")
        return client.texts(), greet_and_pass(server, WireFormatOptions())

    names = [name for name in OF_OTHERS if not name.endswith("maxFrameSize")]
    options = "?" + "&amp;".join(f"{name}=1000000" for name in names)
    same(tmp_path, scenario, ClassicFile(scheme="auto"), ClassicFile(scheme="auto", options=options))


@case("OPTIONS_FIXED", "http.enableTrace")
def test_a_trace_of_http_is_refused(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        conn = server.connect().conn
        server.data(conn, b"TRACE / HTTP/1.1\r\nHost: h\r\n\r\n")
        server.turn()
        return server.wire.closed.get(conn) is not None, server.wire.written.get(conn, [])

    stated = ClassicFile(scheme="ws", options="?http.enableTrace=false")
    assert same(tmp_path, scenario, ClassicFile(scheme="ws"), stated) == (True, [])


# -- users ------------------------------------------------------------------------------------------
USERS = (
    "<plugins><simpleAuthenticationPlugin anonymousAccessAllowed='true'><users>"
    "<authenticationUser username='bob' password='bob' groups='users'/></users></simpleAuthenticationPlugin></plugins>"
)


@case("BROKER_SILENT", "useAuthenticatedPrincipalForJMSXUserID")
def test_the_user_of_a_message_is_who_has_logged_in(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        found = []
        for user in ("bob", None):
            client = OpenWireClient(server, f"c-{user}")
            client.greet()
            client.succeeds(client.login_info(f"c-{user}", user, user))
            client.succeeds(SessionInfo(SessionId(client.id, 1)))
            client.publish("1", "q")
            consumer = client.consume("q")
            (got,) = client.dispatches()
            client.ack(got)
            client.close(consumer)
            found.append(got.message and got.message.user_id)
        return found

    populated = 'populateJMSXUserID="true" useAuthenticatedPrincipalForJMSXUserID="{}"'
    files = [ClassicFile(populated.format(value), USERS) for value in ("true", "false")]
    assert same(tmp_path, scenario, ClassicFile('populateJMSXUserID="true"', USERS), *files) == ["bob", "anonymous"]


GROUPS = "org.apache.activemq.jaas.GroupPrincipal"


@case("GROUP_CLASS_FIXED", "groupClass")
@case("JAAS_FIXED", "discoverLoginConfig")
def test_the_groups_of_the_login_config_have_their_rights(tmp_path: Path) -> None:
    module = "org.apache.activemq.jaas.PropertiesLoginModule required"

    def written(folder: Path, plugin: str, entries: str) -> ClassicFile:
        etc = folder / "conf"
        etc.mkdir(parents=True)
        files = 'org.apache.activemq.jaas.properties.user="users.properties"\n'
        files += 'org.apache.activemq.jaas.properties.group="groups.properties"'
        (etc / "login.config").write_text(f"activemq {{ {module} {files}; }};")
        (etc / "users.properties").write_text("ann=ann\nbob=bob\n")
        (etc / "groups.properties").write_text("writers=ann\n")
        return ClassicFile(
            inside=f"<plugins><jaasAuthenticationPlugin configuration='activemq' {plugin}/><authorizationPlugin><map>"
            f"<authorizationMap {entries}><authorizationEntries><authorizationEntry queue='&gt;' write='writers'"
            f" read='writers' admin='writers' {entries}/></authorizationEntries></authorizationMap></map>"
            "</authorizationPlugin></plugins>"
        )

    def scenario(server: ThreeProtocols) -> object:
        ann, bob = server.openwire_client("a", "ann"), server.openwire_client("b", "bob")
        ann.publish("1", "q")
        return bob.fails(bob.message("2", "q"))

    plain = written(tmp_path / "without", "", "")
    stated = written(tmp_path / "0", "discoverLoginConfig='true'", f"groupClass='{GROUPS}'")
    assert same(tmp_path, scenario, plain, stated)
    other = written(tmp_path / "1", "discoverLoginConfig='false'", "groupClass='example.Group'")
    assert warned(tmp_path / "1", other, "discoverLoginConfig") and warned(tmp_path / "1", other, "groupClass")


# -- advisories ---------------------------------------------------------------------------------------
ADVISORIES = [name for name in tables.POLICY_FIXED if "dvisor" in name]
EVENTS = (
    "SlowConsumer", "FastProducer", "MessageDiscarded", "FULL", "MessageDelivered", "MessageConsumed",
    "MessageDispatched", "NoConsumer", "Expired",
)  # fmt: skip


@case("POLICY_FIXED", *ADVISORIES)
def test_of_messages_only_an_expired_one_is_told_with_its_body(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        watcher, client = server.openwire_client("w"), server.openwire_client()
        watcher.consume(advisory(*(f"{name}.>" for name in EVENTS)))
        client.publish("nobody", TOPIC, persistent=False)
        client.publish("expires", "q", expiration=server.now // 1_000_000 + 10)
        server.now += SECOND
        while server.broker.expiry.scan(server.now, 1_000):
            pass
        client.consume("q", prefetch=1)
        for number in range(20):
            client.publish(str(number), "q")
        (got,) = client.dispatches()
        client.ack(got)
        return heard(watcher)

    values = {name: tables.POLICY_FIXED[name].here[0] for name in ADVISORIES}
    policy = " ".join(f'{name}="{value}"' for name, value in values.items())
    stated = ClassicFile(policy=policy, topic=policy)
    assert same(tmp_path, scenario, ClassicFile(), stated) == [("Expired.Queue.q", True)]
    for name in ADVISORIES:
        other = "false" if values[name] == "true" else "true"
        assert warned(tmp_path, ClassicFile(policy=f'{name}="{other}"'), name)


@case("BROKER_FIXED", "anonymousProducerAdvisorySupport", "useMirroredQueues")
def test_producers_without_a_destination_are_not_told_and_queues_have_no_mirror(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        watcher, client = server.openwire_client("w"), server.openwire_client()
        watcher.consume(advisory("Producer.>"))
        watcher.consume(ActiveMQTopic("VirtualTopic.Mirror.>"))
        client.producer()
        client.publish("1", "q")
        client.succeeds(ProducerInfo(ProducerId(client.id, 2, 1), TOPIC))
        return heard(watcher)

    stated = ClassicFile('anonymousProducerAdvisorySupport="false" useMirroredQueues="false"')
    assert same(tmp_path, scenario, ClassicFile(), stated) == [("Producer.Topic.t", False)]
    for name in ("anonymousProducerAdvisorySupport", "useMirroredQueues"):
        assert warned(tmp_path, ClassicFile(f'{name}="true"'), name)


# -- what a broker keeps of clients ---------------------------------------------------------------------
@case("BROKER_FIXED", "cacheTempDestinations", "allowTempAutoCreationOnSend")
@case("POLICY_FIXED", "allowTempDestinationStealing")
def test_a_temporary_queue_is_its_connections_own_and_goes_with_its_messages(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        owner, other = server.openwire_client("owner"), server.openwire_client("other")
        queue = owner.temporary_queue()
        other.succeeds(ProducerInfo(ProducerId(other.id, 1, 1), queue))
        other.publish("lost", queue)
        stolen = other.fails(other.consumer_info(queue))
        owner.succeeds(DestinationInfo(ConnectionId(owner.id), queue, 1))
        refused = other.fails(other.message("nowhere", queue))
        owner.temporary_queue()
        owner.consume(queue)
        return stolen[0], refused[0], owner.texts()

    names = ("cacheTempDestinations", "allowTempAutoCreationOnSend")
    stated = ClassicFile(attributes(names, "false"), policy='allowTempDestinationStealing="false"')
    found = same(tmp_path, scenario, ClassicFile(), stated)
    assert found == ("javax.jms.InvalidDestinationException",) * 2 + ([],)
    for name in names:
        assert warned(tmp_path, ClassicFile(f'{name}="true"'), name)
    assert warned(tmp_path, ClassicFile(policy='allowTempDestinationStealing="true"'), "allowTempDestinationStealing")


@case("BROKER_FIXED", "offlineDurableSubscriberTimeout", "rejectDurableConsumers", "useLocalHostBrokerName")
@case("BROKER_SILENT", "offlineDurableSubscriberTaskSchedule")
def test_durable_subscriptions_are_taken_and_kept_by_the_broker_of_that_name(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client = server.openwire_client("me")
        client.consume(TOPIC, subscription_name="sub")
        client.succeeds(RemoveInfo(ConnectionId(client.id), -1))
        server.close(client.conn, "the test ends it")
        sender = server.openwire_client("s")
        sender.publish("1", TOPIC)
        server.now += 100 * DAY
        server.broker.on_timer(server.now, SWEEP_TIMER)
        again = server.openwire_client("me")
        again.consume(TOPIC, subscription_name="sub")
        return again.texts(), again.broker.broker_name

    stated = ClassicFile(
        'brokerName="shop" offlineDurableSubscriberTimeout="-1" offlineDurableSubscriberTaskSchedule="1000"'
        ' rejectDurableConsumers="false" useLocalHostBrokerName="false"'
    )
    assert same(tmp_path, scenario, ClassicFile('brokerName="shop"'), stated) == (["1"], "shop")
    others = {"offlineDurableSubscriberTimeout": "1000", "rejectDurableConsumers": "true"}
    for name, value in {**others, "useLocalHostBrokerName": "true"}.items():
        assert warned(tmp_path, ClassicFile(f'{name}="{value}"'), name)


@case("BROKER_FIXED", "maxPurgedDestinationsPerSweep", "monitorConnectionSplits")
@case("POLICY_FIXED", "gcWithNetworkConsumers", "maxDestinations")
def test_destinations_without_use_go_at_once_and_a_bridges_consumer_is_a_use(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client, far = server.openwire_client("here"), bridge(server)
        client.consumers = 10
        moved = ConsumerId(client.id, 1, client.consumers + 1)
        far.consume("bridged", network_subscription=True, network_consumer_ids=[moved])
        client.close(client.consume("bridged"))  # the consumer that the bridge has stood for
        for number in range(5):
            client.close(client.consume(f"q{number}"))
        for _ in range(3):
            server.now += 10 * SECOND
            server.broker.on_timer(server.now, SWEEP_TIMER)
            server.settle()
        return sorted(name for name in server.broker.queues if name.startswith(("q", "bridged")))

    broker = 'schedulePeriodForDestinationPurge="1000" '
    policy = 'gcInactiveDestinations="true" inactiveTimeoutBeforeGC="1000" '
    stated = ClassicFile(
        broker + 'maxPurgedDestinationsPerSweep="0" monitorConnectionSplits="false"',
        policy=policy + 'gcWithNetworkConsumers="false" maxDestinations="-1"',
    )
    assert same(tmp_path, scenario, ClassicFile(broker, policy=policy), stated) == ["bridged"]
    for name, value in (("maxPurgedDestinationsPerSweep", "1"), ("monitorConnectionSplits", "true")):
        assert warned(tmp_path, ClassicFile(f'{name}="{value}"'), name)
    for name, value in (("gcWithNetworkConsumers", "true"), ("maxDestinations", "3")):
        assert warned(tmp_path, ClassicFile(policy=f'{name}="{value}"'), name)
