"""The configuration of a node that asks its clients for TLS."""

from __future__ import annotations

from pathlib import Path

from tests.certificates import PASSWORD, Authority

BROKER_XML = """<configuration><core>
  <name>{name}</name>
  <security-enabled>false</security-enabled>
  <cluster-user>peer</cluster-user><cluster-password>secret</cluster-password>
  <acceptors><acceptor name="artemis">tcp://127.0.0.1:{port}?sslEnabled=true;keyStorePath=server.p12;\
keyStorePassword={password};{acceptor}</acceptor></acceptors>
  <addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>
  {more}
</core></configuration>
"""
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
    path = etc / "broker.xml"
    text = BROKER_XML.format(
        name=folder.name, port=port, password=PASSWORD, acceptor=acceptor, more=more
    )
    path.write_text(text, encoding="utf-8")
    return path
