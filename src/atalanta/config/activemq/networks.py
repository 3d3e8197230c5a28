"""Conversion of `<networkConnectors>` to NetworkConnectorConfig."""

from __future__ import annotations

from dataclasses import replace

from atalanta.cluster.networks.config import NetworkConnectorConfig, NetworkDestination
from atalanta.config.activemq import tables
from atalanta.config.activemq.elements import Elements
from atalanta.config.native.network_uri import read_uri
from atalanta.config.xml.reader import XmlReader, into
from atalanta.config.xml.tree import XmlElement
from atalanta.wire.uri import UriError


class NetworkConnectors:
    """Reads the connectors."""

    def __init__(self, elements: Elements) -> None:
        self.elements = elements
        self.reader = XmlReader(elements.report)
        self.connectors: list[NetworkConnectorConfig] = []

    def read(self, section: XmlElement) -> None:
        self.elements.children(
            section,
            {
                "networkConnector": self._connector,
                **dict.fromkeys(("ldapNetworkConnector", "multicastNetworkConnector"), self._other_kind),
            },
        )

    def _other_kind(self, node: XmlElement) -> None:
        self.elements.others(node, node.name, "no connector is made", tables.WAYS_OF_NETWORK)

    def _connector(self, node: XmlElement) -> None:
        config = NetworkConnectorConfig()
        for name in tables.NETWORK_SILENT:
            if node.attributes.pop(name, None) is not None:
                self.elements.finding(node, f"networkConnector {name}", tables.NETWORK_SILENT[name])
        self.elements.values(node, list(node.attributes))  # encrypted passwords
        self.reader.read(
            node,
            [into(config)],
            {
                "excludedDestinations": lambda each: self._destinations(each, config.excluded),
                "dynamicallyIncludedDestinations": lambda each: self._destinations(each, config.dynamically_included),
                "staticallyIncludedDestinations": lambda each: self._destinations(each, config.statically_included),
                "durableDestinations": lambda each: self._destinations(each, config.durable),
                **dict.fromkeys(tables.NETWORK_CHILDREN_LOST, self._lost),
            },
            attributes=("id",),
        )
        try:
            config = replace(config, way=read_uri(config.uri))
        except UriError as error:
            self.elements.problem(node, f"networkConnector {config.name}: {error}")
            return
        if any(known.name == config.name for known in self.connectors):
            self.elements.problem(node, f"networkConnector '{config.name}' is given twice", "give each a name")
            return
        self.connectors.append(config)

    def _lost(self, node: XmlElement) -> None:
        self.elements.finding(node, f"networkConnector {node.name}", tables.NETWORK_CHILDREN_LOST[node.name], True)

    def _destinations(self, section: XmlElement, found: list[NetworkDestination]) -> None:
        def take(node: XmlElement) -> None:
            name = self.elements.values(node, ("physicalName",)).get("physicalName", "")
            if not name:
                self.elements.problem(node, f"a <{node.name}> needs a physicalName")
            found.append(NetworkDestination(node.name == "queue", name))

        self.elements.children(section, {"queue": take, "topic": take})
