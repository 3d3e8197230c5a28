"""The kinds of elements that management may change, with their parameters, and where each parameter stands."""

from __future__ import annotations

import re
from dataclasses import Field, dataclass, fields, replace
from functools import cache
from typing import Any, Final

from atalanta.cluster.config import (
    BroadcastGroupConfig,
    ClusterConnectionConfig,
    DiscoveryGroupConfig,
)
from atalanta.cluster.connection_routers.config import (
    POLICIES,
    CacheConfig,
    PoolConfig,
    RouterConfig,
)
from atalanta.cluster.core_bridges.config import CoreBridgeConfig
from atalanta.cluster.grouping.config import GroupingHandlerConfig
from atalanta.cluster.networks.config import NetworkConnectorConfig
from atalanta.config.native.networks import DESTINATIONS
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.kernel.security.security import PERMISSIONS
from atalanta.kernel.settings.address_settings import AddressSettings
from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.stomp.acceptor import StompAcceptor
from atalanta.wire.tls_config import TlsConfig

# Users, passwords, files, classes: neither set nor changed by management, and shown as HIDDEN.
SECRET: Final = re.compile(
    r"(?i)user|password|passwd|secret|token|path|file|class|provider|codec|factory|plugin|store|alias"
    r"|transformer|domain|directory"
)
# What these words are in by chance.
HARMLESS: Final = ("clientIdToken", "stompClassic")
HIDDEN: Final = "hidden"
NAME: Final = "name"
MATCH: Final = "match"
STATIC_CONNECTORS: Final = "static-connectors"
DISCOVERY_GROUP: Final = "discovery-group-ref"
# In this order, in the schema of Artemis.
BROADCAST_ORDER: Final = (
    "name", "local-bind-address", "local-bind-port", "group-address", "group-port", "broadcast-period", "jgroups-file",
    "jgroups-channel", "connector-ref",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """The place of a parameter in its element.

    `inside` are the elements around it. With `element` it is the text of that one, or its `attribute`; without, an
    `attribute` of what is around. `key` tells one of several elements by an attribute. `many`: an element for each
    value. `flag`: the element is there, or not.
    """

    inside: tuple[str, ...] = ()
    element: str = ""
    attribute: str = ""
    key: tuple[str, str] = ("", "")
    many: bool = False
    flag: bool = False
    also: tuple[str, ...] = ()  # older names of the element


@dataclass(frozen=True)
class Parameter:
    """A parameter, with what consoles show of it."""

    name: str
    place: Place
    default: str = ""
    unit: str = ""
    meaning: str = ""
    values: tuple[str, ...] = ()
    required: bool = False
    many: bool = False  # its value is a list
    editable: bool = True

    def as_json(self) -> dict[str, object]:
        """Returns the parameter for consoles."""
        return {
            "name": self.name,
            "default": self.default,
            "unit": self.unit,
            "meaning": self.meaning,
            "values": list(self.values),
            "required": self.required,
            "list": self.many,
            "editable": self.editable,
        }


@dataclass(frozen=True)
class ElementKind:
    """A kind of element. `section` is the element around all of them, "" directly below `<core>`.

    `key` is the attribute that names an element. `uri`: the parameters are those of an address in its text. `table`: it
    is a table of atalanta.toml. `also` are elements of another name that are shown as of this kind.
    """

    name: str
    section: str
    parameters: tuple[Parameter, ...]
    key: str = NAME
    uri: bool = False
    table: bool = False
    also: tuple[str, ...] = ()
    without_section: bool = False  # it may also stand directly below <core>
    element: str = ""  # the name of its elements, if that is another one

    @property
    def tag(self) -> str:
        """Returns the name of its elements."""
        return self.element or self.name

    def parameter(self, name: str) -> Parameter | None:
        """Returns the parameter of that name; None if there is none."""
        return next((each for each in self.parameters if each.name == name), None)


def is_secret(name: str) -> bool:
    """Returns whether a parameter names a user, a password, a file or a class."""
    return name not in HARMLESS and SECRET.search(name) is not None


def default_text(entry: Field[Any]) -> str:
    """Returns the default of an option, as broker.xml writes it."""
    value: Any = entry.default
    for text, meant in (entry.metadata["choices"] or {}).items():
        if meant == value:
            return str(text)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None or value == () else str(value)


def _values(entry: Field[Any]) -> tuple[str, ...]:
    if entry.metadata["choices"]:
        return tuple(entry.metadata["choices"])
    return ("true", "false") if entry.metadata["kind"] == "bool" else ()


def _option(entry: Field[Any], inside: tuple[str, ...], prefix: str, required: tuple[str, ...]) -> Parameter:
    metadata = entry.metadata
    xml = str(metadata["xml"])
    place = Place(inside, attribute=xml) if metadata["attribute"] else Place(inside, xml, also=metadata["also"])
    secret = is_secret(xml)
    return Parameter(
        prefix + xml,
        place,
        "" if secret else default_text(entry),
        metadata["unit"],
        metadata["why"],
        _values(entry),
        xml in required,
        editable=not secret,
    )


def _options(
    described: type[Any], *required: str, inside: tuple[str, ...] = (), prefix: str = "", skip: tuple[str, ...] = ()
) -> tuple[Parameter, ...]:
    """Returns the options of a configuration class as parameters."""
    entries = [entry for entry in fields(described) if entry.metadata and entry.metadata["xml"] not in skip]
    return tuple(_option(entry, inside, prefix, required) for entry in entries)


def _connectors(inside: tuple[str, ...] = (), prefix: str = "") -> tuple[Parameter, ...]:
    """Returns the two ways of naming targets."""
    static = Place((*inside, STATIC_CONNECTORS), "connector-ref", many=True)
    group = Place(inside, DISCOVERY_GROUP, "discovery-group-name")
    return (
        Parameter(prefix + STATIC_CONNECTORS, static, meaning="names of connectors", many=True),
        Parameter(prefix + DISCOVERY_GROUP, group, meaning="instead of static-connectors: the group that finds them"),
    )


def _filter(what: str) -> Parameter:
    return Parameter("filter", Place(element="filter", attribute="string"), meaning=f"selector of the {what}")


def _transformer() -> tuple[Parameter, ...]:
    meaning = "the class that changes messages"
    names = (("transformer", Place(("transformer",), "class-name")), ("transformer-class-name", Place()))
    return tuple(
        Parameter(name, place if place.inside else Place(element=name), meaning=meaning, editable=False)
        for name, place in names
    )


def _endpoint(*described: type[Any], listens: bool) -> tuple[Parameter, ...]:
    """Returns the parameters of an address in the order of the classes, host and port before them."""
    host = "the address that listens; 0.0.0.0 is all" if listens else "the host that is dialed"
    found = [
        Parameter(NAME, Place(attribute=NAME), meaning="unique", required=True),
        Parameter("host", Place(), meaning=host, required=True),
        Parameter("port", Place(), "61616", "port", "the port"),
    ]
    for each in described:
        for one in _options(each):
            if all(known.name != one.name for known in found):
                found.append(one)
    return tuple(
        Parameter(
            one.name, Place(), one.default, one.unit, one.meaning, one.values, one.required, one.name == "protocols",
            one.editable,
        )
        for one in found
    )  # fmt: skip


def _router() -> tuple[Parameter, ...]:
    names = tuple(POLICIES)
    policy = Parameter("policy", Place((), "policy", "name"), meaning="how a target is chosen", values=names)
    numbers = tuple(
        Parameter(
            f"policy.{name}", Place(("policy",), "property", "value", ("key", name)), unit="count",
            meaning=f"of the policy {kind}",
        )
        for kind, (name, _) in POLICIES.items()
        if name
    )  # fmt: skip
    cached = Parameter(
        "cache", Place(element="cache", flag=True), "false", "", "a key keeps its target as long as it is ready",
        ("true", "false"),
    )  # fmt: skip
    return (
        *_options(RouterConfig, NAME),
        policy,
        *numbers,
        cached,
        *_options(CacheConfig, inside=("cache",), prefix="cache."),
        *_options(PoolConfig, inside=("pool",), prefix="pool."),
        *_connectors(("pool",), "pool."),
    )


def _broadcast() -> tuple[Parameter, ...]:
    meaning = "connectors that are announced"
    connectors = Parameter("connector-ref", Place((), "connector-ref", many=True), meaning=meaning, many=True)
    found = [*_options(BroadcastGroupConfig, NAME), connectors]
    return tuple(sorted(found, key=lambda each: BROADCAST_ORDER.index(each.name)))


def _security() -> tuple[Parameter, ...]:
    match = Parameter(MATCH, Place(attribute=MATCH), meaning="the addresses", required=True)
    return (
        match,
        *(
            Parameter(name, Place((), "permission", "roles", ("type", name)), meaning="roles that may", many=True)
            for name in PERMISSIONS
        ),
    )


def _settings() -> tuple[Parameter, ...]:
    match = Parameter(MATCH, Place(attribute=MATCH), meaning="the addresses", required=True)
    return (match, *_options(AddressSettings))


def _networks() -> tuple[Parameter, ...]:
    lists = tuple(
        Parameter(name, Place(), meaning="destinations: queue://NAME and topic://NAME", many=True)
        for name in DESTINATIONS
    )
    return (*_options(NetworkConnectorConfig, NAME, "uri"), *lists)


@cache
def classic_kinds() -> dict[str, ElementKind]:
    """Returns the kinds of an activemq.xml: what maps plainly. Lists of destinations stay as they are."""
    listed = tuple(replace(each, editable=False) if each.many else each for each in _networks())
    door = (
        Parameter(NAME, Place(attribute=NAME), meaning="unique", required=True),
        Parameter("uri", Place(attribute="uri"), meaning="scheme, address and options", required=True),
    )
    found = (
        ElementKind("network-connector", "networkConnectors", listed, element="networkConnector"),
        ElementKind("acceptor", "transportConnectors", door, element="transportConnector"),
    )
    return {each.name: each for each in found}


@cache
def kinds() -> dict[str, ElementKind]:
    """Returns the kinds by name. Made once, and only where management asks."""
    direct = Parameter(
        "allow-direct-connections-only",
        Place((STATIC_CONNECTORS,), attribute="allow-direct-connections-only"),
        "false",
        meaning="links to the named connectors alone",
        values=("true", "false"),
        editable=False,
    )
    found = (
        ElementKind("broadcast-group", "broadcast-groups", _broadcast()),
        ElementKind("discovery-group", "discovery-groups", _options(DiscoveryGroupConfig, NAME)),
        ElementKind(
            "cluster-connection",
            "cluster-connections",
            (*_options(ClusterConnectionConfig, NAME, "connector-ref"), direct, *_connectors()),
            also=("cluster-connection-uri",),
        ),
        ElementKind("grouping-handler", "", _options(GroupingHandlerConfig, NAME, "type", "address")),
        ElementKind(
            "bridge",
            "bridges",
            (*_options(CoreBridgeConfig, NAME, "queue-name"), _filter("messages"), *_transformer(), *_connectors()),
        ),
        ElementKind("connection-router", "connection-routers", _router(), without_section=True),
        ElementKind("network-connector", "networks", _networks(), table=True),
        ElementKind(
            "acceptor",
            "acceptors",
            _endpoint(AcceptorConfig, TlsConfig, StompAcceptor, OpenWireAcceptor, listens=True),
            uri=True,
        ),
        ElementKind("connector", "connectors", _endpoint(ConnectorConfig, TlsConfig, listens=False), uri=True),
        ElementKind(
            "divert",
            "diverts",
            (*_options(DivertConfig, NAME, "address", "forwarding-address"), _filter("messages"), *_transformer()),
        ),
        ElementKind("address-setting", "address-settings", _settings(), key=MATCH),
        ElementKind("security-setting", "security-settings", _security(), key=MATCH),
    )
    return {each.name: each for each in found}
