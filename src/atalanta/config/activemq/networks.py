"""Conversion of `<networkConnectors>` to NetworkConnectorConfig."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Final

from atalanta.cluster.networks.config import (
    MASTERSLAVE,
    MULTICAST,
    STATIC,
    NetworkConnectorConfig,
    NetworkDestination,
    NetworkRetry,
    NetworkTarget,
    NetworkWay,
)
from atalanta.config.activemq import tables
from atalanta.config.activemq.elements import Elements
from atalanta.config.problems import nearest
from atalanta.config.xml.reader import BadValue, XmlReader, convert, into
from atalanta.config.xml.tree import Node
from atalanta.wire.uri import DEFAULT_PORT, UriError, parse_authority, parse_params

KINDS: Final = (STATIC, MASTERSLAVE, MULTICAST)
WORDS: Final = ("nio", "ssl")  # of schemes such as nio+ssl
NOT_YET: Final = "recognised, no effect yet: networks of brokers are not supported"


class NetworkConnectors:
    """Reads the connectors; each is a finding until networks of brokers are supported."""

    def __init__(self, elements: Elements) -> None:
        self.elements = elements
        self.reader = XmlReader(elements.report)
        self.connectors: list[NetworkConnectorConfig] = []

    def read(self, section: Node) -> None:
        self.elements.children(
            section,
            {"networkConnector": self._connector},
            {},
            dict.fromkeys(("ldapNetworkConnector", "multicastNetworkConnector"), "write a <networkConnector>"),
        )

    def _connector(self, node: Node) -> None:
        config = NetworkConnectorConfig()
        for name in ("brokerName", "brokerURL"):
            if node.attributes.pop(name, None) is not None:
                self.elements.finding(node, f"networkConnector {name}", "the broker's own is taken")
        self.elements.values(node, list(node.attributes))  # encrypted passwords
        self.reader.read(
            node,
            [into(config)],
            {
                "excludedDestinations": lambda each: self._destinations(each, config.excluded),
                "dynamicallyIncludedDestinations": lambda each: self._destinations(each, config.dynamically_included),
                "staticallyIncludedDestinations": lambda each: self._destinations(each, config.statically_included),
                "durableDestinations": lambda each: self._destinations(each, config.durable),
            },
            tables.NETWORK_CHILDREN_LOST,
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
        self.elements.finding(node, f"networkConnector {config.name}", NOT_YET, True)
        self.connectors.append(config)

    def _destinations(self, section: Node, found: list[NetworkDestination]) -> None:
        def take(node: Node) -> None:
            name = self.elements.values(node, ("physicalName",)).get("physicalName", "")
            if not name:
                self.elements.problem(node, f"a <{node.name}> needs a physicalName")
            found.append(NetworkDestination(node.name == "queue", name))

        self.elements.children(section, {"queue": take, "topic": take})


def read_uri(uri: str) -> NetworkWay:
    """Reads the brokers and options of a network's uri. UriError names what is wrong."""
    scheme, colon, rest = uri.strip().partition(":")
    if scheme in tables.NETWORKS_REFUSED:
        raise UriError(f"{scheme}: {tables.NETWORKS_REFUSED[scheme]}")
    if scheme == "simple":
        scheme = STATIC
    if not colon or scheme not in KINDS:
        raise UriError(f"uri '{uri}' begins with none of {', '.join(f'{kind}:' for kind in KINDS)}")
    if scheme == MULTICAST:
        group, _, query = rest.removeprefix("//").partition("?")
        return NetworkWay(scheme, [], group or "default", _retry(parse_params(query)))
    members, query = members_of(rest)
    bridges = [_alternatives(each) for each in members]
    if scheme == MASTERSLAVE:
        bridges = [[each for bridge in bridges for each in bridge]]
    return NetworkWay(scheme, bridges, "", _retry(parse_params(query)))


def members_of(text: str) -> tuple[list[str], str]:
    """Splits `(a,b)?query`, `//(a,b)?query` or `a?query`; members may have parentheses of their own."""
    text = text.removeprefix("//")
    if not text.startswith("("):
        return [text], ""  # the query is that of the single member
    depth, start, members = 0, 1, []
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 or (depth == 1 and sign == ","):
            members.append(text[start:at].strip())
            start = at + 1
        if depth == 0:
            if any(not each for each in members):
                raise UriError("an address in the list is empty")
            rest = text[at + 1 :]
            if rest and not rest.startswith("?"):
                raise UriError(f"unexpected '{rest}' after ')'")
            return members, rest[1:]
    raise UriError(f"'{text}' has no closing ')'")


def _alternatives(text: str) -> list[NetworkTarget]:
    """Returns the brokers of one bridge: that of the address, or those of a `failover:(…)`."""
    if text.startswith("failover:"):
        members, _ = members_of(text.removeprefix("failover:"))
        return [each for member in members for each in _alternatives(member)]
    scheme, separator, rest = text.partition("://")
    words = scheme.split("+")
    if scheme in tables.NETWORKS_REFUSED:
        raise UriError(f"{text}: {tables.NETWORKS_REFUSED[scheme]}")
    if not separator or words[0] not in (*WORDS, "tcp", "auto") or any(each not in WORDS for each in words[1:]):
        raise UriError(f"'{text}' does not begin with tcp://, nio://, ssl:// or nio+ssl://")
    authority, _, query = rest.partition("?")
    host, port = parse_authority(authority)
    params = tuple(parse_params(query).items())
    return [NetworkTarget(scheme, host, DEFAULT_PORT if port is None else port, params)]


def _retry(params: dict[str, str]) -> NetworkRetry:
    found = NetworkRetry()
    known = {entry.metadata["xml"]: entry for entry in fields(NetworkRetry)}
    for name, text in params.items():
        if name not in known:
            hint = nearest(name, known)
            raise UriError(f"unknown option '{name}' of the uri" + (f" ({hint})" if hint else ""))
        try:
            setattr(found, known[name].name, convert(text, known[name].metadata))
        except BadValue as error:
            raise UriError(f"{name}: {error}") from error
    return found
