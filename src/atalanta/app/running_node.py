"""A running node: a shell with bound ports, and the node that runs on it to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from atalanta.app.changes.requests import ConfigurationRequests
from atalanta.app.configuration_files import change_settings, read_again, watched_files
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage
from atalanta.app.transports import listens, secure_connectors
from atalanta.config.configuration import Configuration
from atalanta.kernel.ports import Disk, LargeFiles
from atalanta.kernel.security.user_operation import UserAnswer, UserOperation
from atalanta.message.encoding.buffer import DecodeError
from atalanta.node.clock import Clock
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import Node
from atalanta.runtime.disk.disk import FileDisk
from atalanta.runtime.disk.large_files import FolderLargeFiles
from atalanta.runtime.disk.memory_disk import MemoryDisk
from atalanta.runtime.disk.memory_large_files import MemoryLargeFiles
from atalanta.runtime.lifecycle.critical_analyzer import critical_analyzer
from atalanta.runtime.lifecycle.lifecycle import Lifecycle
from atalanta.runtime.lifecycle.reloader import Reloader
from atalanta.runtime.net.acceptor import PortTaken
from atalanta.runtime.net.limits import limits_of_this_process
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event
from atalanta.runtime.shell import Shell
from atalanta.store.errors import JournalDamaged, JournalForeign
from atalanta.tls.errors import TlsError

if TYPE_CHECKING:
    from atalanta.cluster.connection.colocation_seat import ColocationSeat
    from atalanta.cluster.replication.active.seat import ReplicationSeat
    from atalanta.web.server import WebServer

log = logging.getLogger("atalanta.app")

Ready = Callable[[list[str]], None]


class BoundPorts(Protocol):
    """The bound ports of a shell, which do not listen yet."""

    def listen_early(self) -> None:
        """Lets clients connect and wait."""


def bound_shell(configuration: Configuration, clock: Clock | None = None) -> Shell:
    """Returns a shell whose ports are bound, in the running loop. StartupError names what cannot be used."""
    shell = Shell(asyncio.get_running_loop(), limits_of_this_process(), clock=clock)
    try:
        shell.links.secure(secure_connectors(configuration))
        shell.bind(listens(configuration))
    except TlsError as error:
        raise StartupError(exit_codes.BAD_CONFIGURATION, [str(error)]) from error
    except OSError as error:
        raise StartupError(exit_codes.UNAVAILABLE, [error.strerror or str(error)]) from error
    return shell


@dataclass
class NewNode:
    """A node and its files, before it recovers."""

    node: Node
    disk: FileDisk | MemoryDisk
    large: FolderLargeFiles | MemoryLargeFiles

    def close(self) -> None:
        """Closes the files of a node that was not run."""
        self.disk.close()
        self.large.close()


def new_node(
    shell: Shell,
    config: NodeConfig,
    configuration: Configuration,
    storage: Storage,
    seat: ReplicationSeat | None,
    colocation: ColocationSeat | None,
) -> NewNode:
    """Returns a new node. With a `seat` it is the active one of a replicated group. `colocation`: it may host backups
    of other members."""
    disk = storage.disk(shell.loop, shell.driver, configuration.own.commits_in_loop)
    large = storage.large_files(
        shell.loop,
        shell.driver,
        configuration.broker.global_max_size_bytes,
        configuration.journal.large_message_sync,
    )
    return NewNode(Node(config, ports(shell, disk, large, seat, colocation)), disk, large)


async def run_node(
    shell: Shell,
    config: NodeConfig,
    configuration: Configuration,
    storage: Storage,
    ready: Ready,
    server: WebServer | None,
    begun: Callable[[Node, FileDisk | MemoryDisk], None] | None = None,
    new: NewNode | None = None,
    colocation: ColocationSeat | None = None,
) -> int:
    """Runs the node of a bound shell to its end. Returns the exit status.

    `begun` is called with the node and its disk before it recovers. `new`: the node was made before, as the active one
    of a replicated group. `colocation`: it may host backups of other members.
    """
    broker = configuration.broker
    made = new or new_node(shell, config, configuration, storage, None, colocation)
    node, disk, large = made.node, made.disk, made.large
    if storage.folder is not None:
        shell.watch_disk(storage.folder.journal, broker.disk_scan_period_ms / 1_000, storage.reserve)
    shell.connections.gate(lambda: node.may_send(shell.clock.now()))
    log_event(
        log,
        "node_starting",
        {"node_id": storage.node_id, "name": broker.name, "configuration": configuration.path},
    )
    if begun is not None:
        begun(node, disk)
    more = []
    if server is not None:
        server.show(node.management)
        more = [f"web={server.address}"]
    try:
        return await shell.run(
            node,
            disk,
            lambda words: ready([*words, *more]),
            lifecycle(shell, node, disk, configuration, storage),
        )
    except (JournalDamaged, JournalForeign, DecodeError) as error:
        place = storage.folder.journal if storage.folder is not None else "memory"
        line = f"the journal in {place} cannot be read: {error}"
        raise StartupError(exit_codes.BAD_DATA, [line]) from error
    except PortTaken as error:
        raise StartupError(exit_codes.UNAVAILABLE, [error.strerror or str(error)]) from error
    finally:
        large.close()
        if server is not None:
            server.show(None)


def lifecycle(
    shell: Shell,
    node: Node,
    disk: FileDisk | MemoryDisk,
    configuration: Configuration,
    storage: Storage,
) -> Lifecycle:
    """Returns the parts that start and stop with the node."""
    broker = configuration.broker
    changes = ConfigurationRequests(configuration, storage)
    reloader = Reloader(
        shell.loop,
        shell.trace,
        lambda: read_again(configuration, storage, changes.contents()),
        shell.apply,
        watched_files(configuration),
        broker.configuration_file_refresh_period_ms / 1_000,
    )
    graceful_shutdown = None
    if broker.graceful_shutdown_enabled:
        # Most nodes stop at once.
        from atalanta.runtime.lifecycle.graceful_shutdown import GracefulShutdown

        graceful_shutdown = GracefulShutdown(
            broker.graceful_shutdown_timeout_ms, node.broker.clients.client_count
        )
    return Lifecycle(
        reloader,
        lambda operation: users_changed(configuration, operation),
        critical_analyzer(shell.loop, shell.request_stop, broker, lambda: disk.busy_since),
        node.scale_down,
        graceful_shutdown,
        node.open_connections.arriving,
        lambda change: change_settings(configuration, storage, change),
        node.replicator,
        changes.attempt,
    )


def users_changed(configuration: Configuration, operation: UserOperation) -> UserAnswer:
    """Executes an operation of management on the files of users and roles."""
    # Management does this seldom, and on a thread.
    from atalanta.app.user_files import operate_users

    return operate_users(configuration, operation)


def ports(
    shell: Shell,
    disk: Disk,
    large: LargeFiles,
    seat: ReplicationSeat | None = None,
    colocation: ColocationSeat | None = None,
) -> Ports:
    """Returns the shell's implementations of all ports."""
    return Ports(
        wire=shell.connections,
        disk=disk,
        timers=shell.timers,
        links=shell.links,
        ids=shell.ids,
        trace=shell.trace,
        passwords=shell.passwords,
        directories=shell.directories,
        large=large,
        process=shell,
        replication=seat,
        colocation=colocation,
    )
