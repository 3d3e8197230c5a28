"""Conversion of the messaging-activemq subsystem of a standalone.xml to the tree of an equal broker.xml.

Every element of the tree has file and line of the standalone.xml. So problems that broker_xml.py finds name the
line the user wrote. Expressions are replaced before; only those in use must have a value.
"""

from __future__ import annotations

from dataclasses import dataclass

from atalanta.config import Report
from atalanta.config.wildfly import tables
from atalanta.config.wildfly.jgroups import Stacks
from atalanta.config.wildfly.sockets import Endpoint, Sockets, checked
from atalanta.config.wildfly.ssl_contexts import SslContexts
from atalanta.config.wildfly.transports import Transports
from atalanta.config.xml import XmlElement, below, made


@dataclass
class BrokerTree:
    """A converted broker. `stacks` are the JGroups stack files that `configuration` names; they exist only in
    memory."""

    configuration: XmlElement
    stacks: dict[str, str]


def broker_tree(root: XmlElement, report: Report) -> BrokerTree | None:
    """Returns `<configuration>` with one `<core>`; None, and a problem, without exactly one broker."""
    if root.name == "domain":
        report.problem(
            root.file,
            root.line,
            "a domain.xml describes many servers",
            "take the standalone.xml of one, or the <subsystem> of one profile",
        )
        return None
    subsystems = [
        node
        for node in below(root)
        if node.name == "subsystem" and node.namespace.startswith(tables.SUBSYSTEM)
    ]
    servers = [server for each in subsystems for server in each.all("server")]
    if len(servers) != 1:
        each_with_line = [
            f"'{server.attributes.get('name', '')}' (line {server.line})" for server in servers
        ]
        report.problem(
            root.file,
            servers[1].line if servers else root.line,
            f"the messaging-activemq subsystem holds {len(servers)} brokers (<server>), not one",
            f"leave one of {', '.join(each_with_line)} and start the others from files of their own"
            if servers
            else "",
        )
        return None
    for each in subsystems:
        for child in each.children:
            tell_unbuilt(child, report)
    for node in below(servers[0]):
        if node.name not in tables.WITHOUT_EFFECT and node.name not in tables.LOST:
            checked(node, report)
    sockets = Sockets(root, report)
    stacks = Stacks(root, sockets, report)
    contexts = SslContexts(root, report)
    configuration = SubsystemReader(sockets, stacks, contexts, report).read(servers[0])
    return BrokerTree(configuration, stacks.texts)


