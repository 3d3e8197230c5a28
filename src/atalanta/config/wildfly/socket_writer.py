"""The socket bindings and interfaces that a written standalone.xml needs."""

from __future__ import annotations

from atalanta.config.problems import Report
from atalanta.config.xml_tree import Node
from atalanta.wire.http_upgrade import ENABLED, ENDPOINT, SERVER_NAME
from atalanta.wire.uri import UriError, parse_uri

UPGRADE = (ENABLED, ENDPOINT, SERVER_NAME)


def element(tag: str, /, **attributes: str) -> Node:
    """An element that is written; it stands nowhere yet."""
    return Node(tag, "", "", 0, {key.replace("_", "-"): text for key, text in attributes.items()})


class SocketWriter:
    """One binding for each acceptor, connector and multicast group; one interface for each host."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.interfaces: dict[str, str] = {}  # host -> name
        self.bindings: list[Node] = []
        self.listeners: list[Node] = []

    def sections(self) -> list[Node]:
        """`<interfaces>` and `<socket-binding-group>`."""
        interfaces = element("interfaces")
        for host, name in self.interfaces.items():
            interface = element("interface", name=name)
            address = element("any-address") if host == "0.0.0.0" else element("inet-address", value=host)
            interface.children.append(address)
            interfaces.children.append(interface)
        default = next(iter(self.interfaces.values()), "public")
        group = element("socket-binding-group", name="standard-sockets", default_interface=default)
        # WildFly's schema wants the bindings of others last.
        group.children = sorted(self.bindings, key=lambda each: each.name != "socket-binding")
        return [interfaces, group]

    def interface(self, host: str) -> str:
        """The name of the interface with this address."""
        if host not in self.interfaces:
            number = len(self.interfaces) + 1
            self.interfaces[host] = "public" if number == 1 else f"public-{number}"
        return self.interfaces[host]

    def connector(self, node: Node) -> Node | None:
        """remote-connector or http-connector, to an outbound binding."""
        name = node.attributes.get("name", "")
        found = self._parsed(node)
        if found is None:
            return None
        host, port, params = found
        binding = element("outbound-socket-binding", name=f"connector-{name}")
        binding.children.append(element("remote-destination", host=host, port=str(port)))
        self.bindings.append(binding)
        entry = element("remote-connector", name=name, socket_binding=f"connector-{name}")
        if params.get(ENABLED, "").lower() == "true":
            entry.name = "http-connector"
            entry.attributes["endpoint"] = params.get(ENDPOINT, "")
            if SERVER_NAME in params:
                entry.attributes["server-name"] = params[SERVER_NAME]
        self._params(entry, params)
        return entry

    def acceptor(self, node: Node) -> Node | None:
        """remote-acceptor, on a binding of its own."""
        name = node.attributes.get("name", "")
        found = self._parsed(node)
        if found is None:
            return None
        host, port, params = found
        self.bindings.append(
            element(
                "socket-binding",
                name=f"acceptor-{name}",
                interface=self.interface(host),
                port=str(port),
            )
        )
        if params.get(ENABLED, "").lower() == "true":
            entry = element("http-acceptor", name=name, http_listener=f"acceptor-{name}")
            self.listeners.append(
                element("http-listener", name=f"acceptor-{name}", socket_binding=f"acceptor-{name}")
            )
        else:
            entry = element("remote-acceptor", name=name, socket_binding=f"acceptor-{name}")
        self._params(entry, params)
        return entry

    def group(self, node: Node, values: dict[str, str]) -> str:
        """The name of the multicast binding of a broadcast or discovery group."""
        name = f"{node.name}-{node.attributes.get('name', '')}"
        binding = element("socket-binding", name=name)
        if values.get("local-bind-address"):
            binding.attributes["interface"] = self.interface(values["local-bind-address"])
        else:
            binding.attributes["interface"] = self.interface("0.0.0.0")
        binding.attributes["port"] = "0"
        binding.attributes["multicast-address"] = values.get("group-address", "")
        binding.attributes["multicast-port"] = values.get("group-port", "")
        self.bindings.append(binding)
        return name

    def _parsed(self, node: Node) -> tuple[str, int, dict[str, str]] | None:
        try:
            uri = parse_uri(node.text, ("tcp",))
        except UriError as error:
            self.report.without_effect(node.file, node.line, node.name, str(error))
            return None
        return uri.host, uri.port or 61616, dict(uri.params)

    def _params(self, entry: Node, params: dict[str, str]) -> None:
        entry.children += [
            element("param", name=name, value=value)
            for name, value in params.items()
            if name not in UPGRADE
        ]
