"""References by name between sections of broker.xml: to connectors, groups and cluster connections."""

from __future__ import annotations

from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report, nearest
from atalanta.config.xml.reader import XmlReader
from atalanta.config.xml.tree import XmlElement

CONNECTOR = "connector"
DISCOVERY_GROUP = "discovery-group"
CLUSTER_CONNECTION = "cluster-connection"


class References:
    """Records references while the file is read; `check` resolves them at the end of the file."""

    def __init__(self, configuration: Configuration, report: Report, reader: XmlReader) -> None:
        self.configuration = configuration
        self.report = report
        self.reader = reader
        self._noted: list[tuple[XmlElement, str, str]] = []  # (node, CONNECTOR…, name)

    def add(self, node: XmlElement, kind: str, name: str) -> None:
        self._noted.append((node, kind, name))

    def connector(self, node: XmlElement) -> str:
        """Returns the name in `<connector-ref>`: its text, or `connector-name` as in older files. "" is reported."""
        self.reader.read(
            XmlElement(
                node.name, node.namespace, node.file, node.line, node.attributes, "", node.children
            ),
            [],
            attributes=("connector-name",),
        )
        name = node.text or node.attributes.get("connector-name", "")
        if name:
            self.add(node, CONNECTOR, name)
        else:
            self.report.problem(node.file, node.line, "a <connector-ref> names a connector")
        return name

    def discovery_group(self, node: XmlElement) -> str:
        """Returns the name in `<discovery-group-ref discovery-group-name="x"/>`. "" is reported."""
        self.reader.read(node, [], attributes=("discovery-group-name",))
        name = node.attributes.get("discovery-group-name", "")
        if name:
            self.add(node, DISCOVERY_GROUP, name)
        else:
            self.report.problem(node.file, node.line, "a <discovery-group-ref> names a group")
        return name

    def check(self) -> None:
        """Checks that each referenced name is defined in the file."""
        configuration = self.configuration
        defined = {
            CONNECTOR: list(configuration.connectors),
            DISCOVERY_GROUP: list(configuration.discovery_groups),
            CLUSTER_CONNECTION: [each.name for each in configuration.cluster_connections],
        }
        for node, kind, name in self._noted:
            if name in defined[kind]:
                continue
            hint = nearest(name, defined[kind])
            if kind == CONNECTOR and name in configuration.in_vm_connectors:
                hint = "in-vm connectors are not supported here: name one with tcp://"
            self.report.problem(node.file, node.line, f"there is no {kind} '{name}'", hint)
