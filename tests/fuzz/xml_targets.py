"""Configuration files that are XML: broker.xml, WildFly's standalone.xml and ActiveMQ Classic's activemq.xml, from the
file to the configuration."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from atalanta.config.activemq import tables as classic_tables
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.docs import SECTIONS
from atalanta.config.problems import ConfigError
from atalanta.config.wildfly import tables
from tests.fuzz.mutator import Mutator
from tests.fuzz.target import KIB, Target
from tests.fuzz.text_targets import CONFIG_DATA, scratch_folder
from tests.fuzz.xml_mutator import XmlMutator

WORDS = (
    b"<!DOCTYPE a [<!ENTITY b 'ccccccccc'>]>", b"&b;", b"<![CDATA[", b"]]>", b"<?x y?>", b"<!--", b"-->",
    b"<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='broker.xml'/>", b"${a:b}", b"${", b"}",
    b" xmlns='urn:activemq:core'", b"<core>", b"</core>", b"<a>", b"</a>", b"&#0;", b"&lt;", b"<acceptor name='a'>",
    b"<address-setting match='#'>", b"-1", b"10M", b"K", b"100GiB", b"true", b"PAGE", b"tcp://h:1?a=b", b"\xff\xfe",
    b"encoding='utf-16'",
)  # fmt: skip
TEXTS = (
    b"a=1", b"udp://231.7.7.7:9876", b"vm://0", b"tcp://h:1;b=c", b"BLOCK", b"DROP", b"FAIL", b"STRICT", b"OFF",
    b"ON_DEMAND", b"MULTICAST", b"ANYCAST", b"ENC(1a2b)", b"org.example.Codec", b"10,20", b"1000000", b"0.5", b"100%",
    b"9876", b"231.7.7.7", b"NULL_SIZE", b"KEEP_LAST", b"a::b", b"*.#.>", b"tls", b"[::1]", b"::", b"MAPPED",
    b"ASYNCIO",
)  # fmt: skip
# Of every kind of section one, so that small inputs reach all readers.
SMALL = (
    b"<name>${name:x}</name>",
    b"<acceptors><acceptor name='a'>tcp://127.0.0.1:1?sslEnabled=false;protocols=CORE</acceptor></acceptors>",
    b"<addresses><address name='a'><anycast><queue name='q' max-consumers='1'><filter string='a=1'/></queue></anycast>"
    b"<multicast/></address></addresses>",
    b"<address-settings><address-setting match='#'><max-size-bytes>10M</max-size-bytes>"
    b"<dead-letter-address>D</dead-letter-address></address-setting></address-settings>",
    b"<diverts><divert name='d'><address>a</address><forwarding-address>b</forwarding-address><exclusive>true"
    b"</exclusive><transformer><class-name>x</class-name><property key='a' value='b'/></transformer></divert>"
    b"</diverts>",
    b"<connectors><connector name='c'>tcp://h:1</connector></connectors><broadcast-groups><broadcast-group name='g'>"
    b"<group-address>231.7.7.7</group-address><group-port>9876</group-port><broadcast-period>2000</broadcast-period>"
    b"<connector-ref>c</connector-ref></broadcast-group></broadcast-groups><discovery-groups><discovery-group name='g'>"
    b"<group-address>231.7.7.7</group-address><group-port>9876</group-port><refresh-timeout>10000</refresh-timeout>"
    b"</discovery-group></discovery-groups><cluster-connections><cluster-connection name='k'><connector-ref>c"
    b"</connector-ref><message-load-balancing>ON_DEMAND</message-load-balancing><max-hops>1</max-hops>"
    b"<static-connectors><connector-ref>c</connector-ref></static-connectors></cluster-connection></cluster-connections>",
    b"<connectors><connector name='c'>tcp://h:1</connector></connectors><bridges><bridge name='b'><queue-name>q"
    b"</queue-name><forwarding-address>f</forwarding-address><filter string='a=1'/><retry-interval>5</retry-interval>"
    b"<static-connectors><connector-ref>c</connector-ref></static-connectors></bridge></bridges>",
    b"<security-settings><security-setting match='#'><permission type='send' roles='a,b'/></security-setting>"
    b"<role-mapping from='a' to='b,c'/></security-settings>",
    b"<ha-policy><live-only><scale-down><enabled>true</enabled><connectors><connector-ref>c</connector-ref></connectors>"
    b"</scale-down></live-only></ha-policy>",
    b"<ha-policy><shared-store><backup><allow-failback>true</allow-failback><scale-down/></backup></shared-store>"
    b"</ha-policy>",
    b"<ha-policy><replication><primary><group-name>g</group-name><quorum-size>2</quorum-size><manager><class-name>"
    b"a.FileBasedLockManager</class-name><properties><property key='locks-folder' value='x'/></properties></manager>"
    b"</primary></replication></ha-policy>",
    b"<ha-policy><replication><colocated><max-backups>1</max-backups><excludes><connector-ref>c</connector-ref>"
    b"</excludes><master/><slave/></colocated></replication></ha-policy>",
    b"<connection-routers><connection-router name='r'><key-type>CLIENT_ID</key-type><key-filter>a.*</key-filter>"
    b"<policy name='CONSISTENT_HASH'/><pool><username>u</username><password>p</password><cluster-connection>k"
    b"</cluster-connection></pool></connection-router></connection-routers>",
    b"<grouping-handler name='g'><type>LOCAL</type><address>a</address><timeout>5000</timeout></grouping-handler>",
    b"<queues><queue name='q'><address>a</address><durable>true</durable></queue></queues>",
    b"<wildcard-addresses><routing-enabled>true</routing-enabled><delimiter>.</delimiter><any-words>#</any-words>"
    b"<single-word>*</single-word></wildcard-addresses>",
    b"<broker-plugins><broker-plugin class-name='a.b.LoggingActiveMQServerPlugin'><property key='LOG_ALL_EVENTS' "
    b"value='true'/></broker-plugin></broker-plugins><metrics><jvm-memory>true</jvm-memory></metrics>",
    b"<cluster-user>u</cluster-user><cluster-password>ENC(1a2b)</cluster-password><password-codec>a;b=c"
    b"</password-codec><mask-password>true</mask-password><critical-analyzer>true</critical-analyzer>",
)  # fmt: skip


def option_names() -> list[bytes]:
    found: dict[str, None] = {}
    for _, _, described in SECTIONS:
        for entry in fields(described):
            if entry.metadata:
                found[entry.metadata["xml"]] = None
    return [name.encode() for name in found]


class XmlTarget(Target):
    """broker.xml."""

    name = "broker.xml"
    refusals = (ConfigError,)
    base_bytes = 8 << 20
    size_max = 16 * KIB
    words = WORDS

    def __init__(self) -> None:
        self.folder = scratch_folder()
        self.path = Path(self.folder.name) / "broker.xml"

    def mutator(self) -> Mutator:
        return XmlMutator(self.size_max, self.words, self.names(), TEXTS)

    def names(self) -> list[bytes]:
        return option_names()

    def seeds(self) -> list[bytes]:
        created = (CONFIG_DATA / "artemis-create.xml").read_bytes()
        made = [
            b"<configuration xmlns='urn:activemq'><core xmlns='urn:activemq:core'>" + each + b"</core></configuration>"
            for each in SMALL
        ]
        bomb = (
            b"<!DOCTYPE b [<!ENTITY a 'aaaaaaaaaa'>"
            + b"".join(
                b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(12)
            )
            + b"]><configuration>&m;</configuration>"
        )
        deep = b"<configuration>" + b"<core>" * 300 + b"</core>" * 300 + b"</configuration>"
        return [*made, created, bomb, deep, b"<a/>", made[0].replace(b"x}", b"${name:${name}}}")]

    def run(self, data: bytes) -> None:
        self.path.write_bytes(data)
        read_broker_xml(self.path)


class WildFlyTarget(XmlTarget):
    """standalone.xml: sockets, stacks, ssl-contexts and the subsystem, made into a broker.xml."""

    name = "standalone.xml"

    def names(self) -> list[bytes]:
        found: dict[str, None] = dict.fromkeys(tables.SERVER)
        for group in tables.GROUPS.values():
            found.update(dict.fromkeys(group))
        return [*(name.encode() for name in found), *option_names()[::4]]

    def seeds(self) -> list[bytes]:
        whole = (CONFIG_DATA / "standalone-cluster.xml").read_bytes()
        small = (
            b"<subsystem xmlns='urn:jboss:domain:messaging-activemq:13.0'><server name='default'>"
            b"<security enabled='false'/><cluster user='u' password='${p:x}'/><journal file-size='1024'/>"
            b"<security-setting name='#'><role name='guest' send='true' consume='true'/></security-setting>"
            b"<address-setting name='#' dead-letter-address='jms.queue.DLQ' max-size-bytes='10485760'/>"
            b"<in-vm-connector name='in-vm' server-id='0'/><in-vm-acceptor name='in-vm' server-id='0'/>"
            b"<jms-queue name='q' entries='java:/jms/q' durable='true'/><jms-topic name='t' entries='java:/t'/>"
            b"<divert name='d' divert-address='a' forwarding-address='b' exclusive='true'/>"
            b"<core-queue name='c' queue-address='c'/></server></subsystem>"
        )
        colocated = (
            b"<subsystem xmlns='urn:jboss:domain:messaging-activemq:17.0'><server name='default'>"
            b"<replication-colocated excluded-connectors='a b' max-backups='2'><primary group-name='g'/>"
            b"<secondary allow-failback='true'><scale-down group-name='g'/></secondary></replication-colocated>"
            b"</server></subsystem>"
        )
        return [whole, small, colocated]


class ClassicTarget(XmlTarget):
    """activemq.xml: connectors, policies, plugins and networks, made into a broker.xml."""

    name = "activemq.xml"

    def names(self) -> list[bytes]:
        found: dict[str, None] = {}
        for name, table in vars(classic_tables).items():
            if name.isupper() and isinstance(table, (dict, tuple)):
                found.update(dict.fromkeys(table))
        return [name.encode() for name in found]

    def seeds(self) -> list[bytes]:
        folder = CONFIG_DATA.parent / "activemq" / "data"
        whole = [(folder / name).read_bytes() for name in ("default.xml", "destinations.xml", "security.xml")]
        network = (
            b"<broker xmlns='http://activemq.apache.org/schema/core' brokerName='a'><networkConnectors>"
            b"<networkConnector uri='static:(failover:(tcp://b:1,ssl://c:2),tcp://d)?maxReconnectDelay=5' duplex='true'"
            b" networkTTL='3'><excludedDestinations><topic physicalName='x.&gt;'/></excludedDestinations>"
            b"</networkConnector></networkConnectors><sslContext><sslContext keyStore='file:a.p12'/></sslContext>"
            b"<persistenceAdapter><mKahaDB directory='d'/></persistenceAdapter></broker>"
        )
        return [*whole, network]
