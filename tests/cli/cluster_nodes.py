"""A cluster of real processes of ours for the commands that look at one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.broker_process import BrokerProcess, free_port
from tests.cli.calls import Cli

BROKER_XML = """<?xml version="1.0" encoding="UTF-8"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>{name}</name>
    <security-enabled>{security}</security-enabled>
    <journal-directory>data/journal</journal-directory>
    <connectors>{connectors}</connectors>
    <acceptors><acceptor name="artemis">tcp://127.0.0.1:{port}</acceptor></acceptors>
    {user}
    <cluster-connections>
      <cluster-connection name="test">
        <connector-ref>{name}</connector-ref>
        <retry-interval>100</retry-interval>
        {connection}
        <static-connectors>{references}</static-connectors>
      </cluster-connection>
    </cluster-connections>
    <security-settings><security-setting match="#">{permissions}</security-setting></security-settings>
    <addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>
    {more}
  </core>
</configuration>
"""
CREDENTIALS = "<cluster-user>cluster</cluster-user><cluster-password>secret</cluster-password>"
PERMISSIONS = "".join(
    f'<permission type="{name}" roles="amq"/>'
    for name in (
        "send consume browse manage createAddress deleteAddress createDurableQueue deleteDurableQueue"
        " createNonDurableQueue deleteNonDurableQueue"
    ).split()
)


class Node:
    """`broker` runs; `cli` talks to it."""

    def __init__(self, name: str, port: int, broker: BrokerProcess) -> None:
        self.name = name
        self.port = port
        self.broker = broker
        self.at = f"127.0.0.1:{port}"
        self.cli = Cli(f"tcp://{self.at}")


@contextmanager
def cluster(
    folder: Path,
    count: int,
    *,
    user: str = CREDENTIALS,
    security: bool = False,
    connection: str = "",
    more: str = "",
    more_of: dict[int, str] | None = None,
    advertised: dict[int, str] | None = None,
) -> Iterator[list[Node]]:
    """`count` nodes a, b, c that know each other; `advertised` replaces the host:port that one announces, `more_of`
    is for single ones."""
    ports = [free_port() for _ in range(count)]
    names = [chr(ord("a") + index) for index in range(count)]
    with ExitStack() as stack:
        nodes: list[Node] = []
        for index, name in enumerate(names):
            connectors = ""
            for other, port in zip(names, ports, strict=True):
                place = (advertised or {}).get(index) if other == name else None
                place = place or f"127.0.0.1:{port}"
                connectors += f'<connector name="{other}">tcp://{place}</connector>'
            path = folder / name / "etc" / "broker.xml"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = BROKER_XML.format(
                name=name,
                port=ports[index],
                connectors=connectors,
                security=str(security).lower(),
                references="".join(
                    f"<connector-ref>{other}</connector-ref>" for other in names if other != name
                ),
                user=user,
                permissions=PERMISSIONS,
                connection=connection,
                more=more + (more_of or {}).get(index, ""),
            )
            path.write_text(text, encoding="utf-8")
            (path.parent / "artemis-users.properties").write_text("admin = admin\n")
            (path.parent / "artemis-roles.properties").write_text("amq = admin\n")
            broker = stack.enter_context(BrokerProcess(path))
            nodes.append(Node(name, ports[index], broker))
        yield nodes
