"""Elytron's ssl-contexts: the same doors and connectors as with Artemis' own TLS parameters, or a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.app.transports import acceptor_tls, secure_connectors
from atalanta.client import Message
from atalanta.client.blocking import connect
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from tests.broker_process import BrokerProcess
from tests.certificates import PASSWORD, Authority
from tests.ports import free_port

NAMESPACE = "urn:jboss:domain:messaging-activemq:13.0"
TLS = """<key-stores>
<key-store name="mine"><credential-reference clear-text="{password}"/><implementation type="PKCS12"/>
<file path="node.p12" relative-to="jboss.server.config.dir"/></key-store>
<key-store name="believed"><credential-reference clear-text="{password}"/><implementation type="PKCS12"/>
<file path="authority.p12" relative-to="jboss.server.config.dir"/></key-store>
</key-stores>
<key-managers><key-manager name="km" key-store="mine">
<credential-reference clear-text="{password}"/></key-manager></key-managers>
<trust-managers><trust-manager name="tm" key-store="believed"/></trust-managers>
<server-ssl-contexts><server-ssl-context name="in" protocols="TLSv1.3 TLSv1.2" need-client-auth="true"
 cipher-suite-filter="DEFAULT" key-manager="km" trust-manager="tm"/></server-ssl-contexts>
<client-ssl-contexts><client-ssl-context name="out" key-manager="km" trust-manager="tm"/></client-ssl-contexts>"""
SERVER = """<remote-connector name="there" socket-binding="other" ssl-context="out"/>
<remote-acceptor name="here" socket-binding="messaging" ssl-context="in"/>
<http-acceptor name="web" http-listener="https"/>
<bridge name="b" queue-name="q" static-connectors="there"/>"""
DOOR = """<security enabled="false"/><http-acceptor name="web" http-listener="https"/>
<jms-queue name="orders" entries="x"/>"""
XML = """<server xmlns="urn:jboss:domain:20.0"><profile>
<subsystem xmlns="urn:wildfly:elytron:18.0"><tls>{tls}</tls></subsystem>
<subsystem xmlns="urn:jboss:domain:undertow:14.0"><server name="d">
<https-listener name="https" socket-binding="https" ssl-context="in"/></server></subsystem>
<subsystem xmlns="{namespace}"><server name="s">{server}</server></subsystem></profile>
<interfaces><interface name="public"><inet-address value="127.0.0.1"/></interface></interfaces>
<socket-binding-group name="g" default-interface="public">
<socket-binding name="messaging" port="5445"/><socket-binding name="https" port="8443"/>
<outbound-socket-binding name="other"><remote-destination host="localhost" port="5446"/></outbound-socket-binding>
</socket-binding-group></server>"""


def read(folder: Path, tls: str = TLS, server: str = SERVER, password: str = PASSWORD) -> Configuration:
    text = tls.format(password=password)
    path = folder / "standalone.xml"
    path.write_text(XML.format(tls=text, server=server, namespace=NAMESPACE))
    return read_broker_xml(path)


def test_they_are_the_tls_of_doors_and_connectors(tmp_path: Path) -> None:
    authority = Authority()
    authority.trust_store(tmp_path).rename(tmp_path / "authority.p12")
    authority.holder("node", "localhost").key_store(tmp_path)
    configuration = read(tmp_path)
    here, web = configuration.acceptors
    for door in (here, web):
        assert door.tls is not None
        assert door.tls.need_client_auth and door.tls.enabled_protocols == "TLSv1.3,TLSv1.2"
        assert door.tls.key_store_password == PASSWORD
        assert acceptor_tls(configuration, door) is not None, "its files were found and opened"
    assert web.port == 8443
    tls = configuration.connectors["there"].tls
    assert tls is not None and (tls.key_store_path, tls.trust_store_path) == ("node.p12", "authority.p12")
    assert list(secure_connectors(configuration)) == ["there"]


def test_passwords_of_any_signs(tmp_path: Path) -> None:
    strange = "a;b=c&amp;d%41+e #ü?"
    tls = read(tmp_path, password=strange).connectors["there"].tls
    assert tls is not None and tls.key_store_password == "a;b=c&d%41+e #ü?"


@pytest.mark.process
def test_a_client_comes_in_by_https(tmp_path: Path) -> None:
    """TLS, then the HTTP request that asks to go on as CORE, as behind WildFly's https-listener."""
    authority = Authority()
    authority.trust_store(tmp_path).rename(tmp_path / "authority.p12")
    authority.holder("node", "localhost").key_store(tmp_path)
    text = XML.format(tls=TLS.format(password=PASSWORD), server=DOOR, namespace=NAMESPACE)
    port = free_port()
    path = tmp_path / "standalone.xml"
    path.write_text(text.replace("8443", str(port)))
    believed = f"trustStorePath={tmp_path}/authority.p12&trustStorePassword={PASSWORD}"
    shown = f"keyStorePath={tmp_path}/node.p12&keyStorePassword={PASSWORD}"
    options = f"sslEnabled=true&{believed}&{shown}&httpUpgradeEnabled=true&httpUpgradeEndpoint=web"
    with BrokerProcess(path), connect(f"tcp://localhost:{port}?{options}") as connection:
        connection.producer("jms.queue.orders").send(Message(text="safe"))
        with connection.consumer("jms.queue.orders", ack="auto") as consumer:
            message = consumer.receive(10)
            assert message is not None and message.text == "safe"


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('cipher-suite-filter="DEFAULT"', 'cipher-suite-filter="RSA"', "cipher-suite-filter of <server-ssl-context>"),
        ('cipher-suite-filter="DEFAULT"', 'cipher-suite-names="X"', "cipher-suite-names of <server-ssl-context>"),
        ('key-manager="km"', 'key-manager="kn"', "there is no key-manager 'kn' in this file"),
        ('key-store="mine"', 'key-store="mine" alias-filter="ALL:-x"', "alias-filter of <key-manager>"),
        ('relative-to="jboss.server.config.dir"', 'relative-to="my.dir"', "'my.dir' is not known here"),
        ('<credential-reference clear-text="{password}"/><impl', '<credential-reference store="s" alias="a"/><impl',
         "WildFly's credential stores cannot be read"),
        ('clear-text="{password}"/></key-manager>', 'clear-text="else"/></key-manager>', "another password"),
        ('name="tm" key-store="believed"/>', 'name="tm" key-store="believed"><ocsp/></trust-manager>', "<ocsp>"),
        ('clear-text="{password}"/><impl', 'clear-text="${{nobody.knows}}"/><impl', "nobody.knows"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused(tmp_path: Path, before: str, after: str, says: str) -> None:
    assert before in TLS
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, TLS.replace(before, after))
    assert any(says in problem.text and problem.line > 2 for problem in caught.value.problems), str(caught.value)


def test_a_context_of_another_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no server-ssl-context 'out' in this file"):
        read(tmp_path, server='<remote-acceptor name="a" socket-binding="messaging" ssl-context="out"/>')
