"""Connectors and acceptors of the subsystem as URLs: http-, remote- and in-vm- ones, and those by factory."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from atalanta.config.problems import Report
from atalanta.config.wildfly.sockets import Place, Sockets
from atalanta.config.wildfly.ssl_contexts import CLIENT, SERVER, SslContexts
from atalanta.config.wildfly.tables import HYPHENATED
from atalanta.config.xml.tree import Node
from atalanta.wire.http_upgrade import ENABLED, ENDPOINT, SERVER_NAME

IN_VM: Final = "vm://0"
SAFE: Final = "/:,@!*()[]|^$~{}?'"  # besides letters and digits, in a parameter's value


class Transports:
    """Each method gives the element of broker.xml, or None after it told what is wrong."""

    def __init__(self, sockets: Sockets, contexts: SslContexts, report: Report) -> None:
        self.sockets = sockets
        self.contexts = contexts
        self.report = report
        self.listeners: dict[str, str] = {}  # http-listener -> the acceptor that serves it

    def connector(self, node: Node) -> Node | None:
        """http-connector: the connection begins with an HTTP request that asks to go on as CORE."""
        if node.name == "connector":
            return self._by_factory(node)
        if node.name == "in-vm-connector":
            return self._entry(node, "connector", IN_VM)
        place = self._bound(node)
        if place is None:
            return None
        options = self._options(node)
        if node.name == "http-connector":
            options[ENABLED] = "true"
            options[ENDPOINT] = node.attributes.get("endpoint", "")
            if "server-name" in node.attributes:
                options[SERVER_NAME] = node.attributes["server-name"]
        return self._entry(node, "connector", url(place, options))

    def acceptor(self, node: Node) -> Node | None:
        """http-acceptor: on the port of its listener; several on one listener are one acceptor here."""
        if node.name == "acceptor":
            return self._by_factory(node)
        if node.name == "in-vm-acceptor":
            return self._entry(node, "acceptor", IN_VM)
        options = self._options(node)
        if node.name == "http-acceptor":
            return self._http_acceptor(node, options)
        place = self._bound(node)
        return None if place is None else self._entry(node, "acceptor", url(place, options))

    def _http_acceptor(self, node: Node, options: dict[str, str]) -> Node | None:
        listener = node.attributes.get("http-listener", "")
        name = node.attributes.get("name", "")
        if listener in self.listeners:
            self.report.without_effect(
                node.file,
                node.line,
                f"http-acceptor {name}",
                f"'{self.listeners[listener]}' serves this listener, whatever endpoint a client names",
            )
            return None
        place = self.sockets.listener(node, listener)
        if place is None:
            return None
        self.listeners[listener] = name
        options = {**self._of_listener(node, listener), **options, ENABLED: "true"}
        return self._entry(node, "acceptor", url(place, options))

    def _of_listener(self, node: Node, name: str) -> dict[str, str]:
        """An https-listener has TLS, by its own ssl-context."""
        listener = self.sockets.listeners[name]
        if listener.name != "https-listener":
            return {}
        if "ssl-context" not in listener.attributes:
            self.report.problem(
                listener.file,
                listener.line,
                f"https-listener '{name}' has no ssl-context: how it is secured cannot be told",
            )
            return {}
        return self.contexts.options(listener, SERVER, listener.attributes["ssl-context"]) or {}

    def _bound(self, node: Node) -> Place | None:
        place = self.sockets.place(node, node.attributes.get("socket-binding", ""))
        if place is not None and (not place.host or not place.port):
            self.report.problem(
                node.file,
                node.line,
                f"socket-binding '{node.attributes.get('socket-binding')}' has no host and port",
            )
            return None
        return place

    def _options(self, node: Node) -> dict[str, str]:
        context = node.attributes.get("ssl-context")
        found: dict[str, str] = {}
        if context is not None:
            kind = SERVER if node.name.endswith("acceptor") else CLIENT
            found = self.contexts.options(node, kind, context) or {}
        for param in node.all("param"):
            found[parameter(param.attributes.get("name", ""))] = param.attributes.get("value", "")
        return found

    def _entry(self, node: Node, kind: str, text: str) -> Node:
        name = {"name": node.attributes.get("name", "")}
        return Node(kind, "", node.file, node.line, name, text)

    def _by_factory(self, node: Node) -> Node:
        entry = self._entry(node, node.name, "")
        factory = node.attributes.get("factory-class", "")
        entry.children.append(Node("factory-class", "", node.file, node.line, {}, factory))
        for name, value in self._options(node).items():
            attributes = {"key": name, "value": value}
            entry.children.append(Node("param", "", node.file, node.line, attributes))
        return entry


def parameter(name: str) -> str:
    """WildFly's `batch-delay` is Artemis' `batchDelay`."""
    if name in HYPHENATED or "-" not in name:
        return name
    first, *others = name.split("-")
    return first + "".join(each.capitalize() for each in others)


def url(place: Place, options: dict[str, str]) -> str:
    """`tcp://host:port?key=value;key=value`."""
    host = f"[{place.host}]" if ":" in place.host else place.host
    query = ";".join(f"{key}={quote(value, SAFE)}" for key, value in options.items())
    return f"tcp://{host}:{place.port}" + (f"?{query}" if query else "")
