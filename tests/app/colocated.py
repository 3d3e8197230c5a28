"""Colocated `atalanta run` processes, for tests: each is a primary, and hosts backups of the others."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.app.group import Member
from tests.broker_process import free_port

BROKER_XML = """<?xml version="1.0" encoding="UTF-8"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>{name}</name>
    <security-enabled>false</security-enabled>
    <journal-directory>data/journal</journal-directory>
    <paging-directory>data/paging</paging-directory>
    <large-messages-directory>data/large</large-messages-directory>
    <journal-file-size>256K</journal-file-size>
    <connectors>
      <connector name="here">tcp://127.0.0.1:{port}</connector>
      {others}
    </connectors>
    <cluster-user>cluster</cluster-user>
    <cluster-password>secret</cluster-password>
    <cluster-connections>
      <cluster-connection name="cluster">
        <connector-ref>here</connector-ref>
        <retry-interval>100</retry-interval>
        <static-connectors>{references}</static-connectors>
      </cluster-connection>
    </cluster-connections>
    <ha-policy>
      <{form}>
        <colocated>
          <request-backup>true</request-backup>
          <backup-request-retry-interval>500</backup-request-retry-interval>
          <backup-port-offset>{offset}</backup-port-offset>
          <backup><allow-failback>true</allow-failback></backup>
        </colocated>
      </{form}>
    </ha-policy>
    <acceptors>
      <acceptor name="artemis">tcp://127.0.0.1:{port}</acceptor>
    </acceptors>
    <addresses>
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
    </addresses>
  </core>
</configuration>
"""


class Colocated:
    """`with Colocated(tmp_path, "replication") as nodes:` ends all processes. The names are a, b and so on."""

    def __init__(self, folder: Path, form: str, count: int = 2) -> None:
        own = ""
        if form == "replication":
            (folder / "register").mkdir()
            own = f'[ha]\nfailback_after_s = 0\n[ha.manager]\nkind = "file"\nlocks-folder = "{folder / "register"}"\n'
        ports = [free_port() for _ in range(count)]
        self.offset = free_offset(ports)
        self.ports = ports
        self.nodes: list[Member] = []
        for name, port in zip("abc", ports, strict=False):
            others = [each for each in ports if each != port]
            etc = folder / name / "etc"
            etc.mkdir(parents=True)
            text = BROKER_XML.format(
                name=name,
                port=port,
                others="".join(f'<connector name="to{each}">tcp://127.0.0.1:{each}</connector>' for each in others),
                references="".join(f"<connector-ref>to{each}</connector-ref>" for each in others),
                form=form,
                offset=self.offset,
            )
            (etc / "broker.xml").write_text(text)
            (etc / "atalanta.toml").write_text(own)
            self.nodes.append(Member(etc / "broker.xml", port))

    def start(self) -> None:
        """Starts all, and waits until each has a backup."""
        for each in self.nodes:
            each.start()
        for each in self.nodes:
            each.until_logged("backup_hosted")

    def __enter__(self) -> Colocated:
        return self

    def __exit__(self, *failure: object) -> None:
        for each in self.nodes:
            each.__exit__(None, None, None)


def free_offset(ports: list[int]) -> int:
    """Returns an offset at which the ports of hosted backups are free."""
    for offset in range(100, 2000, 7):
        try:
            for port in ports:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + offset))
        except (OSError, OverflowError):
            continue
        return offset
    raise AssertionError(f"no offset for {ports}")
