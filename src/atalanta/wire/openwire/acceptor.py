"""The parameters of an acceptor that concern OpenWire clients."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from atalanta.kernel.option import option
from atalanta.kernel.routing.virtual_topics import CLASSIC, virtual_topics
from atalanta.kernel.unseen_options import CACHES, SOCKETS, UNREAD, FixedValue
from atalanta.wire.endpoint import ProtocolOptions
from atalanta.wire.uri import UriError


@dataclass(eq=False, repr=False)
class OpenWireAcceptor(ProtocolOptions):
    """The parameters of OpenWire, with those of Classic's transportConnector that Artemis lacks."""

    UNUSED: ClassVar[dict[str, str]] = {
        "openwireMaxPacketSize": UNREAD,
        "openWireDestinationCacheSize": CACHES,
        "openwireMaxPacketChunkSize": SOCKETS,
        "virtualTopicConsumerLruCacheMax": CACHES,
    }
    FIXED: ClassVar[dict[str, FixedValue]] = {
        "supportAdvisory": FixedValue("true", "advisories are sent all the same to clients that listen for them"),
        "suppressInternalManagementObjects": FixedValue(
            "true", "management shows no queues of advisories: there are none"
        ),
        "useKeepAlive": FixedValue("true", "signs of life are sent all the same, as maxInactivityDuration says"),
        "openwireUseDuplicateDetectionOnFailover": FixedValue(
            "true", "a message that a failover client sends again is dropped all the same"
        ),
    }

    frame_bytes_max: int = option(
        100 << 20,
        "maxFrameSize",
        "largest frame of an OpenWire client",
        unit="bytes",
        minimum=1024,
    )
    inactivity_ms: int = option(
        30_000,
        "maxInactivityDuration",
        "an OpenWire client that is silent for longer is closed, 0 never; the lower value of both sides holds",
        unit="ms",
        minimum=0,
    )
    inactivity_delay_ms: int = option(
        10_000,
        "maxInactivityDurationInitalDelay",
        "added to it, before the first sign of life of an OpenWire client",
        unit="ms",
        minimum=0,
    )
    update_cluster_clients: bool = option(
        False, "updateClusterClients", "failover clients of OpenWire are told of the other brokers"
    )
    rebalance_cluster_clients: bool = option(
        False, "rebalanceClusterClients", "the same, and they are sent to brokers with fewer clients"
    )
    update_cluster_clients_on_remove: bool = option(
        False, "updateClusterClientsOnRemove", "they are also told when a broker has gone"
    )
    update_cluster_filter: str = option(
        "", "updateClusterFilter", "regular expressions with commas: names of the brokers to which they may go"
    )
    allow_link_stealing: bool = option(
        False,
        "allowLinkStealing",
        "an OpenWire client with a client id that is in use by the same user ends the other connection",
    )
    discovery_uri: str = option(
        "", "discoveryUri", "`multicast://default`: clients with `discovery:` find this acceptor by UDP multicast"
    )
    virtual_topic_forms: str = option(
        CLASSIC,
        "virtualTopicConsumerWildcards",
        "queues of virtual topics, for all acceptors of the node, with commas: a name with wildcards, `;`, and how many"
        " words stand before the topic's name; `;selectorAware=true`: a queue takes only what its consumers select;"
        " `;local=true`: it gets nothing that a bridge of a network brings",
    )
    virtual_demand: bool = option(
        False,
        "useVirtualDestSubs",
        "bridges with the same option are told of consumers behind virtual destinations as of consumers of these",
    )
    virtual_demand_of_queues: bool = option(
        False, "useVirtualDestSubsOnCreation", "the same for their queues, with or without consumers"
    )
    published_host: str = option(
        "",
        "publishedHost",
        "host by which OpenWire clients are told of this acceptor; empty: its own, or that of the cluster connection's"
        " connector if it listens at all addresses",
    )

    def check(self) -> None:
        """Implements ProtocolOptions.check."""
        try:
            virtual_topics(self.virtual_topic_forms)
        except ValueError as error:
            raise UriError(f"virtualTopicConsumerWildcards: {error}") from None
        for part in self.update_cluster_filter.split(","):
            try:
                re.compile(part)
            except re.error as damage:
                raise UriError(f"updateClusterFilter: '{part}' is no regular expression: {damage}") from None
