"""The composition root: creates configuration, ports, node and shell from a broker.xml, and runs them.

Besides the commands it is the only module that imports all others. Each reason against a start becomes a
StartupError here: an exit status and readable lines.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from atalanta.cluster.core_bridges.config import BridgeSettings
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.native.toml_file import own_file
from atalanta.config.problems import ConfigError
from atalanta.config.restart_needed import needs_restart
from atalanta.config.sections.connection_routers import routers_config
from atalanta.config.users.users import read_security
from atalanta.kernel.ports import Disk, LargeFiles
from atalanta.kernel.security.security import Security
from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.encoding.digits import all_digits
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import Node
from atalanta.runtime.disk.data_folder import (
    DataFolder,
    DataFolderError,
    make_folder,
    open_data_folder,
)
from atalanta.runtime.disk.disk import FileDisk
from atalanta.runtime.disk.large_files import FolderLargeFiles
from atalanta.runtime.disk.memory_disk import MemoryDisk
from atalanta.runtime.disk.memory_large_files import MemoryLargeFiles
from atalanta.runtime.ids import SystemIds
from atalanta.runtime.lifecycle.critical_analyzer import critical_analyzer
from atalanta.runtime.lifecycle.graceful_shutdown import ClientsLeaving
from atalanta.runtime.lifecycle.reloader import Reloaded, Reloader, ReloadRefused
from atalanta.runtime.net.acceptor import Listen
from atalanta.runtime.net.limits import limits_of_this_process
from atalanta.runtime.network_check.check import network_check
from atalanta.runtime.network_check.guard import NetworkGuard
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.callables import CallableError, load_callable
from atalanta.runtime.process.event_loop import run
from atalanta.runtime.process.logs import log_event
from atalanta.runtime.shell import Shell
from atalanta.store.errors import JournalDamaged, JournalForeign
from atalanta.store.pages import NAME_PREFIX
from atalanta.tls.context import ClientTls, client_tls, find_file, server_context
from atalanta.tls.errors import TlsError
from atalanta.wire.core.config import AcceptorConfig

if TYPE_CHECKING:
    from atalanta.web.server import WebServer

log = logging.getLogger("atalanta.app")

Ready = Callable[[list[str]], None]


class StartupError(Exception):
    """The node cannot start: `status` for the process, `lines` for stderr. `files` are the files with problems."""

    def __init__(self, status: int, lines: Sequence[str], files: Sequence[Path] = ()) -> None:
        super().__init__("\n".join(lines))
        self.status = status
        self.lines = list(lines)
        self.files = list(files)


@dataclass
class Storage:
    """The folder of a node's journal; `folder` is None for a node that keeps everything in memory."""

    node_id: uuid.UUID
    folder: DataFolder | None
    pages: Path | None = None
    large: Path | None = None

    def disk(self, shell: Shell, configuration: Configuration) -> FileDisk | MemoryDisk:
        """Returns the Disk port for `shell`'s node, and starts its monitoring."""
        driver = shell.driver
        if self.folder is None:
            shell.analyzer = critical_analyzer(shell, configuration.broker, lambda: 0.0)
            return MemoryDisk(shell.loop.call_soon, driver.committed)
        soon = shell.loop.call_soon_threadsafe
        elsewhere = {} if self.pages is None else {NAME_PREFIX: self.pages}
        disk = FileDisk(
            self.folder.journal, soon, driver.committed, driver.disk_failed, elsewhere
        )
        if configuration.own.commits_in_loop:
            disk.commit_at_turn_end()
            driver.disk_at_turn_end(disk)
        shell.analyzer = critical_analyzer(shell, configuration.broker, lambda: disk.busy_since)
        return disk

    def large_files(
        self, shell: Shell, configuration: Configuration
    ) -> FolderLargeFiles | MemoryLargeFiles:
        """Returns the LargeFiles port for `shell`'s node."""
        driver = shell.driver
        if self.large is None:
            return MemoryLargeFiles(
                configuration.broker.global_max_size_bytes,
                shell.loop.call_soon,
                driver.large_written,
                driver.large_synced,
                driver.large_failed,
                driver.large_read,
            )
        return FolderLargeFiles(
            self.large,
            shell.loop.call_soon_threadsafe,
            driver.large_written,
            driver.large_synced,
            driver.large_failed,
            driver.large_read,
            configuration.journal.large_message_sync,
        )

    def close(self) -> None:
        """Releases the folder for other processes."""
        if self.folder is not None:
            self.folder.close()


def run_broker(broker_xml: Path, ready: Ready, web: str | None = None) -> int:
    """Runs one node in the foreground, from its files to its end. Returns the exit status, or raises StartupError.

    `web` is host:port of the HTTP server for metrics and health, None for none.
    """
    configuration, security = read_files(broker_xml, from_command_line=True)
    for warning in configuration.warnings:
        log_event(log, "configuration_warning", {"why": warning})
    for each in configuration.unsupported:
        place = f"{each.file}:{each.line}"
        log_event(log, "option_without_effect", {"at": place, "option": each.name, "why": each.why})
    storage = open_storage(configuration)
    try:
        return run(serve(configuration, security, storage, ready, web))
    finally:
        storage.close()


