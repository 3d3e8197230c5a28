"""The configuration of a node that asks its clients for TLS."""

from __future__ import annotations

from pathlib import Path

from tests.broker_xml import ORDERS, write_broker_xml
from tests.certificates import PASSWORD, Authority

SERVER = f"?sslEnabled=true;keyStorePath=server.p12;keyStorePassword={PASSWORD};"
LOGIN = "<cluster-user>peer</cluster-user><cluster-password>secret</cluster-password>\n"
ASKING = f"needClientAuth=true;trustStorePath=authority-trust.p12;trustStorePassword={PASSWORD}"


def write_node(
    folder: Path, authority: Authority, port: int, acceptor: str = "", more: str = ""
) -> Path:
    """etc/broker.xml, and every store beside it."""
    etc = folder / "etc"
    etc.mkdir(parents=True)
    authority.holder("server", "localhost", "127.0.0.1").key_store(etc)
    authority.holder("client").key_store(etc)
    authority.trust_store(etc)
    authority.trust_pem(etc)
    return write_broker_xml(
        folder, port, folder.name, LOGIN + ORDERS + more, options=SERVER + acceptor
    )