class SubsystemReader:
    """Converts the children of one `<server>` to the sections of `<core>`."""

    def __init__(
        self, sockets: Sockets, stacks: Stacks, contexts: SslContexts, report: Report
    ) -> None:
        self.sockets = sockets
        self.stacks = stacks
        self.report = report
        self.transports = Transports(sockets, contexts, report)
        self.sections: dict[str, XmlElement] = {}
        self.core = XmlElement("core", "", "", 0)

    def read(self, server: XmlElement) -> XmlElement:
        """Returns `<configuration>`."""
        self.core = made(server, "core")
        self.core.children.append(made(server, "name", server.attributes.get("name", "")))
        for name, text in server.attributes.items():
            if name in tables.SERVER:
                self.core.children.append(made(server, name, text))
            elif name != "name":
                self._unknown(server, name)
        for child in server.children:
            self._child(child)
        self._defaults(server, self.core, tables.CORE_DEFAULTS)
        self.core.children.extend(self.sections.values())
        configuration = made(server, "configuration")
        configuration.children.append(self.core)
        return configuration

    def _defaults(self, source: XmlElement, entry: XmlElement, values: dict[str, str]) -> None:
        """Adds WildFly's own defaults for values that are not in the file."""
        present = {child.name for child in entry.children}
        for name, text in values.items():
            if name not in present:
                entry.children.append(made(source, name, text))

    def section(self, source: XmlElement, name: str) -> XmlElement:
        """Returns the section of that name, created once."""
        if name not in self.sections:
            self.sections[name] = made(source, name)
        return self.sections[name]

    def _child(self, child: XmlElement) -> None:
        if tell_unbuilt(child, self.report):
            return
        if child.name in tables.GROUPS:
            self._group(child)
        elif child.name in tables.DIRECTORIES:
            self._directory(child)
        elif child.name.endswith("connector"):
            self._into("connectors", self.transports.connector(child), child)
        elif child.name.endswith("acceptor"):
            self._into("acceptors", self.transports.acceptor(child), child)
        elif child.name.endswith("broadcast-group"):
            self._into("broadcast-groups", self._broadcast_group(child), child)
        elif child.name.endswith("discovery-group"):
            self._into("discovery-groups", self._discovery_group(child), child)
        else:
            self._entry(child)

    def _entry(self, child: XmlElement) -> None:
        match child.name:
            case "cluster-connection":
                made_of = self._elements(child, tables.CLUSTER_CONNECTION)
                self._into("cluster-connections", made_of, child)
            case "bridge":
                self._into("bridges", self._bridge(child), child)
            case "divert":
                self._into("diverts", self._elements(child, {}), child)
            case "grouping-handler":
                self.core.children.append(self._elements(child, {}))
            case "queue" | "jms-queue" | "jms-topic":
                self._into("addresses", self._address(child), child)
            case "security-setting":
                self._into("security-settings", self._security(child), child)
            case "address-setting":
                setting = self._elements(child, tables.ADDRESS_SETTING)
                setting.attributes = {"match": child.attributes.get("name", "")}
                self._into("address-settings", setting, child)
            case _:
                self._ha_policy(child)

    def _into(self, section: str, entry: XmlElement | None, source: XmlElement) -> None:
        if entry is not None:
            self.section(source, section).children.append(entry)

    def _unknown(self, node: XmlElement, name: str) -> None:
        self.report.problem(node.file, node.line, f"unknown attribute '{name}' of <{node.name}>")

    # -- the broker itself ----------------------------------------------------------------------
    def _group(self, node: XmlElement) -> None:
        names = tables.GROUPS[node.name]
        for name, text in node.attributes.items():
            if name in names:
                self.core.children.append(made(node, names[name], text))
            elif (silent := f"{node.name} {name}") in tables.GROUPS_WITHOUT_EFFECT:
                self.report.without_effect(node.file, node.line, silent, tables.GROUPS_WITHOUT_EFFECT[silent])
            elif (lost := f"{node.name} {name}") in tables.GROUPS_LOST:
                self.report.without_effect(node.file, node.line, lost, tables.GROUPS_LOST[lost], True)
            else:
                self._unknown(node, name)
        password = self._credential(node)
        if password is not None:
            self.core.children.append(made(node, "cluster-password", password))

    def _credential(self, node: XmlElement) -> str | None:
        """Returns the password of `<credential-reference clear-text="…"/>`; credential stores exist only in
        WildFly."""
        for reference in node.all("credential-reference"):
            if "clear-text" in reference.attributes:
                return reference.attributes["clear-text"]
            self.report.problem(
                reference.file,
                reference.line,
                "WildFly's credential stores cannot be read",
                'write clear-text="${NAME}" and set that environment variable',
            )
        return None

    def _directory(self, node: XmlElement) -> None:
        """Converts a folder; paths are relative to the data folder, as in WildFly."""
        path = node.attributes.get("path", "")
        base = node.attributes.get("relative-to", tables.DATA_FOLDER)
        if path:
            relative = not path.startswith("/")
            if relative and base != tables.DATA_FOLDER:
                text = f"<{node.name}>: '{base}' is not known here: only {tables.DATA_FOLDER}, `data` of the instance"
                self.report.problem(node.file, node.line, text, "write the whole path")
            self.core.children.append(made(node, node.name, f"data/{path}" if relative else path))

    def _ha_policy(self, node: XmlElement) -> None:
        """Converts `<shared-store-primary>` and the like to `<ha-policy><shared-store><primary>`."""
        policy = made(node, "ha-policy")
        form, _, role = node.name.rpartition("-")
        if node.name in tables.HA_ALONE:
            policy.children.append(self._ha_role(node, node.name))
        elif form in tables.HA_FORMS and role in tables.HA_ROLES:
            policy.children.append(made(node, form))
            policy.children[0].children.append(self._ha_role(node, tables.HA_ROLES[role], form))
        else:
            self.report.problem(node.file, node.line, f"unknown element <{node.name}> in <server>")
            return
        self.core.children.append(policy)

    def _ha_role(self, node: XmlElement, name: str, form: str = "") -> XmlElement:
        """Converts the attributes of a role to elements, and its children."""
        entry = made(node, name)
        for attribute, text in node.attributes.items():
            if attribute == "excluded-connectors":
                entry.children.append(listed(node, "excludes", text))
            else:
                entry.children.append(made(node, tables.HA.get(attribute, attribute), text))
        self._defaults(node, entry, tables.HA_DEFAULTS.get((form, name), {}))
        for child in node.children:
            if child.name == "scale-down":
                entry.children.append(self._scale_down(child))
            elif name == "colocated" and tables.HA_ROLES.get(child.name, name) != name:
                entry.children.append(self._ha_role(child, tables.HA_ROLES[child.name], form))
            else:
                text = f"unknown element <{child.name}> in <{node.name}>"
                self.report.problem(child.file, child.line, text)
        return entry

    def _scale_down(self, node: XmlElement) -> XmlElement:
        entry = made(node, "scale-down")
        for name, text in node.attributes.items():
            if name == "connectors":
                entry.children.append(listed(node, "connectors", text))
            elif name == "discovery-group":
                entry.children.append(discovery_reference(node, text))
            elif name == "cluster-name":
                why = "the target is looked for in every cluster-connection of this file"
                self.report.without_effect(node.file, node.line, "scale-down cluster-name", why, True)
            else:
                entry.children.append(made(node, name, text))
        return entry

    # -- groups, cluster connections, bridges ---------------------------------------------------
    def _broadcast_group(self, node: XmlElement) -> XmlElement | None:
        group = self._group_of_nodes(node)
        if group is not None:
            for name in node.attributes.get("connectors", "").split():
                group.children.append(made(node, "connector-ref", name))
        return group

    def _discovery_group(self, node: XmlElement) -> XmlElement | None:
        return self._group_of_nodes(node)

    def _group_of_nodes(self, node: XmlElement) -> XmlElement | None:
        """Converts a broadcast or discovery group with a multicast socket binding or with JGroups."""
        kind = "broadcast-group" if node.name.endswith("broadcast-group") else "discovery-group"
        group = made(node, kind, name=node.attributes.get("name", ""))
        binding = node.attributes.get("socket-binding", "")
        if binding:
            endpoint = self.sockets.endpoint(node, binding)
            if endpoint is None:
                return None
            self._multicast(node, group, binding, endpoint)
        elif node.name.startswith("jgroups") or any(
            name in node.attributes for name in tables.JGROUPS_GROUP
        ):
            file = self.stacks.file_of(node)
            if file is None:
                return None
            group.children.append(made(node, "jgroups-file", file))
            # Up to WildFly 11 `jgroups-channel` had the cluster's name.
            cluster = node.attributes.get("jgroups-cluster") or node.attributes.get(
                "jgroups-channel", "activemq-cluster"
            )
            group.children.append(made(node, "jgroups-channel", cluster))
        for name in ("broadcast-period", "refresh-timeout", "initial-wait-timeout"):
            if name in node.attributes:
                group.children.append(made(node, name, node.attributes[name]))
        return group

    def _multicast(self, node: XmlElement, group: XmlElement, binding: str, endpoint: Endpoint) -> None:
        if not endpoint.group_address or not endpoint.group_port:
            self.report.problem(
                node.file,
                node.line,
                f"socket-binding '{binding}' has no multicast-address and multicast-port",
            )
            return
        if endpoint.host and endpoint.host != "0.0.0.0":
            group.children.append(made(node, "local-bind-address", endpoint.host))
        group.children.append(made(node, "group-address", endpoint.group_address))
        group.children.append(made(node, "group-port", str(endpoint.group_port)))

    def _bridge(self, node: XmlElement) -> XmlElement:
        bridge = self._elements(node, tables.BRIDGE)
        password = self._credential(node)
        if password is not None:
            bridge.children.append(made(node, "password", password))
        return bridge

    def _elements(self, node: XmlElement, names: dict[str, str]) -> XmlElement:
        """Converts attributes to elements; lists, filters and references get their form in broker.xml."""
        entry = made(node, node.name, name=node.attributes.get("name", ""))
        for name, text in node.attributes.items():
            if name in ("name", "allow-direct-connections-only"):
                continue
            if name == "static-connectors":
                static = listed(node, name, text)
                only = node.attributes.get("allow-direct-connections-only")
                if only is not None:
                    static.attributes["allow-direct-connections-only"] = only
                entry.children.append(static)
            elif name in ("discovery-group", "discovery-group-name"):
                entry.children.append(discovery_reference(node, text))
            elif name == "filter":
                entry.children.append(made(node, "filter", string=text))
            else:
                endless = name in tables.ENDLESS and text.strip() == "-1"
                value = tables.ENDLESS_VALUE if endless else text
                entry.children.append(made(node, names.get(name, name), value))
        self._defaults(node, entry, tables.DEFAULTS.get(node.name, {}))
        return entry

    # -- addresses and permissions --------------------------------------------------------------
    def _address(self, node: XmlElement) -> XmlElement:
        """Converts `<jms-queue name="q">` to the queue jms.queue.q, as WildFly creates it."""
        tell_exported(node, self.report)
        name = node.attributes.get("name", "")
        if node.name == "jms-topic":
            topic = name if name.startswith(tables.JMS_TOPIC) else tables.JMS_TOPIC + name
            address = made(node, "address", name=topic)
            address.children.append(made(node, "multicast"))
            return address
        if node.name == "jms-queue" and not name.startswith(tables.JMS_QUEUE):
            name = tables.JMS_QUEUE + name
        anycast = node.name == "jms-queue" or node.attributes.get("routing-type") == "ANYCAST"
        address = made(node, "address", name=node.attributes.get("address", name))
        kind = made(node, "anycast" if anycast else "multicast")
        queue = made(node, "queue", name=name)
        selector = node.attributes.get("filter", node.attributes.get("selector", ""))
        if selector:
            queue.children.append(made(node, "filter", string=selector))
        if "durable" in node.attributes:
            queue.children.append(made(node, "durable", node.attributes["durable"]))
        kind.children.append(queue)
        address.children.append(kind)
        return address

    def _security(self, node: XmlElement) -> XmlElement:
        setting = made(node, "security-setting", match=node.attributes.get("name", ""))
        roles: dict[str, list[str]] = {}
        for role in node.all("role"):
            for name, text in role.attributes.items():
                if name == "name":
                    continue
                if name not in tables.PERMISSIONS:
                    self._unknown(role, name)
                elif text.strip().lower() == "true":
                    holder = role.attributes.get("name", "")
                    for kind in tables.PERMISSIONS[name]:
                        holders = roles.setdefault(kind, [])
                        if holder not in holders:
                            holders.append(holder)
        for kind, holders in roles.items():
            setting.children.append(made(node, "permission", type=kind, roles=",".join(holders)))
        return setting


