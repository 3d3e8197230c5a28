"""The run of a node: from its broker.xml to its end.

Each reason against a start becomes a StartupError: an exit status and readable lines.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from atalanta.app.configuration_files import read_files
from atalanta.app.life import Activation, serve
from atalanta.app.lone_activation import LoneActivation
from atalanta.app.running_node import Ready
from atalanta.app.storage import open_storage
from atalanta.config.checks.cluster_connections import password_warnings
from atalanta.config.checks.groups import group_warnings
from atalanta.config.configuration import Configuration
from atalanta.config.problems import grouped
from atalanta.ha.policy import REPLICATION, SHARED_STORE
from atalanta.runtime.process.event_loop import run
from atalanta.runtime.process.logs import log_event

if TYPE_CHECKING:
    from atalanta.app.colocation.hosted_backups import HostedBackups
    from atalanta.ha.policy_elements import HostedBackup
    from atalanta.runtime.ha.guard.line import GuardLine

log = logging.getLogger("atalanta.app")


def run_broker(
    broker_xml: Path,
    ready: Ready,
    web: str | None = None,
    guarded: bool = True,
    hosted: HostedBackup | None = None,
    alone: bool = False,
    console: str | None = None,
) -> int:
    """Runs one node in the foreground, from its files to its end. Returns the exit status, or raises StartupError.

    `web` is host:port of the HTTP server for metrics and health, None for none. With `guarded` a node of a replicated
    group gets a guard (runtime/ha/guard): the calling process only waits then, and the node runs in a process below it.
    `hosted`: the node is a backup that the node of these files hosts. `alone`: see read_broker_xml. `console` is
    host:port of a console beside the node, "" for the usual place, None for what atalanta.toml says.
    """
    configuration, security = read_files(broker_xml, from_command_line=hosted is None, hosted=hosted, alone=alone)
    for warning in [*configuration.warnings, *password_warnings(configuration), *group_warnings(configuration)]:
        log_event(log, "configuration_warning", {"why": warning})
    tell_unsupported(configuration)
    beside = None
    if hosted is None and (console is not None or configuration.own.console is not None):
        from atalanta.app.console import console_of

        beside = console_of(configuration, console, web)
    line = None
    if configuration.ha.form == REPLICATION and configuration.ha.manager is not None:
        from atalanta.app.guard import start_guard_of

        line = start_guard_of(configuration, guarded)
    activation, colocated = activation_of(configuration, guarded, line, ready)
    return run(serve(configuration, security, activation, ready, web, colocated, beside))


def activation_of(
    configuration: Configuration, guarded: bool, line: GuardLine | None, ready: Ready
) -> tuple[Activation, HostedBackups | None]:
    """Returns the way in which the node becomes active, with its opened folders, and the backups that it hosts."""
    # Most nodes do without the modules of the others.
    if configuration.ha.form == SHARED_STORE:
        from atalanta.app.store.activation import SharedStoreActivation

        colocated = hosted_backups(configuration, guarded)
        return SharedStoreActivation(configuration, colocated), colocated
    if configuration.ha.form == REPLICATION and configuration.ha.manager is not None:
        from atalanta.app.group.activation import GroupActivation

        colocated = hosted_backups(configuration, guarded)
        return GroupActivation(configuration, line, ready, colocated), colocated
    return LoneActivation(open_storage(configuration)), None


def hosted_backups(configuration: Configuration, guarded: bool) -> HostedBackups | None:
    """Returns the backups that this process hosts for other members; None if its policy is not colocated."""
    if configuration.ha.colocation is None or not configuration.cluster_connections:
        return None
    from atalanta.app.colocation.hosted_backups import HostedBackups

    return HostedBackups(configuration, configuration.ha.colocation, guarded)


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
