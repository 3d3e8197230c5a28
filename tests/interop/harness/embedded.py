"""A real Artemis of any version, from the jars of artemis-server: Maven Central has no archives of some versions."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from .broker_xml import (
    CLUSTER_PASSWORD,
    CLUSTER_USER,
    PERMISSIONS,
    Shape,
    cluster_connections,
    connectors,
)
from .client_versions import group_of
from .node import BrokerProcess
from .tools import CACHE, SMALL_JVM, java, maven

PROGRAM = Path(__file__).resolve().parents[1] / "java-embedded" / "EmbeddedNode.java"


@cache
def server_jars(version: str) -> Path:
    """Returns the folder with artemis-server and what it needs; fetched by Maven on first use."""
    folder = CACHE / f"artemis-server-{version}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        group = group_of(version)
        logging = "2.0.16" if group == "org.apache.artemis" else "1.7.36"
        pom = folder / "pom.xml"
        pom.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            f"<groupId>interop</groupId><artifactId>server-{version}</artifactId><version>1</version><dependencies>"
            f"<dependency><groupId>{group}</groupId><artifactId>artemis-server</artifactId><version>{version}</version>"
            "</dependency><dependency><groupId>org.slf4j</groupId><artifactId>slf4j-jdk14</artifactId>"
            f"<version>{logging}</version></dependency></dependencies></project>"
        )
        maven("-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}")
        (folder / "complete").touch()
    return folder


class EmbeddedArtemis(BrokerProcess):
    """A real broker of any version. Its user is admin; of a shape it has the cluster, the delay and the addresses."""

    kind = "artemis"

    def __init__(self, folder: Path, name: str, port: int, version: str) -> None:
        super().__init__(folder, name, port)
        self.version = version

    def _create(self) -> None:
        server_jars(self.version)

    def _broker_xml(self, shape: Shape | None) -> str:
        """Its broker.xml, in the words that all versions know."""
        shape = shape or Shape()
        delay = f"<redistribution-delay>{shape.redistribution_delay_ms}</redistribution-delay>"
        permissions = "".join(f'<permission type="{name}" roles="amq"/>' for name in PERMISSIONS)
        return f"""<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
   <name>{self.name}</name>
   <persistence-enabled>true</persistence-enabled>
   <journal-type>NIO</journal-type>
   <paging-directory>data/paging</paging-directory>
   <bindings-directory>data/bindings</bindings-directory>
   <journal-directory>data/journal</journal-directory>
   <large-messages-directory>data/large</large-messages-directory>
   <cluster-user>{CLUSTER_USER}</cluster-user>
   <cluster-password>{CLUSTER_PASSWORD}</cluster-password>
{connectors(self.port, shape)}
   <acceptors><acceptor name="artemis">tcp://127.0.0.1:{self.port}</acceptor></acceptors>
{cluster_connections(shape.cluster)}
   <security-settings><security-setting match="#">{permissions}</security-setting></security-settings>
   <address-settings><address-setting match="#">{delay}</address-setting></address-settings>
   <addresses>{shape.addresses}</addresses>
</core></configuration>
"""

    def _command(self) -> list[str]:
        # Files that broker.xml names, as a JGroups stack, are looked for on the class path.
        jars = f"{server_jars(self.version)}/*{os.pathsep}{self.folder / 'etc'}"
        options = [*SMALL_JVM, "-Xmx256M", "-Djava.net.preferIPv4Stack=true"]
        return [java(), *options, "-cp", jars, str(PROGRAM), str(self.folder / "etc" / "broker.xml")]

    def _environment(self) -> dict[str, str]:
        return {}

    def _ready(self) -> bool:
        return "ready " in self.log.read_text(errors="replace")
