"""The ways from one node to another: cluster connections and their links, core bridges, networks of brokers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class LinkView:
    """A link from one node to another. `may_have_arrived` and similar values come only from Atalanta nodes."""

    node_id: str
    address: str = ""
    linked: bool = True
    away_since_ms: int | None = None
    """Since when the member is away: a time in ms since 1970."""
    waiting: int = 0
    may_have_arrived: int | None = None
    confirmed: int | None = None
    later_confirmed: int | None = None

    @property
    def last_confirmed(self) -> int | None:
        """Returns the count of the last sample."""
        return self.confirmed if self.later_confirmed is None else self.later_confirmed


@dataclass
class ClusterConnectionView:
    """A cluster connection of a node."""

    name: str
    address: str = ""
    load_balancing: str = ""
    max_hops: int = 1
    duplicate_detection: bool = True
    static_connectors: list[str] = field(default_factory=list)
    discovery_group: str | None = None
    links: dict[str, LinkView] = field(default_factory=dict)
    """By node id."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a connector fails, by host:port."""

    def covers(self, address: str) -> bool:
        """Returns whether the address is shared: by prefixes; `!` excludes and wins (ClusterConnectionBridge)."""
        included: list[str] = []
        for part in self.address.split(","):
            prefix = part.strip()
            if prefix.startswith("!"):
                if address.startswith(prefix[1:]):
                    return False
            elif prefix:
                included.append(prefix)
        return not included or any(address.startswith(prefix) for prefix in included)


@dataclass
class BridgeView:
    """A core bridge. `to`: the host:port that it is connected to or tries; `why`: why it is not connected."""

    name: str
    queue: str = ""
    forwarding_address: str | None = None
    started: bool = True
    connected: bool | None = None
    to: str | None = None
    why: str = ""
    waiting: int | None = None
    """Messages in its queue."""
    acknowledged: int = 0
    later_acknowledged: int | None = None

    @property
    def last_acknowledged(self) -> int:
        """Returns the count of the last sample."""
        return self.acknowledged if self.later_acknowledged is None else self.later_acknowledged


@dataclass
class NetworkView:
    """A bridge of a network connector, to one broker of Classic's kind. `why`: why it is not connected."""

    name: str
    address: str
    """The URL of the other broker."""
    remote_name: str = ""
    connected: bool = True
    duplex: bool | None = None
    why: str = ""
    sent: int = 0
    received: int = 0
    later_sent: int | None = None
    later_received: int | None = None

    @property
    def last_sent(self) -> int:
        """Returns the count of the last sample."""
        return self.sent if self.later_sent is None else self.later_sent

    @property
    def last_received(self) -> int:
        """Returns the count of the last sample."""
        return self.received if self.later_received is None else self.later_received
