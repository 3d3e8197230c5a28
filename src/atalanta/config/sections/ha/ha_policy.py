"""The section `<ha-policy>`: the form of high availability and the role of the node.

`master`, `slave` and `live-only` are the names of older files for `primary`, `backup` and `primary-only`. Each value
is read from the element of the role itself. Artemis takes the first one anywhere below it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report
from atalanta.config.sections.ha.lock_manager import LockManagerReader
from atalanta.config.sections.ha.scale_down import OLD_NAMES, ScaleDownReader
from atalanta.config.sections.references import CLUSTER_CONNECTION, References
from atalanta.config.xml.reader import Handler, XmlReader, into
from atalanta.config.xml.tree import XmlElement
from atalanta.ha.policy import BACKUP, COLOCATED, PRIMARY, REPLICATION, SHARED_STORE, HaPolicy

KIND: Final = "ha-policy"
LOCK_TIMEOUT: Final = "journal-lock-acquisition-timeout"
MANAGER: Final = "manager"
# What a replication without a manager needs.
WITNESS: Final = "start `atalanta ha witness` and name it in atalanta.toml, [ha.manager] with kind = \"quorum\""
ALONE: Final = ("primary-only", "live-only")
FORMS: Final = (SHARED_STORE, REPLICATION)
ROLES: Final = {"primary": PRIMARY, "master": PRIMARY, "backup": BACKUP, "slave": BACKUP}
OLD_ROLES: Final = ("master", "slave")


def elements() -> dict[tuple[str, str], type[Any]]:
    """Returns the class of the element for each form and role."""
    # Most nodes have no ha-policy, and a start is faster without its classes.
    from atalanta.ha import policy_elements

    return {
        (SHARED_STORE, PRIMARY): policy_elements.SharedStorePrimary,
        (SHARED_STORE, BACKUP): policy_elements.SharedStoreBackup,
        (SHARED_STORE, COLOCATED): policy_elements.ColocationConfig,
        (REPLICATION, PRIMARY): policy_elements.ReplicationPrimary,
        (REPLICATION, BACKUP): policy_elements.ReplicationBackup,
        (REPLICATION, COLOCATED): policy_elements.ColocationConfig,
    }


class HaSection:
    """Reads the section into `Configuration.ha` and `Configuration.scale_down`."""

    def __init__(self, configuration: Configuration, report: Report) -> None:
        self.configuration = configuration
        self.report = report
        self.reader = XmlReader(report)
        self.references = References(configuration, report, self.reader)
        self.scale_down = ScaleDownReader(configuration, report, self.references)
        self.managers = LockManagerReader(report)

    @property
    def policy(self) -> HaPolicy:
        return self.configuration.ha

    def handlers(self) -> dict[str, Handler]:
        return {KIND: self._section, **self.scale_down.handlers()}

    def finish(self, core: XmlElement) -> None:
        """Checks that referenced names are defined, and that the other sections fit the policy."""
        self.references.check()
        self.scale_down.finish()
        if self.policy.form == SHARED_STORE:
            self._check_shared_store()
        if self.policy.colocation is not None and not self.configuration.cluster_connections:
            file, line = self.configuration.position(KIND, "")
            why = "there is no cluster-connection: no other node can be asked for a backup"
            self.report.without_effect(file, line, COLOCATED, why, True)
        for node in core.all(LOCK_TIMEOUT):
            self._check_lock_timeout(node)

    def finish_own(self) -> None:
        """Checks the policy with the table `[ha]` of atalanta.toml, which has been read into it."""
        self.managers.finish(self.policy.manager)
        self._check_manager()
        if self.policy.form == REPLICATION:
            self._check_replication()

    def _check_manager(self) -> None:
        """Reports wrong addresses of the manager. A file that is not there may be on another host: a warning."""
        if self.policy.manager is None:
            return
        # Most nodes have no manager.
        from atalanta.config.sections.ha.manager_check import address_faults, missing_files

        file, line = self.configuration.manager_position()
        for text, hint in address_faults(self.policy.manager):
            self.report.problem(file, line, f"{MANAGER}: {text}", hint)
        for text, hint in missing_files(self.policy.manager, self.configuration.instance):
            self.configuration.warnings.append(f"{file}:{line}: {MANAGER}: {text}: {hint}")

    def _check_replication(self) -> None:
        """Checks what the group of a replication needs: a manager, a disk, and the addresses of its members."""
        policy, configuration = self.policy, self.configuration
        file, line = configuration.position(KIND, "")
        if policy.manager is None and not self.managers.unknown and configuration.broker.persistence_enabled:
            self._take_default_manager()
        if policy.manager is None:
            if policy.role == BACKUP and not self.managers.unknown:
                self.report.problem(
                    file, line, "this file describes a backup by replication, and no manager says who is active",
                    f"two nodes without one could both serve: {WITNESS}",
                )  # fmt: skip
            elif not self.managers.unknown:
                why = f"no manager says who is active, so this node serves alone: {WITNESS}"
                self.report.without_effect(file, line, KIND, why, True)
            return
        if not configuration.broker.persistence_enabled:
            self.report.problem(
                file, line, "a replication needs messages on disk, and persistence-enabled is false",
                "remove persistence-enabled, or the ha-policy",
            )  # fmt: skip
        named = configuration.group_connection()
        if not configuration.cluster_connections:
            self.report.problem(
                file, line, "there is no cluster-connection: this node cannot find the others of its group",
                "add one whose static-connectors name them, or with a discovery-group",
            )  # fmt: skip
        elif named is not None and policy.colocation is None:
            self._check_connection(named, file, line)

    def _check_connection(self, named: ClusterConnectionConfig, file: str, line: int) -> None:
        """Checks that the members can find each other by their cluster connection."""
        if not named.static_connectors and named.discovery_group is None:
            self.report.problem(
                file, line, f"the cluster-connection {named.name} has neither static-connectors nor a discovery-group:"
                " this node cannot find the others of its group", "name their connectors there",
            )  # fmt: skip
        elif named.discovery_group is not None and not self.configuration.broadcast_groups:
            self.configuration.warnings.append(
                f"{file}:{line}: ha-policy: there is no broadcast-group: while this node is active, the others of its"
                " group cannot find it"
            )
        elif named.discovery_group is None:
            self._check_min_in_sync(len(named.static_connectors))

    def _check_min_in_sync(self, others: int) -> None:
        """Warns of a number that the members that this file names cannot reach."""
        if self.policy.min_in_sync > others + 1:
            file, line = self.configuration.position("[ha]", "min_in_sync")
            self.configuration.warnings.append(
                f"{file}:{line}: min_in_sync = {self.policy.min_in_sync}: this file names {others + 1} members, itself"
                f" among them, so nothing is ever confirmed: {others + 1} at most"
            )

    def _take_default_manager(self) -> None:
        """Lets the guard of the primary decide, if this is one of two nodes, and says so."""
        # Few nodes need it.
        from atalanta.config.sections.ha.default_manager import default_manager

        policy = self.policy
        made = policy.manager = default_manager(self.configuration)
        if made is not None:
            file, line = self.configuration.position(KIND, "")
            whose = "this primary" if policy.role == PRIMARY else "the primary"
            self.configuration.warnings.append(
                f"{file}:{line}: {KIND}: no manager is configured: the voter {made.voters}, in the guard of {whose},"
                " decides who is active. When all processes there end at once (host, container, service), no backup"
                f" takes over before they start again: {WITNESS}"
            )

    def _check_shared_store(self) -> None:
        configuration = self.configuration
        file, line = configuration.position(KIND, "")
        if not configuration.broker.persistence_enabled:
            self.report.problem(
                file, line, "a shared store needs messages on disk, and persistence-enabled is false",
                "remove persistence-enabled, or the ha-policy",
            )  # fmt: skip
        if not configuration.cluster_connections and not configuration.classic:
            configuration.warnings.append(
                f"{file}:{line}: ha-policy: there is no cluster-connection: clients and other nodes do not learn of"
                " the backup, they need its address in their own configuration"
            )

    def _check_lock_timeout(self, node: XmlElement) -> None:
        why = ""
        if self.configuration.journal.lock_acquisition_timeout_ms == 0:
            self.report.problem(node.file, node.line, f"{LOCK_TIMEOUT} is above 0, or -1")
        elif self.policy.form != SHARED_STORE:
            why = "no effect (without a shared store a folder in use is refused at once)"
        elif self.policy.role == BACKUP:
            why = "no effect (a backup waits for ever)"
        if why and self.configuration.journal.lock_acquisition_timeout_ms > 0:
            self.report.without_effect(node.file, node.line, LOCK_TIMEOUT, why, True)

    # -- forms ----------------------------------------------------------------------------------
    def _section(self, node: XmlElement) -> None:
        if (KIND, "") in self.configuration.positions:
            self.report.problem(node.file, node.line, "ha-policy is given twice", "keep one of them")
        self.configuration.positions[KIND, ""] = (node.file, node.line)
        if len(node.children) > 1:
            names = ", ".join(child.name for child in node.children)
            text = f"ha-policy has one policy, not {len(node.children)}: {names}"
            self.report.problem(node.file, node.line, text, "keep one of them")
        handlers: dict[str, Handler] = dict.fromkeys(ALONE, self._alone)
        self.reader.read(node, [], {**handlers, **dict.fromkeys(FORMS, self._form)})

    def _alone(self, node: XmlElement) -> None:
        handlers = self.scale_down.handlers()
        self.reader.read(node, [], {name: handlers[name] for name in ("scale-down", *OLD_NAMES)})

    def _form(self, node: XmlElement) -> None:
        self.policy.form = node.name
        roles: dict[str, Handler] = dict.fromkeys(ROLES, self._role)
        self.reader.read(node, [], {**roles, COLOCATED: self._colocated})
        if len(node.children) != 1:
            self.report.problem(
                node.file, node.line, f"<{node.name}> says one role of this node, not {len(node.children)}",
                "<primary/>, <backup/> or <colocated>",
            )  # fmt: skip

    # -- roles ----------------------------------------------------------------------------------
    def _role(self, node: XmlElement) -> None:
        """Reads the element of this node's role, and puts its values into the policy."""
        policy = self.policy
        policy.role = ROLES[node.name]
        policy.take(self._values(node))
        if policy.cluster_name is not None:
            self.references.add(node, CLUSTER_CONNECTION, policy.cluster_name)

    def _values(self, node: XmlElement) -> Any:
        """Returns the values of the element of a role."""
        role = ROLES[node.name]
        values = elements()[self.policy.form, role]()
        handlers: dict[str, Handler] = {}
        if role == BACKUP:
            own = self.policy.role == BACKUP  # else a colocated one
            handlers["scale-down"] = self.scale_down.of_node if own else self.scale_down.of_hosted_backup
        if self.policy.form == REPLICATION:
            handlers[MANAGER] = self._old_manager if node.name in OLD_ROLES else self._manager
        self.reader.read(node, [into(values)], handlers)
        return values

    def _colocated(self, node: XmlElement) -> None:
        """Reads a primary that hosts backups: its own values, and those of the backups."""
        policy = self.policy
        made = elements()[policy.form, COLOCATED]()
        backups = [elements()[policy.form, BACKUP]()]
        excluded: list[str] = []

        def backup(child: XmlElement) -> None:
            values = self._values(child)
            if policy.form == SHARED_STORE and not values.restart_backup:
                why = "a colocated backup that gave its service back waits again"
                self.report.without_effect(child.file, child.line, "restart-backup", why, True)
                values = replace(values, restart_backup=True)
            backups.append(values)

        handlers: dict[str, Handler] = {
            name: self._role if role == PRIMARY else backup for name, role in ROLES.items()
        }
        if policy.form == REPLICATION:
            handlers["excludes"] = lambda child: self._excludes(child, excluded)
        self.reader.read(node, [into(made)], handlers)
        policy.colocation = replace(made, excluded=excluded, backup=backups[-1])

    def _excludes(self, node: XmlElement, names: list[str]) -> None:
        def connector(child: XmlElement) -> None:
            name = self.references.connector(child)
            if name:
                names.append(name)

        self.reader.read(node, [], {"connector-ref": connector})

    def _manager(self, node: XmlElement) -> None:
        self.policy.manager = self.managers.read(node)

    def _old_manager(self, node: XmlElement) -> None:
        """Reads a manager below `<master>` or `<slave>`: Artemis does not read it there, and votes instead."""
        self._manager(node)
        self.configuration.warnings.append(
            f"{node.file}:{node.line}: manager: is taken here; Artemis ignores it below <master> and <slave>, and needs"
            " the names <primary> and <backup>"
        )
