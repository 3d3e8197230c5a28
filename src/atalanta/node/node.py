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
from atalanta.cluster.replication.active.replicator import REPLICATION_PART, Replicator
from atalanta.ha.register import Register
from atalanta.kernel.broker import invariants
from atalanta.kernel.broker.broker import Broker
from atalanta.kernel.broker.disk_limit import DiskLimit
from atalanta.kernel.broker.live_records import LiveRecords
from atalanta.kernel.broker.notifications import Notifications
from atalanta.kernel.broker.recovery import Recovery
from atalanta.kernel.journal import records
from atalanta.kernel.ports import BrokerPorts, Pages
from atalanta.kernel.security.user_operation import UserAnswer
from atalanta.kernel.settings.broker_config import StoredSettings
from atalanta.management.management import ManagementService
from atalanta.management.message_counters import COUNTERS_TIMER
from atalanta.management.request.jobs import MANAGEMENT_TIMER
from atalanta.management.resources.acceptor import ListedAcceptor
from atalanta.management.resources.registry import ResourceRegistry
from atalanta.management.status import NodeStatus
from atalanta.message.encoding.buffer import DecodeError
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.parts import Parts
from atalanta.store.errors import JournalDamaged
from atalanta.store.journal import PREFIX as JOURNAL_TIMERS
from atalanta.store.journal import Journal
from atalanta.store.pages import PageFiles
from atalanta.wire.connection import ClientConnection, ProtocolError, TransportConnection
from atalanta.wire.core.server.protocol import CoreProtocol
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import change_domains
from atalanta.wire.openwire.server.protocol import OpenWireProtocol
from atalanta.wire.protocol import Peer
from atalanta.wire.server import TOO_MANY_WITHOUT_LOGIN, WireServer
from atalanta.wire.sniffer import Sniffer
from atalanta.wire.stomp.protocol import StompProtocol

DISCOVERY_PART: Final = "discovery"
VERSION: Final = "0.1.0"
HUNG_UP: Final = "closed by the peer"
TTL_TIMER: Final = "wire.ttl"