def read_files(broker_xml: Path, from_command_line: bool = False) -> tuple[Configuration, Security]:
    """Reads configuration, users and roles; StartupError has every problem with file and line."""
    try:
        configuration = read_broker_xml(broker_xml, dict(os.environ), from_command_line)
        return configuration, read_security(configuration)
    except ConfigError as error:
        lines = [str(problem) for problem in error.problems]
        files = [*(Path(problem.file) for problem in error.problems), *error.files]
        raise StartupError(exit_codes.BAD_CONFIGURATION, lines, files) from error


def open_storage(configuration: Configuration) -> Storage:
    """Opens and locks the data folder and reads its node id.

    The folder is the journal's own: nodes may share a parent folder, never a journal.
    """
    new_id = SystemIds().uuid
    if not configuration.broker.persistence_enabled:
        return Storage(uuid.UUID(bytes=new_id()), None)
    path = configuration.journal_folder
    try:
        folder = open_data_folder(path, new_id, path)
        pages = configuration.paging_folder / str(folder.node_id)
        make_folder(pages)
        large = configuration.large_messages_folder / str(folder.node_id)
        make_folder(large)
    except DataFolderError as error:
        raise StartupError(exit_codes.FOLDER_TAKEN, [str(error)]) from error
    except OSError as error:
        line = f"the data folder {path} cannot be used: {error}"
        raise StartupError(exit_codes.DISK_FAILED, [line]) from error
    return Storage(folder.node_id, folder, pages, large)


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
    shell = Shell(asyncio.get_running_loop(), limits_of_this_process())
    # Steps that may be refused come before the ports are bound.
    config = node_config(configuration, security, storage)
    try:
        shell.links.secure(secure_connectors(configuration))
        shell.bind(listens(configuration))
    except TlsError as error:
        raise StartupError(exit_codes.BAD_CONFIGURATION, [str(error)]) from error
    except OSError as error:
        raise StartupError(exit_codes.UNAVAILABLE, [error.strerror or str(error)]) from error
    disk = storage.disk(shell, configuration)
    large = storage.large_files(shell, configuration)
    if storage.folder is not None:
        shell.watch_disk(storage.folder.journal, configuration.broker.disk_scan_period_ms / 1_000)
    node = Node(config, ports(shell, disk, large))
    shell.reloader = reloader(shell, configuration, storage)
    name = configuration.broker.name
    log_event(
        log,
        "node_starting",
        {"node_id": storage.node_id, "name": name, "configuration": configuration.path},
    )
    attach_scale_down(shell, node)
    shell.arriving = node.arriving
    if configuration.broker.graceful_shutdown_enabled:
        shell.clients_leaving = ClientsLeaving(
            configuration.broker.graceful_shutdown_timeout_ms, node.broker.clients.client_count
        )
    if guard is not None:
        guard.born(shell)
    more = []
    if server is not None:
        server.show(node.management)
        more = [f"web={server.address}"]
    try:
        return await shell.run(node, disk, lambda words: ready([*words, *more]))
    except (JournalDamaged, JournalForeign, DecodeError) as error:
        place = storage.folder.journal if storage.folder is not None else "memory"
        line = f"the journal in {place} cannot be read: {error}"
        raise StartupError(exit_codes.BAD_DATA, [line]) from error
    finally:
        large.close()
        if server is not None:
            server.show(None)


def attach_scale_down(shell: Shell, node: Node) -> None:
    """Connects the scale-down: a stop may include it, and its end stops the node."""
    part = node.scale_down
    if part is None:
        return

    def over() -> None:
        if part.frozen:
            shell.loop.call_later(part.linger_ns / 1e9, shell.request_stop, "the node has left")

    part.on_frozen = shell.accept_no_more
    part.on_over = over
    shell.departing = part


async def start_web(place: str) -> WebServer:
    """Starts the HTTP server at `place` (host:port). The server answers "not ready" until it has a node that is
    ready."""
    try:
        from atalanta.web.server import WebServer
    except ImportError as error:
        line = f"--web needs more packages: pip install 'atalanta[web]' ({error})"
        raise StartupError(exit_codes.BAD_CONFIGURATION, [line]) from error
    host, separator, port = place.rpartition(":")
    if not separator or not all_digits(port, 5) or int(port) > 65_535:
        line = f"--web {place}: not host:port, such as 127.0.0.1:8161"
        raise StartupError(exit_codes.BAD_CONFIGURATION, [line])
    server = WebServer(None, host.strip("[]"), int(port))
    try:
        await server.start()
    except OSError as error:
        await server.stop()
        line = f"--web {place}: {error.strerror or error}"
        raise StartupError(exit_codes.UNAVAILABLE, [line]) from error
    return server


