"""The kinds of elements that have a page, with words for it. Names are those of the operation listConfiguration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ADD: Final = "add"
CHANGE: Final = "change"
REMOVE: Final = "remove"
START: Final = "start"
STOP: Final = "stop"
DISCOVERY_GROUP: Final = "discovery-group"


@dataclass(frozen=True)
class PageKind:
    """A kind. `columns` are the parameters that the table of all elements shows, where a node has them.

    `resource` is the first word of the resource of management that starts and stops one, "" where nothing does.
    """

    name: str
    title: str
    noun: str
    explains: str
    columns: tuple[str, ...]
    resource: str = ""
    stop_explains: str = ""

    @property
    def runs(self) -> bool:
        """Returns whether an element has a state."""
        return bool(self.resource) or self.name == DISCOVERY_GROUP

    def resource_of(self, element: str) -> str:
        """Returns the resource of management of an element."""
        return f"{self.resource}.{element}"


KINDS: Final = (
    PageKind(
        "broadcast-group", "Broadcast groups", "broadcast group",
        "A broadcast group announces connectors of its node by multicast or JGroups, so that clients and other nodes "
        "find it.",
        ("group-address", "group-port", "jgroups-channel", "broadcast-period", "connector-ref"), "broadcastgroup",
        "The node is not announced any more. Links and clients that found it stay.",
    ),
    PageKind(
        DISCOVERY_GROUP, "Discovery groups", "discovery group",
        "A discovery group hears the announcements of broadcast groups, for cluster connections and bridges.",
        ("group-address", "group-port", "jgroups-channel", "refresh-timeout", "initial-wait-timeout"),
    ),
    PageKind(
        "cluster-connection", "Cluster connections", "cluster connection",
        "A cluster connection links its node to the other members: it forwards messages to them and tells clients of "
        "them.",
        ("address", "connector-ref", "message-load-balancing", "max-hops", "static-connectors", "discovery-group-ref"),
        "clusterconnection",
        "The links of the node to the other members end. Messages for them wait here; links from them stay.",
    ),
    PageKind(
        "grouping-handler", "Grouping handlers", "grouping handler",
        "A grouping handler binds the messages of a group to one consumer of the whole cluster.",
        ("type", "address", "timeout", "group-timeout", "reaper-period"),
    ),
    PageKind(
        "bridge", "Core bridges", "bridge",
        "A bridge moves the messages of a queue to an address of another broker.",
        ("queue-name", "forwarding-address", "filter", "static-connectors", "discovery-group-ref", "ha"), "bridge",
        "No messages are moved until it is started. They wait in its queue.",
    ),
    PageKind(
        "connection-router", "Connection routers", "connection router",
        "A connection router sends a client to the node that is responsible for its key.",
        ("key-type", "policy", "local-target-filter", "target-key-filter", "pool"),
    ),
    PageKind(
        "network-connector", "Network connectors", "network connector",
        "A network connector links its node to brokers of ActiveMQ Classic, or to others of a network.",
        ("uri", "duplex", "dynamicOnly", "networkTTL", "autoStart"), "networkconnector",
        "Its bridges end. Messages for the other brokers wait here.",
    ),
    PageKind(
        "acceptor", "Acceptors", "acceptor",
        "An acceptor is a port for clients and other nodes.",
        ("uri", "host", "port", "protocols"), "acceptor",
        "The port is closed, and who came in there is disconnected. The last one for CORE is not stopped.",
    ),
    PageKind(
        "connector", "Connectors", "connector",
        "A connector is an address that cluster connections, bridges and announcements name.",
        ("uri", "host", "port"),
    ),
    PageKind(
        "divert", "Diverts", "divert",
        "A divert sends messages of an address to another address: a copy, or the message itself.",
        ("address", "forwarding-address", "exclusive", "filter", "routing-type"),
    ),
    PageKind(
        "address-setting", "Address settings", "address setting",
        "The settings of all addresses that match: limits, dead letters, expiry, redelivery, creation by clients.",
        ("dead-letter-address", "expiry-address", "max-delivery-attempts", "address-full-policy", "max-size-bytes"),
    ),
    PageKind(
        "security-setting", "Security settings", "security setting",
        "The roles that may do something at addresses that match. The most specific match counts alone.",
        ("send", "consume", "browse", "manage", "view", "edit"),
    ),
)  # fmt: skip
BY_NAME: Final = {kind.name: kind for kind in KINDS}
CLUSTERING: Final = KINDS[:5]
OTHERS: Final = KINDS[5:]
