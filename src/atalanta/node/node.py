"""A node: broker, journal, connections and cluster. Pure; a shell drives it.

Both shells, `runtime/` (asyncio) and `sim/` (simulated), call the inputs below and implement the ports. A node never
blocks, never reads a clock, and does bounded work per input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.cluster.connection.cluster_connection import ClusterConnection
from atalanta.cluster.discovery.jgroups_channels import JGROUPS_PREFIX
from atalanta.cluster.inputs import NodeInputs
from atalanta.cluster.part import Part
from atalanta.cluster.replication.active.protocol import ReplicationProtocol
from atalanta.cluster.replication.active.replicator import Replicator
from atalanta.ha.register import Register
from atalanta.kernel.broker import invariants
from atalanta.kernel.broker.broker import Broker
from atalanta.kernel.broker.disk_limit import DiskLimit
from atalanta.kernel.broker.notifications import Notifications
from atalanta.kernel.journal import records
from atalanta.kernel.ports import BrokerPorts, Pages
from atalanta.kernel.security.directory import DirectoryAnswer
from atalanta.kernel.security.user_operation import UserAnswer
from atalanta.kernel.settings.broker_config import StoredSettings
from atalanta.kernel.settings.configuration_request import ConfigurationAnswer
from atalanta.management.management import ManagementService
from atalanta.management.message_counters import COUNTERS_TIMER
from atalanta.management.request.jobs import MANAGEMENT_TIMER
from atalanta.management.status import NodeStatus
from atalanta.node import recovery
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.parts import Parts
from atalanta.node.reload import PartsReload
from atalanta.store.journal import PREFIX as JOURNAL_TIMERS
from atalanta.store.journal import Journal
from atalanta.store.pages import PageFiles
from atalanta.wire.connection import TransportConnection
from atalanta.wire.core.server.protocol import CoreProtocol
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import change_domains
from atalanta.wire.open_connections import TTL_TIMER, OpenConnections
from atalanta.wire.openwire.server.protocol import OpenWireProtocol
from atalanta.wire.protocol import Peer
from atalanta.wire.server import WireServer
from atalanta.wire.sniffer import Sniffer
from atalanta.wire.stomp.protocol import StompProtocol

DISCOVERY_PART: Final = "discovery"
VERSION: Final = "0.1.0"


class Node(NodeInputs):
    """The active node. Inputs are called one at a time; `flush` is called once after each batch of inputs."""

    replicator: Replicator | None = None  # the active side of the node's group

    def __init__(self, config: NodeConfig, ports: Ports) -> None:
        self.config = config
        self.ports = ports
        self.command = ports.command
        self.stopped = False
        self.over = False  # it serves no more: it has failed, or another member of its group has the service
        self.connections: dict[int, TransportConnection] = {}
        self.journal = Journal(
            ports.disk,
            config.journal,
            ports.timers,
            ports.trace,
            records.PLAIN_MESSAGE,
            records.PASSING,
        )
        self.broker = Broker(
            config.broker,
            config.settings,
            config.security,
            self._broker_ports(),
            config.node_id,
            config.own.producer_window_bytes,
        )
        self.journal.listen(self.broker, self._on_journal_failed)
        self.disk_limit = DiskLimit(config.broker, self.broker.memory, ports.trace)
        self.notifications = Notifications(
            config.broker,
            config.node_id,
            self.broker.address_registry,
            self.broker.queue_registry,
            self.broker.plans,
        )
        self.status = NodeStatus(VERSION)
        self.host = self._host()
        self.open_connections = OpenConnections(self.host)
        parts = Parts(config, ports, self.host, self.notifications, self.replicator)
        self.parts = parts.by_name
        self.parts_reload = PartsReload(parts)
        self.doors = parts.doors
        self.acceptors = parts.acceptors
        self.management = ManagementService(
            self.broker, self.notifications, parts.resources, self.status, ports.process
        )
        self.clusters = parts.clusters
        self.scale_down = parts.scale_down
        self.bridges = parts.bridges
        self.routers = parts.routers

    def _host(self) -> WireServer:
        """Returns the host of the connections, with the protocols that the node serves."""
        config, ports = self.config, self.ports
        host = WireServer(
            self.broker, ports.wire, self.connections, ports.passwords, ports.directories
        )
        host.follow_acceptors(config.acceptors)
        host.unfinished.user_bytes_max = config.own.unfinished_messages_bytes
        host.protocols.append(CoreProtocol(host))
        host.protocols.append(StompProtocol(host, ports.timers))
        host.protocols.append(OpenWireProtocol(host, ports.timers))
        if self.replicator is not None:
            journal_id = config.journal.journal_id
            host.protocols.append(ReplicationProtocol(host, self.replicator, journal_id, ports.ids))
        return host

    def _broker_ports(self) -> BrokerPorts:
        """Returns the ports of the broker. In a group they replicate page files and large bodies, too."""
        config, ports = self.config, self.ports
        files: PageFiles | None = None
        if config.broker.persistence_enabled:
            files = PageFiles(ports.disk, config.journal.journal_id)
        pages: Pages | None = files
        large = ports.large
        if ports.replication is not None:
            self.replicator = replicator = Replicator(
                ports.replication, self.journal, files, large, ports.timers, ports.trace,
                lambda: self.broker.reserved_ids.renew(), self._end, self.on_backups,
            )  # fmt: skip
            pages, large = replicator.pages, replicator.large
        return BrokerPorts(
            self.journal, ports.timers, ports.ids, ports.trace, pages, large,
            lambda conn, why: self.host.end_client(conn, why), ports.command,
        )

    # -- start and stop -------------------------------------------------------------------------
    def recover(self, now: int) -> None:
        recovery.recover(now, self.broker, self.journal, self.replicator, self.ports.disk)

    def start(self, now: int) -> None:
        """Creates the configured addresses and queues, arms timers, and connects to peers. `recover` must be called
        before."""
        self.broker.add_observer(self.notifications)
        self.management.start(now)
        self.broker.resources.delete_unnamed(now)
        self.broker.resources.create(now)
        if self.config.cluster is None:
            # In a cluster a peer may hold messages for an empty queue: only the periodic sweep
            # removes the queue.
            self.broker.queue_registry.sweep_at_start(now)
        self.broker.start_timers(now)
        self.open_connections.start(now)
        if self.broker.log_views.any_leased():
            self.broker.log_views.end_leases(now)
        self.bridges.name_queues()
        if self.scale_down is None or not self.scale_down.resume(now):
            for part in self.parts.values():
                part.start(now)
        self.flush(now)

    def leave(self, now: int) -> None:
        """Starts the scale-down to another member; `scale_down.over()` tells when it has ended."""
        if self.scale_down is not None:
            self.scale_down.leave(now)

    def stop(self, now: int) -> None:
        """Disconnects clients and peers; the shell then waits for the journal and closes."""
        self.broker.stop()
        for part in self.parts.values():
            part.stop(now)
        self.host.end_lost(now)
        for connection in list(self.connections.values()):
            connection.stop(now)
        self.flush(now)
        self.stopped = True

    # -- connections ----------------------------------------------------------------------------
    def on_accept(
        self,
        now: int,
        conn: int,
        acceptor: str,
        remote: str = "",
        server_name: str | None = None,
        certificate: str = "",
    ) -> None:
        leaving = self.scale_down if self.scale_down is not None and self.scale_down.frozen else None
        if acceptor not in self.acceptors and acceptor.startswith(JGROUPS_PREFIX):
            visitor = None
            if leaving is None:
                visitor = self.parts[DISCOVERY_PART].on_accepted(now, conn, acceptor, remote)
            if visitor is None:
                self.ports.wire.close(conn, "not wanted")
            else:
                self.connections[conn] = visitor
            return
        if self.doors.is_closed(acceptor):
            self.ports.wire.close(conn, "the acceptor is closed")
            return
        peer = Peer(remote or acceptor, server_name, certificate)
        connection = Sniffer(self.host, conn, peer, now, self.acceptors.get(acceptor))
        if leaving is not None:
            leaving.arrived(now, conn, connection)
        self.connections[conn] = connection

    def on_data(self, now: int, conn: int, data: bytes) -> None:
        if self.failed is None:
            self.open_connections.receive(now, conn, data)

    def on_closed(self, now: int, conn: int, why: str) -> None:
        connection = self.connections.pop(conn, None)
        if connection is not None and self.failed is None:
            connection.lost(now, why)

    def on_blocked(self, now: int, conn: int) -> None:
        connection = self.connections.get(conn)
        if connection is not None and self.failed is None:
            connection.on_blocked(now, True)

    def on_unblocked(self, now: int, conn: int) -> None:
        connection = self.connections.get(conn)
        if connection is not None and self.failed is None:
            connection.on_blocked(now, False)

    def on_hung_up(self, now: int, conn: int) -> None:
        if self.failed is None:
            self.open_connections.hung_up(now, conn)

    def on_dialed(self, now: int, conn: int, key: str) -> None:
        connection = None
        part = self.part_of(key)
        if part is not None and self.failed is None:
            connection = part.on_dialed(now, conn, key)
        if connection is None:
            self.ports.wire.close(conn, "not wanted any more")
        else:
            self.connections[conn] = connection

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        part = self.part_of(key)
        if part is not None and self.failed is None:
            part.on_dial_failed(now, key, why)

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        if self.failed is not None:
            return
        try:
            self.command.begin()
            for part in self.parts.values():
                part.on_datagram(now, group, data)
        except Exception as error:
            if self.command.changing:
                raise
            self.broker.failures.report(now, "datagram", group, "", error)

    def on_resolved(self, now: int, key: str, places: list[tuple[str, int]], why: str) -> None:
        part = self.part_of(key)
        if part is not None and self.failed is None:
            part.on_resolved(now, key, places, why)

    def on_posted(self, now: int, key: str, files: dict[str, bytes], why: str) -> None:
        part = self.part_of(key)
        if part is not None and self.failed is None:
            part.on_posted(now, key, files, why)

    def on_backups(self, now: int, backups: dict[str, TransportConfiguration]) -> None:
        """Announces the backup of this node: its connector for each cluster connection, by name."""
        if self.clusters is not None and self.failed is None and not self.stopped:
            self.clusters.on_backups(now, backups)

    def on_verified(self, now: int, token: int, ok: bool) -> None:
        if self.failed is None:
            self.open_connections.answer_logins(now, token, ok)

    def on_looked_up(self, now: int, token: int, answer: DirectoryAnswer) -> None:
        if self.failed is None:
            self.open_connections.take_answer(now, token, answer)

    def on_users(self, now: int, token: int, answer: UserAnswer) -> None:
        """Handles the end of `Process.operate_users`: changed users can log in before the operation is answered."""
        if self.failed is None:
            if answer.security is not None:
                self.broker.security.replace_users(answer.security)
                self.host.logins.forget()
            self.management.users.finished(now, token, answer)

    def on_configuration(self, now: int, token: int, answer: ConfigurationAnswer) -> None:
        """Handles the end of `Process.operate_configuration`: `on_reload` came before, if a change counts now."""
        if self.failed is None and not self.stopped:
            self.management.configuration.finished(now, token, answer)

    def on_reload(self, now: int, config: NodeConfig) -> None:
        """Applies a reloaded, valid configuration, as far as it can change without a restart."""
        if self.failed is not None or self.stopped:
            return
        self.broker.reload(now, config.broker, config.settings, config.security)
        self.parts_reload.apply(now, config)
        self.management.follow_resources()
        change_domains(self.ports.trace, self.acceptors, config.acceptors, config.security)
        self.host.logins.forget()
        self.ports.trace.event(
            "configuration_reloaded",
            {
                "address_settings": len(config.broker.address_settings),
                "security_settings": len(config.broker.security_rules),
                "users": len(config.security.users),
                "addresses": len(config.broker.addresses),
                "diverts": len(config.broker.diverts),
                "bridges": len(config.bridges.bridges),
            },
        )

    def on_reload_done(self, now: int, done: Callable[[int, str], None], problem: str) -> None:
        if self.failed is None and not self.stopped:
            done(now, problem)

    def on_settings_changed(
        self, now: int, token: int, stored: StoredSettings | None, why: str
    ) -> None:
        """Applies the stored settings that a management request has changed, and answers it.

        In a group the answer waits until every member in sync has stored them.
        """
        if self.failed is None and not self.stopped:
            if stored is not None:
                for part in self.parts.values():
                    part.on_settings_stored()
            self.management.settings.changed(now, token, stored, why)

    # -- files of large messages ----------------------------------------------------------------
    def on_large_written(self, now: int, file: int, size: int) -> None:
        if self.failed is None:
            if self.replicator is not None:
                self.replicator.changes.body_written(file, size)
            self.broker.large.on_written(now, file, size)
            self.open_connections.resume(now)

    def on_large_synced(self, now: int, file: int) -> None:
        if self.failed is None:
            self.broker.now = now
            if self.replicator is not None:
                self.replicator.changes.body_synced(file)
            self.broker.large.on_synced(now, file)
            self.open_connections.resume(now)

    def on_large_failed(self, now: int, file: int, why: str) -> None:
        """Handles a write error: the message of the file is refused."""
        if self.failed is None:
            self.broker.now = now
            self.broker.large.on_failed(now, file, why)
            self.open_connections.resume(now)

    def on_large_read(self, now: int, token: int, data: bytes) -> None:
        if self.failed is not None:
            return
        if token < 0 and self.replicator is not None:
            self.replicator.on_large_read(token, data)
        else:
            self.broker.large.on_read(now, token, data)

    # -- timers ---------------------------------------------------------------------------------
    def on_timer(self, now: int, key: str) -> None:
        if self.over:
            return
        if key == MANAGEMENT_TIMER:
            self.management.on_timer(now)
        elif key == COUNTERS_TIMER:
            self.management.counters.on_timer(now)
        elif key == TTL_TIMER:
            self.open_connections.check_alive(now)
        elif key.startswith(JOURNAL_TIMERS):
            self.journal.on_timer(now, key)
        elif key.startswith("kernel."):
            self.broker.on_timer(now, key)
        elif key.startswith("wire."):
            for protocol in self.host.protocols:
                protocol.on_timer(now, key)
        else:
            part = self.part_of(key)
            if part is not None:
                part.on_timer(now, key)

    @property
    def cluster(self) -> ClusterConnection | None:
        """Returns the first cluster connection, for callers that name none."""
        return None if self.clusters is None else self.clusters.connections[0]

    def part_of(self, key: str) -> Part | None:
        """Returns the part that owns the dial or timer."""
        return self.parts.get(key.partition(".")[0])

    # -- the journal ----------------------------------------------------------------------------
    def on_committed(self, now: int, token: int) -> None:
        self.journal.on_committed(now, token)

    def on_disk_failed(self, now: int, why: str) -> None:
        self.journal.on_failed(now, why)

    def on_disk_usage(self, now: int, used_fraction: float, free_bytes: int) -> None:
        self.status.disk_used = used_fraction
        self.disk_limit.update(used_fraction, free_bytes)

    def on_room(self, now: int, room: bool, name: str = "") -> None:
        """Handles whether the journal's disk is full: what is left of it then is for acknowledgements."""
        self.journal.set_room(room, name)
        self.disk_limit.set_exhausted(not room)

    def _on_journal_failed(self, now: int, why: str) -> None:
        """Fails the node: nothing can be confirmed any more, so the shell must end it."""
        self.ports.trace.event("journal_failed", {"why": why})
        self._end(f"journal failed: {why}")

    def _end(self, why: str) -> None:
        """Ends the service for good. The shell ends the run if the node has failed: `why` says why, "" otherwise."""
        self.over = True
        if why:
            self.failed = why

    # -- batches of inputs ----------------------------------------------------------------------
    def flush(self, now: int) -> None:
        """Delivers, writes to the connections, and starts the next commit. A failed node does nothing more."""
        if self.over:
            return
        if self.host.resumed:
            self.open_connections.resume(now)
        self.broker.flush(now)
        if self.host.unsent:
            self.host.settle_unsent(now)
        for part in self.parts.values():
            if part.wants_turn:
                part.flush(now)
        if self.host.dirty:
            self.open_connections.write(now)
        if self.host.closing:
            self.open_connections.end_closing(now)
        if self.broker.large.released:
            self.broker.open_bodies.settle(now)  # files that bridges and ended deliveries released
        if self.broker.stopping:
            self.journal.hurry()
        self.journal.flush(now)

    def flush_answers(self, now: int) -> None:
        """Writes the pending answers to the connections; `flush` follows."""
        if self.failed is None:
            self.open_connections.write(now)

    # -- the group ------------------------------------------------------------------------------
    def may_send(self, now: int) -> bool:
        """Returns whether output may leave: the numbers in it are never used again, because the journal reserves them.

        In a group: no other member serves, or can begin to. Its next epoch uses other numbers without a record.
        """
        if self.replicator is None:
            return self.broker.reserved_ids.awaited_lsn <= self.journal.durable
        return self.failed is None and self.replicator.serves(now)

    def on_register(self, now: int, version: int, register: Register | None) -> None:
        if self.replicator is not None and self.failed is None:
            self.replicator.on_register(now, version, register)

    def on_register_uncertain(self, now: int, why: str) -> None:
        if self.replicator is not None and self.failed is None:
            self.replicator.on_register_uncertain(now, why)

    def validate(self) -> None:
        """Asserts the invariants that hold between inputs (used by the simulator)."""
        invariants.validate(self.broker)
