"""The run of a node: from its broker.xml to its end.

Each reason against a start becomes a StartupError: an exit status and readable lines.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from atalanta.app.configuration_files import (
    change_settings,
    read_again,
    read_files,
    read_usable,
    watched_files,
)
from atalanta.app.node_config import node_config
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage, open_storage
from atalanta.app.transports import listens, secure_connectors
from atalanta.app.user_files import operate_users
from atalanta.app.web import start_web
from atalanta.config.checks.cluster_connections import password_warnings
from atalanta.config.configuration import Configuration
from atalanta.config.problems import grouped
from atalanta.kernel.ports import Disk, LargeFiles
from atalanta.kernel.security.security import Security
from atalanta.message.encoding.buffer import DecodeError
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import Node
from atalanta.runtime.disk.disk import FileDisk
from atalanta.runtime.disk.memory_disk import MemoryDisk
from atalanta.runtime.lifecycle.critical_analyzer import critical_analyzer
from atalanta.runtime.lifecycle.graceful_shutdown import GracefulShutdown
from atalanta.runtime.lifecycle.lifecycle import Lifecycle
from atalanta.runtime.lifecycle.reloader import Reloader, ReloadRefused
from atalanta.runtime.net.limits import limits_of_this_process
from atalanta.runtime.network_check.check import network_check
from atalanta.runtime.network_check.guard import NetworkGuard
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.event_loop import run
from atalanta.runtime.process.logs import log_event
from atalanta.runtime.shell import Shell
from atalanta.store.errors import JournalDamaged, JournalForeign
from atalanta.tls.errors import TlsError

if TYPE_CHECKING:
    from atalanta.web.server import WebServer

log = logging.getLogger("atalanta.app")

Ready = Callable[[list[str]], None]


def run_broker(broker_xml: Path, ready: Ready, web: str | None = None) -> int:
    """Runs one node in the foreground, from its files to its end. Returns the exit status, or raises StartupError.

    `web` is host:port of the HTTP server for metrics and health, None for none.
    """
    configuration, security = read_files(broker_xml, from_command_line=True)
    for warning in [*configuration.warnings, *password_warnings(configuration)]:
        log_event(log, "configuration_warning", {"why": warning})
    tell_unsupported(configuration)
    storage = open_storage(configuration)
    try:
        return run(serve(configuration, security, storage, ready, web))
    finally:
        storage.close()


def tell_unsupported(configuration: Configuration) -> None:
    """Logs the options without effect: one warning for the services that are lost, one line for harmless options."""
    lost = [each for each in configuration.unsupported if each.lost]
    harmless = [each.name for each in configuration.unsupported if not each.lost]
    if lost:
        log_event(log, "option_without_effect", {"lost": "; ".join(grouped(lost))})
    if harmless:
        names = "; ".join(dict.fromkeys(harmless))
        log_event(log, "harmless_options", {"count": len(harmless), "options": names})


async def serve(
    configuration: Configuration,
    security: Security,
    storage: Storage,
    ready: Ready,
    web: str | None = None,
) -> int:
    """Runs the node in the running loop and returns the exit status. With a network check the node may stop and
    start again several times."""
    loop = asyncio.get_running_loop()
    server = await start_web(web) if web is not None else None
    check = network_check(loop, configuration.network_check)
    try:
        if check is None:
            return await live(configuration, security, storage, ready, server)
        guard = NetworkGuard(loop, check, configuration.network_check.period_ms / 1_000)
        if server is not None:
            guard.on_change = server.network_changed
        lives = NodeRuns(configuration, security, storage, ready, server, guard)
        return await guard.run(lives.next)
    finally:
        if server is not None:
            await server.stop()


@dataclass
class NodeRuns:
    """The parameters of each start of a node that the network check stops and starts."""

    configuration: Configuration
    security: Security
    storage: Storage
    ready: Ready
    server: WebServer | None
    guard: NetworkGuard
    begun: int = 0

    async def next(self) -> int | None:
        """Runs the node once with the current files, or with the earlier ones if these have problems.

        Returns None if the node cannot start (its port is in use, a key store is being written). The data folder
        stays open.
        """
        self.begun += 1
        first = self.begun == 1
        if not first:
            await self._read_again()
        try:
            return await live(
                self.configuration,
                self.security,
                self.storage,
                self.ready if first else lambda words: None,
                self.server,
                self.guard,
            )
        except StartupError as error:
            if first or error.status not in (exit_codes.UNAVAILABLE, exit_codes.BAD_CONFIGURATION):
                raise
            log_event(log, "network_start_failed", {"why": " ".join(error.lines)})
            return None

    async def _read_again(self) -> None:
        persistent = self.configuration.broker.persistence_enabled
        try:
            usable = await asyncio.to_thread(read_usable, self.configuration, self.storage)
        except ReloadRefused as error:
            for line in error.lines:
                log_event(log, "reload_refused", {"why": line})
        else:
            self.configuration, self.security, _ = usable
            self.configuration.broker.persistence_enabled = persistent


async def live(
    configuration: Configuration,
    security: Security,
    storage: Storage,
    ready: Ready,
    server: WebServer | None,
    guard: NetworkGuard | None = None,
) -> int:
    """Builds the node and runs it to its end. Returns the exit status."""
    # Steps that may be refused come before the ports are bound.
    config = node_config(configuration, security, storage.node_id)
    shell = bound_shell(configuration, signals=guard is None)
    if guard is not None:
        guard.born(shell)
    return await run_node(shell, config, configuration, storage, ready, server)


def bound_shell(configuration: Configuration, signals: bool) -> Shell:
    """Returns a shell whose ports are bound, in the running loop. StartupError names what cannot be used."""
    shell = Shell(asyncio.get_running_loop(), limits_of_this_process(), signals=signals)
    try:
        shell.links.secure(secure_connectors(configuration))
        shell.bind(listens(configuration))
    except TlsError as error:
        raise StartupError(exit_codes.BAD_CONFIGURATION, [str(error)]) from error
    except OSError as error:
        raise StartupError(exit_codes.UNAVAILABLE, [error.strerror or str(error)]) from error
    return shell


async def run_node(
    shell: Shell,
    config: NodeConfig,
    configuration: Configuration,
    storage: Storage,
    ready: Ready,
    server: WebServer | None,
) -> int:
    """Runs the node of a bound shell to its end. Returns the exit status."""
    broker = configuration.broker
    disk = storage.disk(shell.loop, shell.driver, configuration.own.commits_in_loop)
    large = storage.large_files(
        shell.loop,
        shell.driver,
        broker.global_max_size_bytes,
        configuration.journal.large_message_sync,
    )
    if storage.folder is not None:
        shell.watch_disk(storage.folder.journal, broker.disk_scan_period_ms / 1_000, storage.reserve)
    node = Node(config, ports(shell, disk, large))
    log_event(
        log,
        "node_starting",
        {"node_id": storage.node_id, "name": broker.name, "configuration": configuration.path},
    )
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
    reloader = Reloader(
        shell.loop,
        shell.trace,
        lambda: read_again(configuration, storage),
        shell.apply,
        watched_files(configuration),
        broker.configuration_file_refresh_period_ms / 1_000,
    )
    graceful_shutdown = None
    if broker.graceful_shutdown_enabled:
        graceful_shutdown = GracefulShutdown(
            broker.graceful_shutdown_timeout_ms, node.broker.clients.client_count
        )
    return Lifecycle(
        reloader,
        lambda operation: operate_users(configuration, operation),
        critical_analyzer(shell.loop, shell.request_stop, broker, lambda: disk.busy_since),
        node.scale_down,
        graceful_shutdown,
        node.arriving,
        lambda change: change_settings(configuration, storage, change),
    )


def ports(shell: Shell, disk: Disk, large: LargeFiles) -> Ports:
    """Returns the shell's implementations of all ports."""
    return Ports(
        wire=shell.connections,
        disk=disk,
        timers=shell.timers,
        links=shell.links,
        ids=shell.ids,
        trace=shell.trace,
        passwords=shell.passwords,
        large=large,
        process=shell,
    )
