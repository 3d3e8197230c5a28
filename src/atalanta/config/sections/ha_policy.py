"""The section `<ha-policy>`: the role of a node, and `<scale-down>` of a node without backup.

Forms of Artemis 1.4 are read too: `<live-only>`, `<scale-down>true</scale-down>`, `<scale-down-group-name>` and
`<scale-down-clustername>`, in the policy or directly in `<core>`.
"""

from __future__ import annotations

from typing import Final

from atalanta.cluster.config import ScaleDownConfig
from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report
from atalanta.config.sections.references import CLUSTER_CONNECTION, References
from atalanta.config.xml.reader import BadValue, Handler, XmlReader, boolean, into
from atalanta.config.xml.tree import Node

ALONE: Final = ("primary-only", "live-only")
OLD_NAMES: Final = ("scale-down-group-name", "scale-down-clustername")


class HaSection:
    def __init__(self, configuration: Configuration, report: Report) -> None:
        self.configuration = configuration
        self.report = report
        self.reader = XmlReader(report)
        self.references = References(configuration, report, self.reader)

    def handlers(self) -> dict[str, Handler]:
        old: dict[str, Handler] = dict.fromkeys(OLD_NAMES, self._old)
        return {"ha-policy": self._policy, "scale-down": self._scale_down, **old}

    def finish(self) -> None:
        """Checks that referenced names are defined, and that there is a cluster to take the messages."""
        self.references.check()
        configuration = self.configuration
        config = configuration.scale_down
        if config is not None and not configuration.cluster_connections:
            file, line = configuration.position("scale-down", "")
            self.report.without_effect(
                file, line, "scale-down", "there is no cluster-connection: this node is alone", True
            )

    # -- policies -------------------------------------------------------------------------------
    def _policy(self, node: Node) -> None:
        policies = [child.name for child in node.children]
        if len(node.children) == 1 and policies[0] in ALONE:
            alone: dict[str, Handler] = dict.fromkeys(OLD_NAMES, self._old)
            self.reader.read(node.children[0], [], {"scale-down": self._scale_down, **alone})
            return
        for policy in node.children:
            for role in policy.children:
                if role.name in ("backup", "slave") and policy.name != "colocated":
                    self.report.problem(
                        role.file,
                        role.line,
                        "this file describes a backup, which is not supported yet",
                        "started as it is, it would be a second primary",
                    )
        self.report.without_effect(
            node.file, node.line, "ha-policy", "not supported yet: this node has no backup", True
        )

    # -- scale-down -----------------------------------------------------------------------------
    def _config(self, node: Node) -> ScaleDownConfig:
        if self.configuration.scale_down is None:
            self.configuration.scale_down = ScaleDownConfig()
            self.configuration.positions["scale-down", ""] = (node.file, node.line)
        return self.configuration.scale_down

    def _scale_down(self, node: Node) -> None:
        config = self._config(node)
        config.enabled = True
        if node.text and not node.children:
            try:
                config.enabled = boolean(node.text.strip())
            except BadValue as error:
                self.report.problem(node.file, node.line, f"{node.name}: {error}")
            return

        def discovery(child: Node) -> None:
            config.discovery_group = self.references.discovery_group(child) or config.discovery_group

        def connectors(child: Node) -> None:
            self.reader.read(child, [], {"connector-ref": connector})

        def connector(child: Node) -> None:
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

    def _old(self, node: Node) -> None:
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
