"""Which connectors of a node are ready for TLS: also those that only a bridge made by management will dial."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from atalanta.app.transports import secure_connectors
from atalanta.cluster.networks.config import tls_name
from atalanta.config.broker_xml import read_broker_xml
from atalanta.tls.errors import TlsError
from tests.certificates import PASSWORD, Authority

XML = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><name>n</name>
<connectors>
<connector name="good">tcp://there:61617?sslEnabled=true;trustStorePath={store};trustStorePassword={password}</connector>
<connector name="bad">tcp://there:61618?sslEnabled=true;trustStorePath=nowhere.p12;trustStorePassword=x</connector>
<connector name="plain">tcp://there:61616</connector>
</connectors>
{more}
</core></configuration>
"""
BRIDGE = """<bridges><bridge name="b"><queue-name>q</queue-name><static-connectors>
<connector-ref>plain</connector-ref></static-connectors></bridge></bridges>"""


def written(folder: Path, more: str = "") -> Path:
    store = Authority().trust_store(folder)
    path = folder / "broker.xml"
    path.write_text(XML.format(store=store, password=PASSWORD, more=more))
    return path


def test_a_node_without_cluster_and_bridges_has_them_for_a_bridge_that_comes_later(
    tmp_path: Path,
) -> None:
    assert list(secure_connectors(read_broker_xml(written(tmp_path)))) == ["good"]


def test_where_something_dials_one_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match="connector 'bad'"):
        secure_connectors(read_broker_xml(written(tmp_path, BRIDGE)))


def test_what_an_address_of_a_network_connector_says_is_for_that_address_alone(tmp_path: Path) -> None:
    trust = f"trustStorePath={Authority().trust_store(tmp_path)}&trustStorePassword={PASSWORD}"
    uri = f"static:(ssl://loose:1?{trust}&socket.verifyHostName=false,ssl://strict:2?{trust},ssl://bare:3,tcp://d:4)"
    (tmp_path / "atalanta.toml").write_text(f'[networks.NC]\nuri = "{uri}"')
    configuration = read_broker_xml(written(tmp_path))
    made = secure_connectors(configuration)
    checked = {}
    for (target,) in configuration.networks.connectors[0].way.bridges[:3]:
        context = made[tls_name(configuration.networks.connectors[0], target)].context
        assert context.verify_mode == ssl.CERT_REQUIRED
        checked[target.host] = context.check_hostname
    assert checked == {"loose": False, "strict": True, "bare": True}
