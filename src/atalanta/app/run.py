"""The run of a node: from its broker.xml to its end.

Each reason against a start becomes a StartupError: an exit status and readable lines.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atalanta.app.configuration_files import read_files, read_usable
from atalanta.app.node_config import node_config
from atalanta.app.running_node import Ready, bound_shell, run_node
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage, open_storage
from atalanta.app.web import start_web
from atalanta.config.checks.cluster_connections import password_warnings
from atalanta.config.configuration import Configuration
from atalanta.config.problems import grouped
from atalanta.ha.policy import REPLICATION, SHARED_STORE
from atalanta.kernel.security.security import Security
from atalanta.runtime.lifecycle.reloader import ReloadRefused
from atalanta.runtime.network_check.check import network_check
from atalanta.runtime.network_check.guard import NetworkGuard
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.event_loop import run
from atalanta.runtime.process.logs import log_event

if TYPE_CHECKING:
    from atalanta.app.colocation.hosted_backups import HostedBackups
    from atalanta.ha.policy_elements import HostedBackup
    from atalanta.web.server import WebServer

log = logging.getLogger("atalanta.app")


def run_broker(
    broker_xml: Path,
    ready: Ready,
    web: str | None = None,
    guarded: bool = True,
    hosted: HostedBackup | None = None,
    alone: bool = False,
) -> int:
    """Runs one node in the foreground, from its files to its end. Returns the exit status, or raises StartupError.

    `web` is host:port of the HTTP server for metrics and health, None for none. With `guarded` a node of a replicated
    group gets a guard (runtime/ha/guard): the calling process only waits then, and the node runs in a process below it.
    `hosted`: the node is a backup that the node of these files hosts. `alone`: see read_broker_xml.
    """
    configuration, security = read_files(broker_xml, from_command_line=hosted is None, hosted=hosted, alone=alone)
    for warning in [*configuration.warnings, *password_warnings(configuration)]:
        log_event(log, "configuration_warning", {"why": warning})
    tell_unsupported(configuration)
    line = None
    if configuration.ha.form == REPLICATION and configuration.ha.manager is not None:
        from atalanta.app.guard import start_guard_of

        line = start_guard_of(configuration, guarded)
    if configuration.ha.form == SHARED_STORE:
        # Most nodes do without these modules.
        from atalanta.app.shared_store import open_store, serve_store

        store = open_store(configuration)
        colocated = hosted_backups(configuration, guarded)
        return run(beside(colocated, serve_store(configuration, security, store, ready, web, colocated)))
    if configuration.ha.form == REPLICATION and configuration.ha.manager is not None:
        from atalanta.app.group.member import open_member
        from atalanta.app.group.runs import serve_group

        folder = open_member(configuration)
        try:
            colocated = hosted_backups(configuration, guarded)
            return run(beside(colocated, serve_group(configuration, security, folder, line, ready, web, colocated)))
        finally:
            folder.close()
    storage = open_storage(configuration)
    try:
        return run(serve(configuration, security, storage, ready, web))
    finally:
        storage.close()


def hosted_backups(configuration: Configuration, guarded: bool) -> HostedBackups | None:
    """Returns the backups that this process hosts for other members; None if its policy is not colocated."""
    if configuration.ha.colocation is None or not configuration.cluster_connections:
        return None
    from atalanta.app.colocation.hosted_backups import HostedBackups

    return HostedBackups(configuration, configuration.ha.colocation, guarded)


async def beside(colocated: HostedBackups | None, main: Coroutine[Any, Any, int]) -> int:
    """Runs `main`, and the hosted backups while it runs."""
    if colocated is None:
        return await main
    colocated.start()
    try:
        return await main
    finally:
        await colocated.close()


def tell_unsupported(configuration: Configuration) -> None:
    """Logs the acceptors that stay closed, and the options without effect: one warning for the services that are lost,
    one line for harmless options."""
    for closed in configuration.closed_acceptors:
        log_event(
            log,
            "acceptor_closed",
            {
                "acceptor": closed.name,
                "position": f"{closed.file}:{closed.line}",
                "why": closed.why,
                "what_to_do": closed.ways,
            },
        )
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
