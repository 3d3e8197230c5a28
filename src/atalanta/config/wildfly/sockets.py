"""Socket bindings, interfaces and listeners of a standalone.xml, resolved to hosts and ports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.config import Report, nearest
from atalanta.config.wildfly.tables import UNDERTOW
from atalanta.config.xml import XmlElement, below, in_capitals
from atalanta.message.encoding import all_digits

DIGITS_MAX: Final = 5  # digits of a port number
LISTENERS: Final = ("http-listener", "https-listener")


@dataclass(frozen=True)
class Endpoint:
    """Host and port of a binding, and its multicast group if it has one (port 0: none)."""

    host: str
    port: int
    group_address: str = ""
    group_port: int = 0


class Sockets:
    """Resolves names of sockets. An unknown name is a problem of the element that uses it."""

    def __init__(self, root: XmlElement, report: Report) -> None:
        self.report = report
        self.offset = 0
        self.default_interface = ""
        self.interfaces: dict[str, XmlElement] = {}
        self.bindings: dict[str, XmlElement] = {}
        self.listeners: dict[str, XmlElement] = {}
        for section in root.all("interfaces"):
            for interface in section.all("interface"):
                self.interfaces[interface.attributes.get("name", "")] = interface
        for group in root.all("socket-binding-group"):
            self.default_interface = group.attributes.get("default-interface", "")
            self.offset = self._number(group, "port-offset", 0)
            for binding in group.children:
                self.bindings[binding.attributes.get("name", "")] = binding
        for node in below(root):
            if node.namespace.startswith(UNDERTOW) and node.name in LISTENERS:
                self.listeners[node.attributes.get("name", "")] = node

    def endpoint(self, user: XmlElement, name: str) -> Endpoint | None:
        """Returns the endpoint of socket binding `name`, for the element `user`."""
        binding = self.bindings.get(name)
        if binding is None:
            self._missing(user, "socket-binding", name, list(self.bindings))
            return None
        if binding.name == "outbound-socket-binding":
            return self._outbound(user, binding)
        host = self._interface(user, binding.attributes.get("interface", self.default_interface))
        port = self._number(binding, "port", 0)
        if port and binding.attributes.get("fixed-port", "false") != "true":
            port += self.offset
        group_port = self._number(binding, "multicast-port", 0)
        return Endpoint(host, port, binding.attributes.get("multicast-address", ""), group_port)

    def listener(self, user: XmlElement, name: str) -> Endpoint | None:
        """Returns the endpoint of HTTP listener `name`."""
        listener = self.listeners.get(name)
        if listener is None:
            self._missing(user, "http-listener", name, list(self.listeners))
            return None
        return self.endpoint(listener, listener.attributes.get("socket-binding", ""))

    def _outbound(self, user: XmlElement, binding: XmlElement) -> Endpoint | None:
        for remote in binding.all("remote-destination"):
            return Endpoint(remote.attributes.get("host", ""), self._number(remote, "port", 0))
        for local in binding.all("local-destination"):
            return self.endpoint(user, local.attributes.get("socket-binding-ref", ""))
        self.report.problem(
            binding.file, binding.line, f"<{binding.name}> says neither host and port nor a binding"
        )
        return None

    def _interface(self, user: XmlElement, name: str) -> str:
        interface = self.interfaces.get(name)
        if interface is None:
            self._missing(user, "interface", name, list(self.interfaces))
            return ""
        for child in interface.children:
            if child.name in ("inet-address", "loopback-address"):
                return checked(child, self.report).attributes.get("value", "")
            if child.name == "any-address":
                return "0.0.0.0"
            if child.name == "loopback":
                return "127.0.0.1"
        self.report.problem(
            interface.file,
            interface.line,
            f"the address of interface '{name}' is not in this file",
            'add <inet-address value="…"/>',
        )
        return ""

    def _number(self, node: XmlElement, name: str, default: int) -> int:
        text = checked(node, self.report).attributes.get(name, "").strip()
        if not text:
            return default
        if not all_digits(text, DIGITS_MAX) or int(text) > 65_535:
            if "${" not in text:
                self.report.problem(node.file, node.line, f"{name}: '{text}' is not a port")
            return default
        return int(text)

    def _missing(self, user: XmlElement, kind: str, name: str, known: list[str]) -> None:
        self.report.problem(
            user.file, user.line, f"there is no {kind} '{name}'", nearest(name, known)
        )


def checked(node: XmlElement, report: Report) -> XmlElement:
    """Returns `node`; reports a problem if one of its expressions has no value."""
    for name, text in node.attributes.items():
        if "${" in text:
            inner = text[text.index("${") + 2 :].split("}")[0]
            report.problem(
                node.file,
                node.line,
                f"'${{{inner}}}' has no value ({name} of <{node.name}>)",
                f"set the environment variable {in_capitals(inner)}, or write ${{{inner}:default}}",
            )
    return node
