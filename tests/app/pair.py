"""A pair of `atalanta run` processes with a shared store, for tests: a primary, a backup, one folder."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from pathlib import Path

from tests.broker_process import BrokerProcess, free_port
from tests.waiting import until

BROKER_XML = """<?xml version="1.0" encoding="UTF-8"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>{name}</name>
    <security-enabled>false</security-enabled>
    <journal-directory>{store}/journal</journal-directory>
    <paging-directory>{store}/paging</paging-directory>
    <large-messages-directory>{store}/large</large-messages-directory>
    <journal-file-size>256K</journal-file-size>
    <journal-compact-min-files>3</journal-compact-min-files>
    <connectors>
      <connector name="here">tcp://127.0.0.1:{port}</connector>
      <connector name="there">tcp://127.0.0.1:{other}</connector>
    </connectors>
    <cluster-user>cluster</cluster-user>
    <cluster-password>secret</cluster-password>
    <cluster-connections>
      <cluster-connection name="pair">
        <connector-ref>here</connector-ref>
        <static-connectors><connector-ref>there</connector-ref></static-connectors>
      </cluster-connection>
    </cluster-connections>
    <ha-policy><shared-store><{role}>{policy}</{role}></shared-store></ha-policy>
    <acceptors>
      <acceptor name="artemis">tcp://127.0.0.1:{port}</acceptor>
    </acceptors>
    <addresses>
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
    </addresses>
    {more}
  </core>
</configuration>
"""


class PairProcess(BrokerProcess):
    """One process of the pair: its role changes while it runs."""

    def __init__(self, broker_xml: Path, port: int, *arguments: str) -> None:
        super().__init__(broker_xml, *arguments)
        self.port = port
        self._lines = ""

    def start(self) -> None:
        super().start()
        stdout = self.process.stdout
        assert stdout is not None
        os.set_blocking(stdout.fileno(), False)
        self._lines = ""

    def lines(self) -> list[str]:
        """Returns the lines of stdout of this run so far."""
        stdout = self.process.stdout
        assert stdout is not None
        with contextlib.suppress(BlockingIOError, TypeError):
            self._lines += stdout.read() or ""
        return self._lines.splitlines()

    def role(self) -> str:
        """Returns `active` or `passive`, as the last line says; `` before the first."""
        found = [re.search(r"role=(\w+)", line) for line in self.lines()]
        return found[-1].group(1) if found and found[-1] else ""

    def until_role(self, role: str) -> None:
        """Waits until the process says that it has this role."""

        def reached() -> bool:
            assert self.process.poll() is None, self.log()
            return self.role() == role

        until(reached, lambda: f"not {role}:\n{self.log()}")


class Pair:
    """`with Pair(tmp_path) as pair:` ends both processes. `policies` are the elements of each policy."""

    def __init__(self, folder: Path, primary: str = "", backup: str = "", own: str = "", more: str = "") -> None:
        ports = free_port(), free_port()
        self.store = folder / "store"
        self.primary = self._process(folder, "primary", ports, primary, own, more)
        self.backup = self._process(folder, "backup", (ports[1], ports[0]), backup, own, more)
        self.url = f"(tcp://127.0.0.1:{ports[0]},tcp://127.0.0.1:{ports[1]})?reconnectAttempts=-1&retryInterval=20"

    def _process(
        self, folder: Path, role: str, ports: tuple[int, int], policy: str, own: str, more: str
    ) -> PairProcess:
        etc = folder / role / "etc"
        etc.mkdir(parents=True)
        text = BROKER_XML.format(
            name=role, store=self.store, port=ports[0], other=ports[1], role=role, policy=policy, more=more
        )
        (etc / "broker.xml").write_text(text)
        if own:
            (etc / "atalanta.toml").write_text(own)
        return PairProcess(etc / "broker.xml", ports[0])

    def start(self) -> None:
        """Starts the primary, then the backup, and waits until both have their role."""
        self.primary.start()
        self.primary.until_role("active")
        self.backup.start()
        self.backup.until_role("passive")

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *failure: object) -> None:
        for each in (self.primary, self.backup):
            if each._process is not None and each.process.poll() is None:
                each.process.send_signal(signal.SIGCONT)
            each.__exit__(None, None, None)
