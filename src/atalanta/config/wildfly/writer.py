"""A broker.xml's tree as the messaging-activemq subsystem in a standalone.xml, with the sockets it needs.

What the subsystem has no words for is left out and named, with file and line of the broker.xml.
"""

from __future__ import annotations

from typing import Final

from atalanta.config.jms_xml import addresses_of
from atalanta.config.problems import Report
from atalanta.config.wildfly import tables
from atalanta.config.wildfly.socket_writer import SocketWriter, element
from atalanta.config.wildfly.sockets import below
from atalanta.config.xml_tree import Node

DOMAIN: Final = "urn:jboss:domain:20.0"
WHY: Final = "WildFly's subsystem has nothing for it"


def subsystem_tree(configuration: Node, report: Report) -> Node:
    """`<server>` of a standalone.xml for the `<configuration>` (or bare `<core>`) of a broker.xml."""
    core = configuration
    for child in configuration.all("core"):
        core = child
    core.children.extend(addresses_of(each, report) for each in configuration.all("jms"))
    return SubsystemWriter(report).write(core)


class SubsystemWriter:
    """Makes the children of the subsystem's `<server>` out of the sections of `<core>`."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.sockets = SocketWriter(report)
        self.groups: dict[str, Node] = {}
        self.cluster_name = ""  # WildFly wants one where it scales down
        self.server = element("server", name="default")
        self.elements = {
            element_name: (group, attribute)
            for group, names in tables.GROUPS.items()
            for attribute, element_name in names.items()
        }

    def write(self, core: Node) -> Node:
        """The root element."""
        for section in core.all("cluster-connections"):
            for connection in section.children[:1]:
                self.cluster_name = connection.attributes.get("name", "")
        for child in core.children:
            self._child(child)
        self._core_defaults(core)
        self.server.children[:0] = self.groups.values()
        subsystem = Node("subsystem", f"{tables.SUBSYSTEM}{schema_for(self.server)}", "", 0)
        subsystem.children.append(self.server)
        profile = element("profile")
        profile.children.append(subsystem)
        if self.sockets.listeners:
            undertow = Node("subsystem", f"{tables.UNDERTOW}{tables.UNDERTOW_SCHEMA}", "", 0)
            undertow.children.append(element("server", name="default-server"))
            undertow.children[0].children = self.sockets.listeners
            profile.children.append(undertow)
        root = Node("server", DOMAIN, "", 0)
        root.children = [profile, *self.sockets.sections()]
        return root

    def _core_defaults(self, core: Node) -> None:
        """What Artemis takes where the file says nothing, and WildFly does not."""
        present = {child.name for child in core.children}
        for name, text in tables.ARTEMIS_CORE_DEFAULTS.items():
            if name not in present and not ("max-disk-usage" == name and "min-disk-free" in present):
                self._child(Node(name, "", core.file, core.line, {}, text))

    def left_out(self, node: Node, what: str = "", why: str = WHY) -> None:
        """Named for the user."""
        self.report.without_effect(node.file, node.line, what or node.name, why)

    def _child(self, child: Node) -> None:
        if child.name == "name":
            self.server.attributes["name"] = child.text
        elif child.name in tables.SERVER:
            self.server.attributes[child.name] = child.text
        elif child.name in self.elements:
            group, attribute = self.elements[child.name]
            self.groups.setdefault(group, element(group)).attributes[attribute] = child.text
        elif child.name in tables.DIRECTORIES:
            directory = element(child.name, path=child.text.removeprefix("data/"))
            self.server.children.append(directory)
        elif child.name == "ha-policy":
            self._ha_policy(child)
        elif child.name == "grouping-handler":
            self.server.children.append(self._attributes(child, {}))
        elif child.name == "queues":
            for queue in child.children:
                self._queue(queue, queue, "MULTICAST")
        else:
            self._section(child)

    def _section(self, section: Node) -> None:
        inherited: dict[str, dict[str, str]] = {}
        if section.name == "address-settings":
            inherited = {
                each.attributes.get("match", ""): {child.name: child.text for child in each.children}
                for each in section.children
            }
        for entry in section.children:
            match section.name:
                case "connectors":
                    self._append(self.sockets.connector(entry))
                case "acceptors":
                    self._append(self.sockets.acceptor(entry))
                case "broadcast-groups" | "discovery-groups":
                    self._group(entry)
                case "cluster-connections":
                    self._append(self._attributes(entry, tables.CLUSTER_CONNECTION))
                case "bridges":
                    self._append(self._attributes(entry, tables.BRIDGE))
                case "diverts":
                    self._append(self._attributes(entry, {}))
                case "addresses":
                    self._address(entry)
                case "security-settings":
                    self._security(entry)
                case "address-settings":
                    setting = self._attributes(entry, tables.ADDRESS_SETTING)
                    match = entry.attributes.get("match", "")
                    setting.attributes["name"] = match
                    for name, text in tables.ARTEMIS_DEFAULTS["address-setting"].items():
                        setting.attributes[name] = nearest_value(inherited, match, name, text)
                    self._append(setting)
                case _:
                    self.left_out(section)
                    return
        if not section.children:
            self.left_out(section)

    def _append(self, entry: Node | None) -> None:
        if entry is not None:
            self.server.children.append(entry)

    def _attributes(self, node: Node, names: dict[str, str]) -> Node:
        """Elements become attributes; the inverse of reader.SubsystemReader._elements."""
        back = {element_name: attribute for attribute, element_name in names.items()}
        known = tables.KNOWN[node.name]
        entry = element(node.name, name=node.attributes.get("name", ""))
        for child in node.children:
            if child.name == "static-connectors":
                references = [each.text for each in child.children]
                entry.attributes["static-connectors"] = " ".join(references)
                entry.attributes.update(child.attributes)
            elif child.name == "discovery-group-ref":
                entry.attributes["discovery-group"] = child.attributes.get("discovery-group-name", "")
            elif child.name == "filter":
                entry.attributes["filter"] = child.attributes.get("string", "")
            elif child.name in known:
                entry.attributes[back.get(child.name, child.name)] = child.text
            else:
                self.left_out(child, f"{child.name} of {node.name}")
        if node.name != "address-setting":
            for name, text in tables.ARTEMIS_DEFAULTS.get(node.name, {}).items():
                entry.attributes.setdefault(name, text)
        return entry

    def _group(self, node: Node) -> None:
        values = {child.name: child.text for child in node.children}
        if "jgroups-file" in values:
            why = "write its stack into WildFly's jgroups subsystem"
            self.left_out(node, f"{node.name} {node.attributes.get('name')} of JGroups", why)
            return
        entry = element(f"socket-{node.name}", name=node.attributes.get("name", ""))
        entry.attributes["socket-binding"] = self.sockets.group(node, values)
        for name in tables.KNOWN[node.name]:
            if name in values:
                entry.attributes[name] = values[name]
        connectors = [child.text for child in node.all("connector-ref")]
        if connectors:
            entry.attributes["connectors"] = " ".join(connectors)
        self.server.children.append(entry)

    def _ha_policy(self, node: Node) -> None:
        for policy in node.children:
            if policy.name not in ("live-only", "primary-only"):
                self.left_out(policy, f"ha-policy {policy.name}")
                continue
            only = element("live-only")
            for scale in policy.all("scale-down"):
                entry = self._attributes(scale, {})
                del entry.attributes["name"]
                entry.attributes["cluster-name"] = self.cluster_name
                only.children.append(entry)
            self.server.children.append(only)

    # -- addresses and permissions --------------------------------------------------------------
    def _address(self, node: Node) -> None:
        name = node.attributes.get("name", "")
        queues = 0
        for kind in node.children:
            for queue in kind.children:
                queues += 1
                self._queue(queue, node, kind.name.upper())
        if not queues and name.startswith(tables.JMS_TOPIC):
            short = name.removeprefix(tables.JMS_TOPIC)
            self._append(element("jms-topic", name=short, entries=f"java:/jms/topic/{short}"))
        elif not queues:
            self.left_out(node, f"address {name} without queues", "WildFly's addresses have queues")

    def _queue(self, node: Node, address: Node, routing_type: str) -> None:
        name = node.attributes.get("name", "")
        values = {child.name: child.text for child in node.children}
        where = values.get("address", address.attributes.get("name", name))
        extra = {key: text for key, text in node.attributes.items() if key != "name"}
        if routing_type == "ANYCAST" and name == where and name.startswith(tables.JMS_QUEUE):
            short = name.removeprefix(tables.JMS_QUEUE)
            entry = element("jms-queue", name=short, entries=f"java:/jms/queue/{short}")
            selector = "selector"
        else:
            entry = element("queue", name=name, address=where, routing_type=routing_type)
            selector = "filter"
        for child in node.children:
            if child.name == "filter":
                entry.attributes[selector] = child.attributes.get("string", "")
            elif child.name == "durable":
                entry.attributes["durable"] = child.text
            elif child.name != "address":
                self.left_out(child, f"{child.name} of queue {name}")
        for key in extra:
            self.left_out(node, f"{key} of queue {name}")
        self.server.children.append(entry)

    def _security(self, node: Node) -> None:
        if node.name != "security-setting":
            self.left_out(node)
            return
        back = {kinds[0]: name for name, kinds in tables.PERMISSIONS.items()}
        setting = element("security-setting", name=node.attributes.get("match", ""))
        roles: dict[str, Node] = {}
        for permission in node.children:
            kind = permission.attributes.get("type", "")
            if kind in tables.IMPLIED:
                continue  # whoever may consume may browse, whoever may make queues may make addresses
            if kind not in back:
                self.left_out(permission, f"permission {kind}")
                continue
            for role in permission.attributes.get("roles", "").split(","):
                if role.strip():
                    entry = roles.setdefault(role.strip(), element("role", name=role.strip()))
                    entry.attributes[back[kind]] = "true"
        setting.children = list(roles.values())
        self.server.children.append(setting)


def nearest_value(
    settings: dict[str, dict[str, str]], match: str, name: str, default: str
) -> str:
    """What `name` is at `match`: of it, else of the nearest `….#` above it. WildFly sets it at every match."""
    words = match.split(".")
    if words[-1] == "#":
        words.pop()
    above = [".".join([*words[:count], "#"]) for count in range(len(words), -1, -1)]
    for each in (match, *above):
        if name in settings.get(each, {}):
            return settings[each][name]
    return default


def schema_for(server: Node) -> str:
    """The oldest schema that has all that is written."""
    wanted = [tables.SCHEMA]
    for node in below(server):
        wanted += [tables.SINCE[node.name, name] for name in node.attributes if (node.name, name) in tables.SINCE]
    return max(wanted, key=lambda each: [int(part) for part in each.split(".")])
