"""The findings of `atalanta check`, and the nodes that it checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.config.configuration import Configuration
from atalanta.kernel.security.security import Security
from atalanta.wire.endpoint import ConnectorConfig

ERROR: Final = "error"
WARNING: Final = "warning"
INFORMATION: Final = "info"


@dataclass(frozen=True)
class Finding:
    """A finding about a file. `file` "": about several files; line 0: no line."""

    level: str
    file: str
    line: int
    text: str
    hint: str = ""

    def position(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(eq=False)
class CheckedNode:
    """A file that was read. `node_id` is the id in its data folder, if the node ever ran."""

    configuration: Configuration
    security: Security | None = None
    node_id: str | None = None

    @property
    def label(self) -> str:
        """Returns name and file, for texts about several nodes; names may be equal."""
        return f"{self.configuration.broker.name} ({self.configuration.path})"

    @property
    def connection(self) -> ClusterConnectionConfig | None:
        connections = self.configuration.cluster_connections
        return connections[0] if connections else None

    @property
    def announced(self) -> ConnectorConfig | None:
        """Returns the connector that the node announces to others."""
        connection = self.connection
        if connection is None:
            return None
        return self.configuration.connectors.get(connection.connector)


@dataclass
class Findings:
    found: list[Finding] = field(default_factory=list)

    def add(
        self, level: str, node: CheckedNode, kind: str, name: str, text: str, hint: str = ""
    ) -> None:
        """Adds a finding about a named element of the node's file."""
        file, line = node.configuration.position(kind, name)
        self.found.append(Finding(level, file, line, text, hint))

    def about(self, level: str, node: CheckedNode, text: str, hint: str = "") -> None:
        """Adds a finding about the node's file as a whole."""
        self.found.append(Finding(level, str(node.configuration.path), 0, text, hint))

    def together(self, level: str, text: str, hint: str = "") -> None:
        """Adds a finding about several files."""
        self.found.append(Finding(level, "", 0, text, hint))
