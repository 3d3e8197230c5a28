"""Brokers of one activemq.xml with one store directory: those of ActiveMQ Classic, or ours, from the same files."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import Self

from atalanta.wire.openwire.options import HANDSHAKE, info_of
from atalanta.wire.openwire.wire_format import WireFormat
from tests.ports import free_port

from .atalanta import AtalantaNode
from .classic import classic_class_path
from .jms import until
from .node import BrokerProcess
from .openwire import CLIENTS
from .tools import SMALL_JVM, java

ACTIVEMQ_XML = """<beans xmlns="http://www.springframework.org/schema/beans"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans/spring-beans.xsd
       http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}" dataDirectory="{store}"
          schedulerSupport="true" useJmx="false">
    <networkConnectors>{connectors}</networkConnectors>
    <persistenceAdapter>
      <kahaDB directory="{store}/kahadb" journalMaxFileLength="1mb">
        <locker><shared-file-locker lockAcquireSleepInterval="500"/></locker>
      </kahaDB>
    </persistenceAdapter>
    <transportConnectors>
      <transportConnector name="openwire" uri="tcp://127.0.0.1:{port}"/>
    </transportConnectors>
  </broker>
</beans>
"""
KINDS = ("classic", "atalanta")
# The version of Classic: of 6.1.4, with jakarta.jms, the brokers of the kind "classic-6".
VERSIONS = {"classic": CLIENTS[0], "classic-6": CLIENTS[1]}
ANSWER_SECONDS = 0.5


class ClassicProcess(BrokerProcess):
    """A broker of ActiveMQ Classic on conf/activemq.xml, in a JVM of its own (Service.java)."""

    kind = "classic"

    def __init__(self, folder: Path, name: str, port: int, version: str) -> None:
        super().__init__(folder, name, port)
        self.version = version

    def _create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def _command(self) -> list[str]:
        log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        command = [java(), "-Xmx256M", *SMALL_JVM, log, "-cp", classic_class_path(self.version)]
        return [*command, "atalanta.classic.Service", str(self.folder / "conf" / "activemq.xml")]

    def _environment(self) -> dict[str, str]:
        return {}


# What the log of a broker says when it begins to wait.
WAITS = {"classic": "is now in slave mode waiting a lock", "atalanta": "node_passive"}


class ClassicPair:
    """`with ClassicPair(kind, folder) as pair:` brokers that wait for one store. It watches that never two serve."""

    def __init__(self, kind: str, folder: Path, name: str = "shop", count: int = 2) -> None:
        self.name = name
        self.store = folder / name
        self.brokers: list[BrokerProcess] = []
        for number in range(1, count + 1):
            place, port = folder / f"{name}-{number}", free_port()
            if kind == "atalanta":
                self.brokers.append(AtalantaNode(place, place.name, port))
            else:
                self.brokers.append(ClassicProcess(place, place.name, port, VERSIONS[kind]))
        self.served_together: list[tuple[str, str]] = []
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watch_ports, daemon=True)
        self.write_files()

    @property
    def servers(self) -> str:
        """The URLs of the brokers, with commas."""
        return ",".join(f"tcp://127.0.0.1:{each.port}" for each in self.brokers)

    @property
    def url(self) -> str:
        """The URL of a client that finds the broker that serves."""
        return f"failover:({self.servers})?initialReconnectDelay=50&maxReconnectDelay=200"

    def write_files(self, connectors: str = "") -> None:
        """Writes the activemq.xml of each: they differ in their ports."""
        for each in self.brokers:
            path = each.folder / "conf" / "activemq.xml"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = ACTIVEMQ_XML.format(name=self.name, store=self.store, port=each.port, connectors=connectors)
            path.write_text(text)

    def start(self) -> None:
        """Starts all of them: the first one serves, the others wait."""
        self.brokers[0].start()
        for each in self.brokers[1:]:
            self.restart(each)

    def restart(self, broker: BrokerProcess) -> None:
        """Starts a broker while another one serves, and waits until it waits."""
        broker.launch()
        until(f"{broker.name} waits", lambda: self.waits(broker), 60)

    def waits(self, broker: BrokerProcess) -> bool:
        """Whether a broker that has not served since its start waits, with its port closed."""
        said = WAITS[broker.kind] in broker.log.read_text(errors="replace")
        return said and broker.running and not serves(broker)

    def serving(self) -> BrokerProcess:
        """Waits until one of them serves. Returns it."""
        found: list[BrokerProcess] = []

        def one() -> bool:
            found[:] = [each for each in self.brokers if serves(each)]
            return bool(found)

        until("a broker serves", one, 60)
        return found[0]

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._watch.join()
        for each in self.brokers:
            each.close()
        assert self.served_together == []

    def _watch_ports(self) -> None:
        """Looks for a broker that serves while another one does, before and after."""
        while not self._over.wait(0.02):
            for one in self.brokers:
                if not serves(one):
                    continue
                others = [each for each in self.brokers if each is not one and serves(each)]
                if others and serves(one):
                    self.served_together.append((one.name, others[0].name))


def serves(broker: BrokerProcess) -> bool:
    """Whether it answers an OpenWire client. A port may listen before that: clients wait there for who takes over."""
    with socket.socket() as client, contextlib.suppress(OSError):
        client.settimeout(ANSWER_SECONDS)
        client.connect(("127.0.0.1", broker.port))
        client.sendall(WireFormat(HANDSHAKE).encode(info_of(HANDSHAKE)))
        return client.recv(1) != b""
    return False
