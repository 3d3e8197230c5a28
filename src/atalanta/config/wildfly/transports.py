"""Conversion of the subsystem's connectors and acceptors to URLs: http-, remote- and in-vm- ones, and those by
factory."""

from __future__ import annotations

from typing import Final

from atalanta.config import Report
from atalanta.config.wildfly.sockets import Endpoint, Sockets
from atalanta.config.wildfly.ssl_contexts import CLIENT, SERVER, SslContexts
from atalanta.config.wildfly.tables import HYPHENATED
from atalanta.config.xml import XmlElement
from atalanta.wire import UPGRADE_ENABLED, UPGRADE_ENDPOINT, UPGRADE_SERVER_NAME, uri_text

IN_VM: Final = "vm://0"
SAME_LISTENER: Final = "another http-acceptor serves its listener, whatever endpoint a client names"


class Transports:
    """Converts transports. Each method returns the element of broker.xml, or None after it reported a problem."""

    def __init__(self, sockets: Sockets, contexts: SslContexts, report: Report) -> None:
        self.sockets = sockets
        self.contexts = contexts
        self.report = report
        self.listeners: dict[str, str] = {}  # http-listener -> the acceptor that serves it

    def connector(self, node: XmlElement) -> XmlElement | None:
        """Converts an http-connector: the connection begins with an HTTP upgrade request to CORE."""
        if node.name == "connector":
            return self._by_factory(node)
        if node.name == "in-vm-connector":
            return self._entry(node, "connector", IN_VM)
        endpoint = self._bound(node)
        if endpoint is None:
            return None
        options = self._options(node)
        if node.name == "http-connector":
            options[UPGRADE_ENABLED] = "true"
            options[UPGRADE_ENDPOINT] = node.attributes.get("endpoint", "")
            if "server-name" in node.attributes:
                options[UPGRADE_SERVER_NAME] = node.attributes["server-name"]
        return self._entry(node, "connector", uri_text(endpoint.host, endpoint.port, options))

    def acceptor(self, node: XmlElement) -> XmlElement | None:
        """Converts an http-acceptor, on the port of its listener. Several on one listener become one acceptor here."""
        if node.name == "acceptor":
            return self._by_factory(node)
        if node.name == "in-vm-acceptor":
            return self._entry(node, "acceptor", IN_VM)
        options = self._options(node)
        if node.name == "http-acceptor":
            return self._http_acceptor(node, options)
        endpoint = self._bound(node)
        if endpoint is None:
            return None
        return self._entry(node, "acceptor", uri_text(endpoint.host, endpoint.port, options))

    def _http_acceptor(self, node: XmlElement, options: dict[str, str]) -> XmlElement | None:
        listener = node.attributes.get("http-listener", "")
        name = node.attributes.get("name", "")
        if listener in self.listeners:
            # Clients that name the other endpoint come in as well: tests/config/wildfly/test_http_acceptors.py.
            self.report.without_effect(node.file, node.line, f"http-acceptor {name}", SAME_LISTENER)
            return None
        endpoint = self.sockets.listener(node, listener)
        if endpoint is None:
            return None
        self.listeners[listener] = name
        options = {**self._of_listener(node, listener), **options, UPGRADE_ENABLED: "true"}
        return self._entry(node, "acceptor", uri_text(endpoint.host, endpoint.port, options))

    def _of_listener(self, node: XmlElement, name: str) -> dict[str, str]:
        """Returns the parameters of a listener; an https-listener has TLS with its own ssl-context."""
        listener = self.sockets.listeners[name]
        if listener.name != "https-listener":
            return {}
        if "ssl-context" not in listener.attributes:
            self.report.problem(
                listener.file,
                listener.line,
                f"https-listener '{name}' has no ssl-context: its TLS settings are unknown",
            )
            return {}
        return self.contexts.options(listener, SERVER, listener.attributes["ssl-context"]) or {}

    def _bound(self, node: XmlElement) -> Endpoint | None:
        endpoint = self.sockets.endpoint(node, node.attributes.get("socket-binding", ""))
        if endpoint is not None and (not endpoint.host or not endpoint.port):
            self.report.problem(
                node.file,
                node.line,
                f"socket-binding '{node.attributes.get('socket-binding')}' has no host and port",
            )
            return None
        return endpoint

    def _options(self, node: XmlElement) -> dict[str, str]:
        context = node.attributes.get("ssl-context")
        found: dict[str, str] = {}
        if context is not None:
            kind = SERVER if node.name.endswith("acceptor") else CLIENT
            found = self.contexts.options(node, kind, context) or {}
        for param in node.all("param"):
            found[parameter(param.attributes.get("name", ""))] = param.attributes.get("value", "")
        return found

    def _entry(self, node: XmlElement, kind: str, text: str) -> XmlElement:
        name = {"name": node.attributes.get("name", "")}
        return XmlElement(kind, "", node.file, node.line, name, text)

    def _by_factory(self, node: XmlElement) -> XmlElement:
        entry = self._entry(node, node.name, "")
        factory = node.attributes.get("factory-class", "")
        entry.children.append(XmlElement("factory-class", "", node.file, node.line, {}, factory))
        for name, value in self._options(node).items():
            attributes = {"key": name, "value": value}
            entry.children.append(XmlElement("param", "", node.file, node.line, attributes))
        return entry


def parameter(name: str) -> str:
    """Returns the parameter name: WildFly's `batch-delay` is Artemis' `batchDelay`."""
    if name in HYPHENATED or "-" not in name:
        return name
    first, *others = name.split("-")
    return first + "".join(each.capitalize() for each in others)
