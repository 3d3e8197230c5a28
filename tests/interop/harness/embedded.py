"""A real Artemis of any version, from the jars of artemis-server: Maven Central has no archives of some versions."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .broker_xml import CLUSTER_PASSWORD, CLUSTER_USER
from .node import BrokerProcess
from .tools import CACHE, SMALL_JVM, java, maven

PROGRAM = Path(__file__).resolve().parents[1] / "java-embedded" / "EmbeddedNode.java"
MOVED = (2, 50)  # the first version in the group org.apache.artemis
PERMISSIONS = (
    "createNonDurableQueue", "deleteNonDurableQueue", "createDurableQueue", "deleteDurableQueue", "createAddress",
    "deleteAddress", "consume", "browse", "send", "manage",
)  # fmt: skip


@cache
def server_jars(version: str) -> Path:
    """Returns the folder with artemis-server and what it needs; fetched by Maven on first use."""
    return _jars("artemis-server", version)


@cache
def client_jars(version: str) -> Path:
    """Returns the folder with artemis-jms-client (javax.jms) and what it needs; fetched by Maven on first use."""
    return _jars("artemis-jms-client", version)


def _jars(artifact: str, version: str) -> Path:
    folder = CACHE / f"{artifact}-{version}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        major, minor = version.split(".")[:2]
        group = "org.apache.artemis" if (int(major), int(minor)) >= MOVED else "org.apache.activemq"
        logging = "2.0.16" if group == "org.apache.artemis" else "1.7.36"
        pom = folder / "pom.xml"
        pom.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            f"<groupId>interop</groupId><artifactId>{artifact}-{version}</artifactId><version>1</version><dependencies>"
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            "</dependency><dependency><groupId>org.slf4j</groupId><artifactId>slf4j-jdk14</artifactId>"
            f"<version>{logging}</version></dependency></dependencies></project>"
        )
        maven("-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}")
        (folder / "complete").touch()
    return folder


class EmbeddedArtemis(BrokerProcess):
    """A real broker in a cluster with the node at the port `peer`. Its user is admin."""

    kind = "artemis"

    def __init__(self, folder: Path, version: str, port: int, peer: int) -> None:
        super().__init__(folder, f"artemis-{version}", port)
        self.version = version
        self.peer = peer

    def _create(self) -> None:
        server_jars(self.version)

    def configure(self, shape: object = None) -> None:
        """Writes its broker.xml, in the words that all versions know."""
        self._create()
        (self.folder / "etc").mkdir(parents=True)
        permissions = "".join(f'<permission type="{name}" roles="amq"/>' for name in PERMISSIONS)
        (self.folder / "etc" / "broker.xml").write_text(
            f"""<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
   <name>{self.name}</name>
   <persistence-enabled>true</persistence-enabled>
   <journal-type>NIO</journal-type>
   <paging-directory>data/paging</paging-directory>
   <bindings-directory>data/bindings</bindings-directory>
   <journal-directory>data/journal</journal-directory>
   <large-messages-directory>data/large</large-messages-directory>
   <cluster-user>{CLUSTER_USER}</cluster-user>
   <cluster-password>{CLUSTER_PASSWORD}</cluster-password>
   <connectors>
      <connector name="own">tcp://127.0.0.1:{self.port}</connector>
      <connector name="peer">tcp://127.0.0.1:{self.peer}</connector>
   </connectors>
   <acceptors><acceptor name="artemis">tcp://127.0.0.1:{self.port}</acceptor></acceptors>
   <cluster-connections><cluster-connection name="cluster">
      <connector-ref>own</connector-ref>
      <retry-interval>500</retry-interval>
      <message-load-balancing>ON_DEMAND</message-load-balancing>
      <static-connectors><connector-ref>peer</connector-ref></static-connectors>
   </cluster-connection></cluster-connections>
   <security-settings><security-setting match="#">{permissions}</security-setting></security-settings>
   <address-settings>
      <address-setting match="#"><redistribution-delay>0</redistribution-delay></address-setting>
   </address-settings>
   <addresses><address name="both"><anycast><queue name="both"/></anycast></address></addresses>
</core></configuration>
"""
        )

    def _command(self) -> list[str]:
        jars = f"{server_jars(self.version)}/*"
        return [java(), *SMALL_JVM, "-Xmx256M", "-cp", jars, str(PROGRAM), str(self.folder / "etc" / "broker.xml")]

    def _environment(self) -> dict[str, str]:
        return {}

    def _ready(self) -> bool:
        return "ready " in self.log.read_text(errors="replace")