def tell_unbuilt(node: XmlElement, report: Report) -> bool:
    """Reports a part of the subsystem that has no effect here; False for any other one."""
    if node.name in tables.LOST:
        report.without_effect(node.file, node.line, node.name, tables.LOST[node.name], True)
        return True
    if node.name not in tables.WITHOUT_EFFECT:
        return False
    if not tell_exported(node, report):
        report.without_effect(node.file, node.line, node.name, tables.WITHOUT_EFFECT[node.name])
    return True


def tell_exported(node: XmlElement, report: Report) -> bool:
    """Reports names that clients outside of WildFly look up."""
    entries = " ".join(node.attributes.get(name, "") for name in ("entries", "legacy-entries")).split()
    exported = any(each.startswith(tables.EXPORTED) for each in entries)
    if exported:
        report.without_effect(node.file, node.line, f"{node.name} entries", tables.EXPORTED_WHY, True)
    return exported


def listed(source: XmlElement, name: str, text: str) -> XmlElement:
    """Returns a list of connector names as an element."""
    section = made(source, name)
    section.children = [made(source, "connector-ref", each) for each in text.split()]
    return section


def discovery_reference(source: XmlElement, name: str) -> XmlElement:
    """Returns `<discovery-group-ref discovery-group-name="…"/>`."""
    reference = made(source, "discovery-group-ref")
    reference.attributes["discovery-group-name"] = name
    return reference
