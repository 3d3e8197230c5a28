"""The element `<scale-down>` of a policy, and the older forms of Artemis 1.4.

Those are `<scale-down>true</scale-down>`, `<scale-down-group-name>` and `<scale-down-clustername>`, in the policy or
directly in `<core>`.
"""

from __future__ import annotations

from typing import Final

from atalanta.cluster.config import ScaleDownConfig
from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report
from atalanta.config.sections.references import CLUSTER_CONNECTION, References
from atalanta.config.xml.reader import BadValue, Handler, XmlReader, boolean, into
from atalanta.config.xml.tree import XmlElement

OLD_NAMES: Final = ("scale-down-group-name", "scale-down-clustername")


class ScaleDownReader:
    """Reads the element into `Configuration.scale_down`; `references` has the names that it mentions."""

    def __init__(self, configuration: Configuration, report: Report, references: References) -> None:
        self.configuration = configuration
        self.report = report
        self.references = references
        self.reader = XmlReader(report)

    def handlers(self) -> dict[str, Handler]:
        """Returns the readers of the element in all its forms, for a node without a backup."""
        old: dict[str, Handler] = dict.fromkeys(OLD_NAMES, self._old)
        return {"scale-down": self.of_node, **old}

    def finish(self) -> None:
        """Checks that there is a cluster to take the messages."""
        configuration = self.configuration
        if configuration.scale_down is not None and not configuration.cluster_connections:
            file, line = configuration.position("scale-down", "")
            self.report.without_effect(
                file, line, "scale-down", "there is no cluster-connection: this node is alone", True
            )

    def of_hosted_backup(self, node: XmlElement) -> None:
        """Reads and checks the element of a backup that a colocated node hosts: its host serves other messages."""
        self._read(node, ScaleDownConfig())
        self.report.without_effect(
            node.file, node.line, "scale-down",
            "not supported in a colocated backup: once active it serves the messages itself, and gives them to no "
            "other node",
            True,
        )  # fmt: skip

    def _config(self, node: XmlElement) -> ScaleDownConfig:
        if self.configuration.scale_down is None:
            self.configuration.scale_down = ScaleDownConfig()
            self.configuration.positions["scale-down", ""] = (node.file, node.line)
        return self.configuration.scale_down

    def of_node(self, node: XmlElement) -> None:
        """Reads and checks the element of this node."""
        self._read(node, self._config(node))

    def _read(self, node: XmlElement, config: ScaleDownConfig) -> None:
        config.enabled = True
        if node.text and not node.children:
            try:
                config.enabled = boolean(node.text.strip())
            except BadValue as error:
                self.report.problem(node.file, node.line, f"{node.name}: {error}")
            return

        def discovery(child: XmlElement) -> None:
            config.discovery_group = self.references.discovery_group(child) or config.discovery_group

        def connectors(child: XmlElement) -> None:
            self.reader.read(child, [], {"connector-ref": connector})

        def connector(child: XmlElement) -> None:
            name = self.references.connector(child)
            if name:
                config.connectors.append(name)

        handlers: dict[str, Handler] = {
            "discovery-group-ref": discovery,
            "connectors": connectors,
        }
        self.reader.read(node, [into(config)], handlers)
        if config.commit_interval == 0:
            text = "commit-interval is above 0, or -1"
            self.report.problem(node.file, node.line, text)
        if config.connectors and config.discovery_group is not None:
            self.report.problem(
                node.file, node.line, "scale-down has connectors and a discovery group",
                "keep one of them",
            )  # fmt: skip

    def _old(self, node: XmlElement) -> None:
        """Reads the old form. Without `<scale-down>` the node only takes over messages of others."""
        new = self.configuration.scale_down is None
        config = self._config(node)
        if new:
            config.enabled = False
        if node.name == "scale-down-group-name":
            config.group_name = node.text.strip() or None
        else:
            config.cluster_name = node.text.strip() or None
            if config.cluster_name is not None:
                self.references.add(node, CLUSTER_CONNECTION, config.cluster_name)
