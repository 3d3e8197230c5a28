"""The section `<ha-policy>`: the form of high availability and the role of the node.

`master`, `slave` and `live-only` are the names of older files for `primary`, `backup` and `primary-only`. Each value
is read from the element of the role itself. Artemis takes the first one anywhere below it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report
from atalanta.config.sections.references import References
from atalanta.config.sections.scale_down import OLD_NAMES, ScaleDownReader
from atalanta.config.xml.reader import Handler, XmlReader, into
from atalanta.config.xml.tree import Node
from atalanta.ha.policy import (
    BACKUP,
    PRIMARY,
    SHARED_STORE,
    SharedStoreBackup,
    SharedStorePrimary,
)

KIND: Final = "ha-policy"
ALONE: Final = ("primary-only", "live-only")
ROLES: Final = {"primary": PRIMARY, "master": PRIMARY, "backup": BACKUP, "slave": BACKUP}


class HaSection:
    """Reads the section into `Configuration.ha` and `Configuration.scale_down`."""

    def __init__(self, configuration: Configuration, report: Report) -> None:
        self.configuration = configuration
        self.report = report
        self.reader = XmlReader(report)
        self.references = References(configuration, report, self.reader)
        self.scale_down = ScaleDownReader(configuration, report, self.references)

    def handlers(self) -> dict[str, Handler]:
        return {KIND: self._policy, **self.scale_down.handlers()}

    def finish(self) -> None:
        """Checks that referenced names are defined, and that the other sections fit the policy."""
        self.references.check()
        self.scale_down.finish()
        if self.configuration.ha.form == SHARED_STORE:
            self._check_shared_store()

    def _check_shared_store(self) -> None:
        configuration = self.configuration
        file, line = configuration.position(KIND, "")
        if not configuration.broker.persistence_enabled:
            self.report.problem(
                file, line, "a shared store needs messages on disk, and persistence-enabled is false",
                "remove persistence-enabled, or the ha-policy",
            )  # fmt: skip
        if not configuration.cluster_connections:
            configuration.warnings.append(
                f"{file}:{line}: ha-policy: there is no cluster-connection: clients and other nodes do not learn of"
                " the backup, they need its address in their own configuration"
            )

    # -- forms ----------------------------------------------------------------------------------
    def _policy(self, node: Node) -> None:
        policies = [child.name for child in node.children]
        if (KIND, "") in self.configuration.positions:
            self.report.problem(node.file, node.line, "ha-policy is given twice", "keep one of them")
        self.configuration.positions[KIND, ""] = (node.file, node.line)
        if len(node.children) == 1 and policies[0] in ALONE:
            names = ("scale-down", *OLD_NAMES)
            handlers = self.scale_down.handlers()
            self.reader.read(node.children[0], [], {name: handlers[name] for name in names})
            return
        if policies == [SHARED_STORE]:
            self._shared_store(node.children[0])
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
            node.file, node.line, KIND, "not supported yet: this node has no backup", True
        )

    def _shared_store(self, node: Node) -> None:
        self.configuration.ha.form = SHARED_STORE
        self.reader.read(node, [], dict.fromkeys(ROLES, self._shared_store_role))
        if len(node.children) != 1:
            self.report.problem(
                node.file, node.line, f"<{node.name}> says one role of this node, not {len(node.children)}",
                "<primary/> or <backup/>",
            )  # fmt: skip

    def _shared_store_role(self, node: Node) -> None:
        role = ROLES[node.name]
        self.configuration.ha.role = role
        if role == PRIMARY:
            self._take(node, SharedStorePrimary(), {})
        else:
            self._take(node, SharedStoreBackup(), {"scale-down": self.scale_down.of_backup})

    def _take(self, node: Node, values: Any, handlers: dict[str, Handler]) -> None:
        """Reads the element of a role into `values`, and puts those with an effect into the policy."""
        self.reader.read(node, [into(values)], handlers)
        for entry in fields(values):
            if entry.metadata["supported"]:
                setattr(self.configuration.ha, entry.name, getattr(values, entry.name))