def registered_resources(config: NodeConfig) -> ResourceRegistry:
    """Returns the resources that management shows, with the configured acceptors and connectors."""
    resources = ResourceRegistry()
    for acceptor in config.acceptors:
        place = {"host": acceptor.host, "port": acceptor.port}
        resources.register_acceptor(ListedAcceptor(acceptor.name, place))
    connectors = {} if config.cluster is None else config.cluster.connectors
    for name, connector in connectors.items():
        resources.register_connector(name, connector.transport_params())
    return resources


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
        self.acceptors = {acceptor.name: acceptor for acceptor in config.acceptors}
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
        resources = registered_resources(config)
        self.host = self._host()
        parts = Parts(
            config,
            self.host,
            self.notifications,
            resources,
            ports.links,
            ports.process,
            self.connections,
            self.acceptors,
        )
        self.parts = parts.by_name
        if self.replicator is not None:
            self.parts[REPLICATION_PART] = self.replicator
        if ports.colocation is not None and parts.clusters is not None:
            from atalanta.cluster.connection.colocation import COLOCATION_PART, Colocation

            self.parts[COLOCATION_PART] = Colocation(ports.colocation, parts.clusters)
        self.management = ManagementService(
            self.broker, self.notifications, resources, self.status, ports.process
        )
        self.clusters = parts.clusters
        self.scale_down = parts.scale_down
        self.bridges = parts.bridges
        self.routers = parts.routers

    def _host(self) -> WireServer:
        """Returns the host of the connections, with the protocols that the node serves."""
        config, ports = self.config, self.ports
        host = WireServer(self.broker, ports.wire, self.connections, ports.passwords)
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
            self.journal, ports.timers, ports.ids, ports.trace, pages, large, self._close_after_turn, ports.command
        )

    # -- start and stop -------------------------------------------------------------------------
    def recover(self, now: int) -> None:
        """Reads the journal into the broker. Raises DecodeError or JournalDamaged if the journal is not valid.

        What a member of a group has replayed while it was passive is not read again.
        """
        seat = self.ports.replication
        recovery = (None if seat is None else seat.end_preparation()) or Recovery(self.broker)
        live_records = LiveRecords(self.broker)
        try:
            if seat is None or seat.replay is None:
                report = self.journal.recover(recovery, live_records)
            else:
                state = seat.replay.complete(self.ports.disk)
                report = state.report
                self.journal.take_over(state, live_records)
        except JournalDamaged as error:
            raise error.with_contents(recovery.described(error.records)) from error
        report.check_first(recovery.first_segment)
        if self.replicator is not None:
            self.replicator.begin(now)
        epochs = 0
        if self.replicator is not None:
            # What an earlier epoch did not confirm is cut, but its ids may be in files and at clients. Epochs of which
            # this journal has no block count, too.
            epochs = self.replicator.epoch - (report.epochs[-1][0] if report.epochs else 0)
        recovery.finish(now, epochs)
        ids = self.broker.reserved_ids
        ids.awaited_lsn = ids.renew()
        trace = self.ports.trace
        if report.torn_bytes:
            trace.event("journal_tail_cut", {"at": report.torn_at, "bytes": report.torn_bytes})
        if report.expected and self.replicator is None:  # a follower prepares its next file under another name
            trace.event("journal_segment_missing", {"file": report.expected})
        trace.event(
            "journal_recovered", {"records": report.records, "messages": len(self.broker.store.messages)}
        )

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
        self.ports.timers.set(
            TTL_TIMER, now + self.config.broker.connection_ttl_check_interval_ms * 1_000_000
        )
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

    def arriving(self) -> bool:
        """Returns True while clients of a stopping node are still connecting and are told the target."""
        for connection in self.connections.values():
            if isinstance(connection, ClientConnection) and connection.reconnecting:
                return True
        return False

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
                visitor = self.parts[DISCOVERY_PART].on_accepted(now, conn, acceptor)
            if visitor is None:
                self.ports.wire.close(conn, "not wanted")
            else:
                self.connections[conn] = visitor
            return
        peer = Peer(remote or acceptor, server_name, certificate)
        connection = Sniffer(self.host, conn, peer, now, self.acceptors.get(acceptor))
        if leaving is not None:
            leaving.arrived(now, conn, connection)
        self.connections[conn] = connection

    def on_data(self, now: int, conn: int, data: bytes) -> None:
        connection = self.connections.get(conn)
        if connection is None or self.failed is not None:
            return
        try:
            self.command.begin()
            connection.feed(now, data)
        except (ProtocolError, DecodeError) as error:
            self._break_off(now, conn, str(error))
        except Exception as failure:  # a separate name: mypyc gives each name one type
            self._end_failed(now, conn, failure)

    def on_closed(self, now: int, conn: int, why: str) -> None:
        connection = self.connections.pop(conn, None)
        if connection is not None and self.failed is None:
            connection.lost(now, why)

    def on_blocked(self, now: int, conn: int) -> None:
        """Pauses deliveries to a peer that reads too slowly."""
        connection = self.connections.get(conn)
        if connection is not None and self.failed is None:
            connection.on_blocked(now, True)

    def on_unblocked(self, now: int, conn: int) -> None:
        """Resumes deliveries: the peer has read almost everything that was written."""
        connection = self.connections.get(conn)
        if connection is not None and self.failed is None:
            connection.on_blocked(now, False)

    def on_hung_up(self, now: int, conn: int) -> None:
        """Ends the connection of a peer that has gone, unless what it has sent is about to be processed."""
        connection = self.connections.get(conn)
        if connection is not None and self.failed is None and connection.hung_up(now):
            del self.connections[conn]
            connection.lost(now, HUNG_UP)
            self.ports.wire.close(conn, HUNG_UP)

    def _close_after_turn(self, conn: int, why: str) -> None:
        if conn in self.connections:
            self.host.closing.append((conn, why))
        else:
            for protocol in self.host.protocols:
                protocol.end(self.broker.now, conn)

    def _break_off(self, now: int, conn: int, why: str) -> None:
        """Closes the connection of a peer that violated the protocol. The links of this node's own have no remote
        address: their part reports the end, with the reason."""
        self.command.end()
        connection = self.connections.get(conn)
        remote = "" if connection is None else connection.peer()
        # A client with the wrong protocol or version tries for ever.
        unknown = isinstance(connection, ClientConnection) and not connection.authenticated
        if remote and (not unknown or self.host.refusals.admits(now, remote, why)):
            self.ports.trace.event(
                "protocol_error", {"connection": conn, "remote": remote, "why": why}
            )
        self._close(now, conn, why)

    def _end_failed(self, now: int, conn: int, error: Exception) -> None:
        """Closes the connection whose command failed by a mistake of ours, outside the kernel's state.

        A command that has begun to change the kernel fails the node: the exception is raised again.
        """
        if self.command.changing:
            raise error
        connection = self.connections.get(conn)
        self.command.end()
        name, protocol, remote = "", "", ""
        if connection is not None:
            name, remote = connection.command_name(), connection.peer()
            protocol = connection.client.protocol if isinstance(connection, ClientConnection) else "link"
        self._close(now, conn, self.broker.failures.report(now, protocol, name, remote, error))

    def _close(self, now: int, conn: int, why: str) -> None:
        connection = self.connections.pop(conn, None)
        if connection is not None:
            connection.flush(now)
            connection.closed(now, why)
        self.ports.wire.close(conn, why)

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
        """Handles the result of `Links.resolve`."""
        part = self.part_of(key)
        if part is not None and self.failed is None:
            part.on_resolved(now, key, places, why)

    def on_posted(self, now: int, key: str, files: dict[str, bytes], why: str) -> None:
        """Handles the result of `Links.post`."""
        part = self.part_of(key)
        if part is not None and self.failed is None:
            part.on_posted(now, key, files, why)

    def on_backups(self, now: int, backups: dict[str, TransportConfiguration]) -> None:
        """Announces the backup of this node: its connector for each cluster connection, by name."""
        if self.clusters is not None and self.failed is None and not self.stopped:
            self.clusters.on_backups(now, backups)

    def on_verified(self, now: int, token: int, ok: bool) -> None:
        """Handles the result of the Passwords port: all logins with these credentials are answered."""
        if self.failed is not None:
            return
        verdict = self.host.logins.finished(now, token, ok)
        for waiter in verdict.waiters:
            try:
                self.command.begin()
                waiter.login_done(now, verdict.identity)
            except ProtocolError as error:
                self._break_off(now, waiter.conn, str(error))
            except Exception as failure:
                self._end_failed(now, waiter.conn, failure)

    def on_users(self, now: int, token: int, answer: UserAnswer) -> None:
        """Handles the end of `Process.operate_users`: changed users can log in before the operation is answered."""
        if self.failed is None:
            if answer.security is not None:
                self.broker.security.replace_users(answer.security)
                self.host.logins.forget()
            self.management.users.finished(now, token, answer)

    def on_reload(self, now: int, config: NodeConfig) -> None:
        """Applies a reloaded, valid configuration, as far as it can change without a restart."""
        if self.failed is not None or self.stopped:
            return
        self.broker.reload(now, config.broker, config.settings, config.security)
        change_domains(self.ports.trace, self.acceptors, config.acceptors, config.security)
        if self.scale_down is None or not self.scale_down.frozen:
            # A node that scales down starts no bridge: its messages may be at the target already.
            self.bridges.reload(now, config.bridges)
            if self.routers is not None:
                self.routers.reload(now, config.routers)
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
        """Passes the end of a reload, with its problem, to the one who asked for it."""
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
        """Handles the write of `size` more bytes to the file."""
        if self.failed is None:
            if self.replicator is not None:
                self.replicator.changes.body_written(file, size)
            self.broker.large.on_written(now, file, size)
            self._resume(now)

    def on_large_synced(self, now: int, file: int) -> None:
        """Handles the sync: all bytes appended to the file survive a crash."""
        if self.failed is None:
            self.broker.now = now
            if self.replicator is not None:
                self.replicator.changes.body_synced(file)
            self.broker.large.on_synced(now, file)
            self._resume(now)

    def on_large_failed(self, now: int, file: int, why: str) -> None:
        """Handles a write error: the message of the file is refused."""
        if self.failed is None:
            self.broker.now = now
            self.broker.large.on_failed(now, file, why)
            self._resume(now)

    def on_large_read(self, now: int, token: int, data: bytes) -> None:
        """Handles the data of the read request `token`."""
        if self.failed is not None:
            return
        if token < 0 and self.replicator is not None:
            self.replicator.on_large_read(token, data)
        else:
            self.broker.large.on_read(now, token, data)

    def _resume(self, now: int) -> None:
        """Continues connections that waited for the disk with their buffered input."""
        while self.host.resumed:
            for conn in self.host.take_resumed():
                connection = self.connections.get(conn)
                if connection is None:
                    continue
                try:
                    self.command.begin()
                    connection.resume(now)
                except (ProtocolError, DecodeError) as error:
                    self._break_off(now, conn, str(error))
                except Exception as failure:
                    self._end_failed(now, conn, failure)

    # -- timers ---------------------------------------------------------------------------------
    def on_timer(self, now: int, key: str) -> None:
        if self.over:
            return
        if key == MANAGEMENT_TIMER:
            self.management.on_timer(now)
        elif key == COUNTERS_TIMER:
            self.management.counters.on_timer(now)
        elif key == TTL_TIMER:
            self._check_alive(now)
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

    def _check_alive(self, now: int) -> None:
        for protocol in self.host.protocols:
            protocol.check(now)
        self.host.unfinished.check(now)
        for conn in list(self.connections):
            connection = self.connections.get(conn)
            if connection is not None and not connection.check_alive(now):
                self._close(now, conn, "silent for longer than its time to live")
        for conn in self.host.too_many_without_login(now):
            self._close(now, conn, TOO_MANY_WITHOUT_LOGIN)
        self.ports.timers.set(
            TTL_TIMER, now + self.config.broker.connection_ttl_check_interval_ms * 1_000_000
        )

    # -- the journal ----------------------------------------------------------------------------
    def on_committed(self, now: int, token: int) -> None:
        self.journal.on_committed(now, token)

    def on_disk_failed(self, now: int, why: str) -> None:
        self.journal.on_failed(now, why)

    def on_disk_usage(self, now: int, used_fraction: float, free_bytes: int) -> None:
        """Handles the usage of the journal's disk."""
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
            self._resume(now)
        self.broker.flush(now)
        if self.host.unsent:
            self.host.settle_unsent(now)
        for part in self.parts.values():
            if part.wants_turn:
                part.flush(now)
        if self.host.dirty:
            self._write(now)
        if self.host.closing:
            for conn, why in self.host.take_closing():
                self._close(now, conn, why)
        if self.broker.large.released:
            self.broker.open_bodies.settle(now)  # files that bridges and ended deliveries released
        if self.broker.stopping:
            self.journal.hurry()
        self.journal.flush(now)

    def flush_answers(self, now: int) -> None:
        """Writes the pending answers to the connections; `flush` follows."""
        if self.failed is None:
            self._write(now)

    def _write(self, now: int) -> None:
        for conn in self.host.take_dirty():
            connection = self.connections.get(conn)
            if connection is not None:
                connection.flush(now)

    # -- the group ------------------------------------------------------------------------------
    def may_send(self, now: int) -> bool:
        """Returns whether output may leave: the numbers in it are never used again, because the journal reserves them.

        In a group: no other member serves, or can begin to. Its next epoch uses other numbers without a record.
        """
        if self.replicator is None:
            return self.broker.reserved_ids.awaited_lsn <= self.journal.durable
        return self.failed is None and self.replicator.serves(now)

    def on_register(self, now: int, version: int, register: Register | None) -> None:
        """Handles the register of the group, as read or written; None if it does not exist."""
        if self.replicator is not None and self.failed is None:
            self.replicator.on_register(now, version, register)

    def on_register_uncertain(self, now: int, why: str) -> None:
        """Handles that a request to the register has no certain outcome."""
        if self.replicator is not None and self.failed is None:
            self.replicator.on_register_uncertain(now, why)

    def validate(self) -> None:
        """Asserts the invariants that hold between inputs (used by the simulator)."""
        invariants.validate(self.broker)
