"""Conversion of WildFly's jgroups subsystem to JGroups' own stack files (read by files/jgroups_stack.py)."""

from __future__ import annotations

from typing import Final

from atalanta.config import Report, nearest
from atalanta.config.wildfly.sockets import Sockets
from atalanta.config.wildfly.tables import JGROUPS
from atalanta.config.xml import XmlElement, below, xml_text

PROTOCOLS: Final = ("protocol", "socket-protocol", "socket-discovery-protocol")


class Stacks:
    """The stacks of a standalone.xml. `texts` are the files of the requested stacks, by name."""

    def __init__(self, root: XmlElement, sockets: Sockets, report: Report) -> None:
        self.sockets = sockets
        self.report = report
        self.channels: dict[str, XmlElement] = {}
        self.stacks: dict[str, XmlElement] = {}
        self.default = ""
        self.texts: dict[str, str] = {}
        for node in below(root):
            if not node.namespace.startswith(JGROUPS):
                continue
            if node.name == "channels":
                self.default = node.attributes.get("default", "")
            elif node.name == "channel":
                self.channels[node.attributes.get("name", "")] = node
            elif node.name == "stack":
                self.stacks[node.attributes.get("name", "")] = node

    def file_of(self, user: XmlElement) -> str | None:
        """Returns the name of the stack file for a group with `jgroups-channel` (default channel if empty) or
        `jgroups-stack`."""
        name = user.attributes.get("jgroups-stack", "")
        if not name:
            channel = self.default
            if "jgroups-cluster" in user.attributes:  # else it is the cluster's name: WildFly 10, 11
                channel = user.attributes.get("jgroups-channel", self.default)
            if channel not in self.channels:
                self._missing(user, "JGroups channel", channel, list(self.channels))
                return None
            name = self.channels[channel].attributes.get("stack", "")
        if name not in self.stacks:
            self._missing(user, "JGroups stack", name, list(self.stacks))
            return None
        file = f"jgroups-{name}.xml"
        if file not in self.texts:
            self.texts[file] = xml_text(self._native(self.stacks[name]))
        return file

    def _native(self, stack: XmlElement) -> XmlElement:
        """Returns `<config>` with the transport and all protocols, their properties as attributes."""
        config = XmlElement("config", "", stack.file, stack.line)
        for child in stack.children:
            if child.name != "transport" and child.name not in PROTOCOLS:
                continue
            kind = child.attributes.get("type", "").rpartition(".")[2]
            made = XmlElement(kind, "", child.file, child.line)
            self._bound(child, made)
            for prop in child.all("property"):
                made.attributes[prop.attributes.get("name", "")] = prop.text
            config.children.append(made)
        return config

    def _bound(self, child: XmlElement, made: XmlElement) -> None:
        """Adds the addresses and ports of socket bindings to a protocol."""
        binding = child.attributes.get("socket-binding", "")
        endpoint = self.sockets.endpoint(child, binding) if binding else None
        if endpoint is not None:
            if endpoint.host:
                made.attributes["bind_addr"] = endpoint.host
            if endpoint.port:
                made.attributes["bind_port"] = str(endpoint.port)
            if endpoint.group_address:
                made.attributes["mcast_addr"] = endpoint.group_address
                made.attributes["mcast_port"] = str(endpoint.group_port)
        hosts = []
        for name in child.attributes.get("socket-bindings", "").split():
            endpoint = self.sockets.endpoint(child, name)
            if endpoint is not None:
                hosts.append(f"{endpoint.host}[{endpoint.port}]")
        if hosts:
            made.attributes["initial_hosts"] = ",".join(hosts)

    def _missing(self, user: XmlElement, kind: str, name: str, known: list[str]) -> None:
        self.report.problem(
            user.file, user.line, f"there is no {kind} '{name}'", nearest(name, known)
        )
