"""The reach of a real Artemis' management, by kind of element, and why not the rest.

Sources: ActiveMQServerControl, BridgeControl, DivertControl, AcceptorControl, BroadcastGroupControl,
ClusterConnectionControl, ConnectionRouterControl of Artemis 2.44.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.console.configuration.element_kinds import ADD, CHANGE, REMOVE, START, STOP
from atalanta.console.configuration.node_configuration import ElementParameter

EDIT_FILE: Final = "Artemis changes it only by its broker.xml and a restart."
NOT_LISTED: Final = "Artemis does not list them by management: only names that another node has are shown here."
ROLES: Final = (
    "send", "consume", "createDurableQueue", "deleteDurableQueue", "createNonDurableQueue", "deleteNonDurableQueue",
    "manage", "browse", "createAddress", "deleteAddress", "view", "edit",
)  # fmt: skip
BOOLEANS: Final = ("true", "false")


@dataclass(frozen=True)
class ArtemisReach:
    """What can be done with a kind. `listed`: its elements are listed; else they are asked for by name.

    `reads` maps the attributes of the element's control to parameters. `untold` is the reason why nothing is seen.
    """

    actions: tuple[str, ...] = ()
    reason: str = EDIT_FILE  # why the other actions are not possible
    note: str = ""
    untold: str = ""
    names: str = ""  # the attribute of `broker` with the names
    reads: tuple[tuple[str, str], ...] = ()
    started: bool = False  # its control has Started
    parameters: tuple[ElementParameter, ...] = ()


def text(name: str, meaning: str, required: bool = False) -> ElementParameter:
    """Returns a parameter that takes any text."""
    return ElementParameter(name, meaning=meaning, required=required)


def number(name: str, meaning: str, default: str, unit: str = "") -> ElementParameter:
    return ElementParameter(name, default, unit, meaning)


def flag(name: str, meaning: str, default: str) -> ElementParameter:
    return ElementParameter(name, default, "", meaning, BOOLEANS)


BRIDGE: Final = ArtemisReach(
    (ADD, REMOVE, START, STOP),
    "Artemis cannot change a bridge at run time: remove it and add it again.",
    "Made by management, it is kept by Artemis in its journal, not in its file.",
    names="BridgeNames",
    reads=(
        ("QueueName", "queue-name"), ("ForwardingAddress", "forwarding-address"), ("FilterString", "filter"),
        ("StaticConnectors", "static-connectors"), ("DiscoveryGroupName", "discovery-group-ref"),
        ("RetryInterval", "retry-interval"), ("RetryIntervalMultiplier", "retry-interval-multiplier"),
        ("MaxRetryInterval", "max-retry-interval"), ("ReconnectAttempts", "reconnect-attempts"),
        ("UseDuplicateDetection", "use-duplicate-detection"), ("HA", "ha"),
    ),
    started=True,
    parameters=(
        text("queue-name", "the queue whose messages are moved", required=True),
        text("forwarding-address", "the address there; without it that of the queue"),
        text("filter", "a selector: only messages that match are moved"),
        ElementParameter("static-connectors", meaning="the connectors to the other broker", is_list=True),
        text("discovery-group-ref", "a discovery group that finds the other broker, instead of connectors"),
        number("retry-interval", "the pause before the next attempt to connect", "2000", "ms"),
        number("retry-interval-multiplier", "each pause is so many times the one before", "1.0"),
        number("max-retry-interval", "the longest pause", "2000", "ms"),
        number("reconnect-attempts", "attempts after a loss, -1 for no limit", "-1"),
        flag("use-duplicate-detection", "repeated messages are dropped by the other broker", "true"),
        flag("ha", "the other broker has a backup", "false"),
    ),
)  # fmt: skip
DIVERT: Final = ArtemisReach(
    (ADD, CHANGE, REMOVE),
    names="DivertNames",
    reads=(
        ("RoutingName", "routing-name"), ("Address", "address"), ("ForwardingAddress", "forwarding-address"),
        ("Filter", "filter"), ("Exclusive", "exclusive"), ("RoutingType", "routing-type"),
    ),
    parameters=(
        text("address", "the address whose messages are diverted", required=True),
        text("forwarding-address", "where they go", required=True),
        text("filter", "a selector: only messages that match"),
        flag("exclusive", "the message itself goes there, not a copy", "false"),
        ElementParameter(
            "routing-type", "STRIP", "", "the routing type of the messages there",
            ("STRIP", "PASS", "ANYCAST", "MULTICAST"),
        ),
        text("routing-name", "its name for routing"),
    ),
)  # fmt: skip
CLUSTER_CONNECTION: Final = ArtemisReach(
    (START, STOP),
    names="ClusterConnectionNames",
    reads=(
        ("Address", "address"), ("MessageLoadBalancingType", "message-load-balancing"), ("MaxHops", "max-hops"),
        ("StaticConnectors", "static-connectors"), ("DiscoveryGroupName", "discovery-group-ref"),
        ("DuplicateDetection", "use-duplicate-detection"), ("RetryInterval", "retry-interval"),
        ("ProducerWindowSize", "producer-window-size"),
    ),
    started=True,
)  # fmt: skip
BROADCAST_GROUP: Final = ArtemisReach(
    (START, STOP),
    note=NOT_LISTED,
    reads=(
        ("GroupAddress", "group-address"), ("GroupPort", "group-port"), ("LocalBindPort", "local-bind-port"),
        ("BroadcastPeriod", "broadcast-period"), ("ConnectorPairs", "connector-ref"),
    ),
    started=True,
)  # fmt: skip
CONNECTION_ROUTER: Final = ArtemisReach(
    note=NOT_LISTED,
    reads=(("LocalTargetFilter", "local-target-filter"), ("TargetKeyFilter", "target-key-filter")),
)
REACH: Final = {
    "broadcast-group": BROADCAST_GROUP,
    "discovery-group": ArtemisReach(untold="The management of Artemis tells nothing of discovery groups."),
    "cluster-connection": CLUSTER_CONNECTION,
    "grouping-handler": ArtemisReach(untold="The management of Artemis tells nothing of grouping handlers."),
    "bridge": BRIDGE,
    "connection-router": CONNECTION_ROUTER,
    "network-connector": ArtemisReach(untold="Artemis has no network connectors."),
    "acceptor": ArtemisReach((START, STOP), started=True),
    "connector": ArtemisReach(
        (ADD, REMOVE),
        "Artemis cannot change a connector at run time: remove it and add it again.",
        "Made by management, it is there until the restart.",
        parameters=(
            text("host", "the host that is dialed", required=True), number("port", "the port", "61616", "port"),
        ),
    ),
    "divert": DIVERT,
    "address-setting": ArtemisReach(
        (ADD, REMOVE),
        "Artemis sets all settings of a match together: set them anew by adding it.",
        f"{NOT_LISTED} The values are those in effect there.",
        parameters=(
            text("dead-letter-address", "where messages go that could not be delivered"),
            text("expiry-address", "where expired messages go"),
            number("max-delivery-attempts", "attempts before a message is a dead letter", "10"),
            number("redelivery-delay", "the pause before the next attempt", "0", "ms"),
            ElementParameter(
                "address-full-policy", "PAGE", "", "what happens at the limit", ("PAGE", "DROP", "BLOCK", "FAIL")
            ),
            number("max-size-bytes", "the limit of an address, -1 for none", "-1", "bytes"),
            number("redistribution-delay", "the pause before messages go to a member with consumers, -1 for never",
                   "-1", "ms"),
            flag("auto-create-queues", "clients create queues by using them", "true"),
            flag("auto-create-addresses", "clients create addresses by using them", "true"),
        ),
    ),
    "security-setting": ArtemisReach(
        (ADD, REMOVE),
        "Artemis sets all roles of a match together: set them anew by adding it.",
        f"{NOT_LISTED} The roles are those in effect there.",
        parameters=tuple(
            ElementParameter(role, meaning=f"the roles that have the permission {role}", is_list=True) for role in ROLES
        ),
    ),
}  # fmt: skip