def reloader(shell: Shell, started: Configuration, storage: Storage) -> Reloader:
    """Creates the reloader for SIGHUP and changed files."""
    return Reloader(
        shell.loop,
        shell.trace,
        lambda: read_again(started, storage),
        shell.apply,
        watched_files(started),
        started.broker.configuration_file_refresh_period_ms / 1_000,
    )


def read_again(started: Configuration, storage: Storage) -> Reloaded:
    """Returns the parts of the current files that a reload applies; ReloadRefused if a node could not start with
    them."""
    return read_usable(started, storage)[2]


def read_usable(
    started: Configuration, storage: Storage
) -> tuple[Configuration, Security, Reloaded]:
    """Reads the current files; ReloadRefused if a node could not start with them."""
    try:
        configuration, security = read_files(started.path)
        acceptors = {
            acceptor.name: made
            for acceptor in configuration.acceptors
            if (made := acceptor_tls(configuration, acceptor)) is not None
        }
        connectors = secure_connectors(configuration)
        config = node_config(configuration, security, storage)
    except StartupError as error:
        raise ReloadRefused(error.lines, error.files) from error
    except TlsError as error:
        raise ReloadRefused([str(error)], watched_files(configuration)) from error
    for warning in configuration.warnings:
        if warning not in started.warnings:
            log_event(log, "configuration_warning", {"why": warning})
    reloaded = Reloaded(
        config,
        watched_files(configuration),
        acceptors,
        connectors,
        needs_restart(started, configuration),
    )
    return configuration, security, reloaded


def watched_files(configuration: Configuration) -> list[Path]:
    """Returns all files that a reload reads: broker.xml with its includes, users, key and trust stores."""
    files = list(configuration.files)
    described = [acceptor.tls for acceptor in configuration.acceptors]
    described += [connector.tls for connector in configuration.connectors.values()]
    for tls in described:
        if tls is not None:
            for text in (tls.key_store_path, tls.trust_store_path, tls.crl_path):
                if text:
                    files.append(find_file(text, configuration.store_folders))
    return list(dict.fromkeys(files))


def node_config(configuration: Configuration, security: Security, storage: Storage) -> NodeConfig:
    """Returns the configuration of the node itself."""
    return NodeConfig(
        node_id=str(storage.node_id),
        broker=configuration.broker,
        settings=configuration.address_settings(),
        security=security,
        journal=configuration.journal.journal_config(storage.node_id.bytes),
        acceptors=configuration.acceptors,
        cluster=configuration.cluster_settings(),
        own=configuration.own,
        grouping=configuration.grouping,
        bridges=bridge_settings(configuration),
        routers=routers_config(configuration),
    )


def bridge_settings(configuration: Configuration) -> BridgeSettings:
    """Returns the bridges with the Python functions that atalanta.toml names; StartupError if one cannot be loaded."""
    settings = configuration.bridge_settings()
    for name, own in configuration.own.bridges.items():
        if own.transformer is None:
            continue
        try:
            settings.transforms[name] = load_callable(own.transformer, configuration.users_folder)
        except CallableError as error:
            line = f"{own_file(configuration.path)}: [bridges.{name}] transformer: {error}"
            raise StartupError(exit_codes.BAD_CONFIGURATION, [line]) from error
    return settings


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
        reload=shell.request_reload,
    )


def listens(configuration: Configuration) -> list[Listen]:
    """Returns the acceptors that open at start. TlsError names acceptor and parameter."""
    return [
        Listen(
            acceptor.name,
            acceptor.host,
            acceptor.port,
            connections_max=acceptor.connections_allowed,
            backlog=acceptor.backlog or Listen.backlog,
            send_buffer_bytes=acceptor.tcp_send_buffer_bytes,
            receive_buffer_bytes=acceptor.tcp_receive_buffer_bytes,
            no_delay=acceptor.tcp_no_delay,
            tls=acceptor_tls(configuration, acceptor),
            handshake_timeout_s=acceptor.handshake_timeout_s,
        )
        for acceptor in configuration.acceptors
        if acceptor.auto_start
    ]


def acceptor_tls(configuration: Configuration, acceptor: AcceptorConfig) -> ssl.SSLContext | None:
    """Returns the TLS context; None without `sslEnabled`."""
    if acceptor.tls is None:
        return None
    try:
        return server_context(acceptor.tls, configuration.store_folders)
    except TlsError as error:
        raise TlsError(f"{configuration.path}: acceptor '{acceptor.name}': {error}") from error


def secure_connectors(configuration: Configuration) -> dict[str, ClientTls]:
    """Returns the connectors with `sslEnabled`, by name. TlsError names connector and parameter.

    If no other element dials an unusable connector, it is left out: it may only be announced. A bridge created
    by management uses the others.
    """
    made: dict[str, ClientTls] = {}
    dials = configuration.cluster_connections or configuration.bridges or configuration.routers
    for name, connector in configuration.connectors.items():
        if connector.tls is not None:
            try:
                made[name] = client_tls(connector.tls, configuration.store_folders)
            except TlsError as error:
                if not dials:
                    continue
                raise TlsError(f"{configuration.path}: connector '{name}': {error}") from error
    return made
