"""This node as one of its cluster connections presents it to the members: its configuration, its own entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.topology.topology import Member

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
    from atalanta.wire.core.transport import TransportConfiguration
    from atalanta.wire.server import WireServer

REFUSED_MAX: Final = 1_000


class LocalNode:
    """The local end of a cluster connection.

    `event_id` (ms) is that of this node's last announcement. `backup` is the connector of the node's backup, the other
    half of the pair. `prefix` begins the keys of all dials and timers of the cluster connection.
    """

    def __init__(
        self,
        config: ClusterConnectionConfig,
        settings: ClusterSettings,
        number: int,
        host: WireServer,
        plain_password: bool,
    ) -> None:
        broker = host.broker
        self.config = config
        self.plain_password = plain_password  # also to nodes that discovery finds
        self.settings = settings
        self.host = host
        self.node_id: str = broker.node_id
        self.timers = broker.timers
        self.trace = broker.trace
        self.ids = broker.ids
        self.reserved_ids = broker.reserved_ids
        self.prefix: str = f"cluster.{number}."
        self.event_id: int = 0
        self.backup: TransportConfiguration | None = None
        self.refused: dict[str, bool] = {}  # addresses that get no password, told once
        self.real: dict[str, bool] = {}  # addresses whose peer has answered a challenge as a real Artemis does
        self.taken: dict[str, bool] = {}  # names of store-and-forward queues that other queues have, told once

    def renew(self, now: int) -> None:
        """Begins an announcement: it has an event id that this node never had, and no member has heard of it."""
        self.event_id = self.reserved_ids.take_number(now, self.event_id)

    def raise_event_id(self, event_id: int) -> None:
        """Lets the next announcement have an event id above this one."""
        self.event_id = max(self.event_id, event_id)

    def member(self) -> Member:
        """Returns this node's own entry in the topology."""
        scale_down = self.settings.scale_down
        group = None if scale_down is None else scale_down.group_name
        connector = self.settings.transport(self.config.connector)
        return Member(self.node_id, self.event_id, connector, self.backup, None, group)

    def unique_name(self) -> str:
        """Returns a new name for a session or a queue, unique across all nodes."""
        return self.ids.uuid().hex()

    def forward_name(self, node_id: str) -> str:
        """Returns the name of a node's store-and-forward queue, `$.artemis.internal.sf.<cluster>.<node>`."""
        return f"{self.settings.internal_naming_prefix}sf.{self.config.name}.{node_id}"

    def tell_taken(self, node_id: str, name: str, address: str) -> None:
        """Records once that a queue of another kind has the name of a node's store-and-forward queue."""
        if name not in self.taken:
            self.taken[name] = True
            how = "move its messages to another queue, delete it, and start this node again: until then there is no"
            self.trace.event(
                "store_and_forward_name_taken",
                {"queue": name, "address": address, "node": node_id, "what_to_do": f"{how} link to that node"},
            )

    # -- real Artemis peers ---------------------------------------------------------------------
    def note_real(self, address: str) -> None:
        """Records that a real Artemis is at the address: it takes a challenge for a failed login, and logs it."""
        if len(self.real) >= REFUSED_MAX:
            self.real.pop(next(iter(self.real)))
        self.real[address] = True

    def is_real(self, address: str) -> bool:
        return address in self.real

    def forget_real(self, address: str) -> bool:
        """Records that another peer may be at the address, which gets a challenge; returns True if it was known."""
        return self.real.pop(address, False)

    # -- timers ---------------------------------------------------------------------------------
    def key(self, rest: str) -> str:
        """Returns the key of a dial or timer of this cluster connection."""
        return self.prefix + rest

    def set_timer(self, rest: str, at_ns: int) -> None:
        self.timers.set(self.prefix + rest, at_ns)

    def cancel_timer(self, rest: str) -> None:
        self.timers.cancel(self.prefix + rest)

    # -- events ---------------------------------------------------------------------------------
    def report(self, event: str, node_id: str, why: str) -> None:
        """Records an event about a node."""
        self.trace.event(event, {"node": node_id, "why": why})

    def report_no_password(self, address: str, what_to_do: str) -> None:
        """Records once that a node that discovery found gets no password in plain text."""
        if address in self.refused or len(self.refused) >= REFUSED_MAX:
            return
        self.refused[address] = True
        self.trace.event("discovered_member_refused", {"remote": address, "what_to_do": what_to_do})
