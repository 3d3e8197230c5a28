"""The configuration files of a node, read for a start and for a reload."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from atalanta.app.node_config import node_config
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage
from atalanta.app.transports import listens, secure_connectors
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.restart import needs_restart, reloadable_acceptors, restart_reasons
from atalanta.config.stored_settings import StoredSettingsFile
from atalanta.config.users.users import read_security
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.broker_config import StoredSettings
from atalanta.kernel.settings.settings_change import SettingsChange
from atalanta.runtime.ha.epoch_lost import EpochLost
from atalanta.runtime.lifecycle.reloader import Reloaded, ReloadRefused
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event
from atalanta.tls.context import find_file
from atalanta.tls.errors import TlsError

if TYPE_CHECKING:
    from atalanta.ha.policy_elements import HostedBackup

log = logging.getLogger("atalanta.app")


def read_files(
    broker_xml: Path,
    from_command_line: bool = False,
    stored: StoredSettingsFile | None = None,
    hosted: HostedBackup | None = None,
    alone: bool = False,
    contents: Mapping[Path, bytes] | None = None,
) -> tuple[Configuration, Security]:
    """Reads configuration, users and roles; StartupError has every problem with file and line.

    `stored` is the file of stored settings of a running node, None for that of the configured data folder.
    `hosted`: the node is a backup that the node of these files hosts. `alone`, `contents`: see read_broker_xml.
    """
    try:
        configuration = read_broker_xml(broker_xml, dict(os.environ), from_command_line, alone, contents)
        if hosted is not None:
            from atalanta.config.hosted_backup import hosted_configuration  # few nodes are hosted

            configuration = hosted_configuration(configuration, hosted)
        (stored or StoredSettingsFile.of(configuration)).read(configuration)
        return configuration, read_security(configuration)
    except ConfigError as error:
        lines = [str(problem) for problem in error.problems]
        files = [*(Path(problem.file) for problem in error.problems), *error.files]
        raise StartupError(exit_codes.BAD_CONFIGURATION, lines, files) from error
    except ValueError as error:  # no host any more
        raise StartupError(exit_codes.BAD_CONFIGURATION, [f"{broker_xml}: {error}"], [broker_xml]) from error


def read_again(
    started: Configuration, storage: Storage, contents: Mapping[Path, bytes] | None = None
) -> Reloaded:
    """Returns the parts of the current files that a reload applies; ReloadRefused if a node could not start with
    them. `contents`: see read_broker_xml."""
    return read_usable(started, storage, contents)[2]


def read_usable(
    started: Configuration, storage: Storage, contents: Mapping[Path, bytes] | None = None, tells: bool = True
) -> tuple[Configuration, Security, Reloaded]:
    """Reads the current files; ReloadRefused if a node could not start with them. `tells`: new warnings are logged."""
    try:
        configuration, security = read_files(
            started.path,
            stored=storage.settings,
            hosted=started.ha.hosted,
            alone=started.told_alone,
            contents=contents,
        )
        restart = needs_restart(started, configuration)
        configuration.acceptors = reloadable_acceptors(started, configuration)
        acceptors = listens(configuration)
        connectors = secure_connectors(configuration)
        config = node_config(configuration, security, storage.node_id)
    except StartupError as error:
        raise ReloadRefused(error.lines, error.files) from error
    except TlsError as error:
        raise ReloadRefused([str(error)], watched_files(configuration)) from error
    for warning in configuration.warnings:
        if tells and warning not in started.warnings:
            log_event(log, "configuration_warning", {"why": warning})
    reloaded = Reloaded(
        config,
        watched_files(configuration),
        acceptors,
        connectors,
        restart,
        restart_reasons(restart),
    )
    return configuration, security, reloaded


def change_settings(
    configuration: Configuration, storage: Storage, change: SettingsChange
) -> StoredSettings:
    """Changes the stored settings durably and returns all of them; ReloadRefused if that is not possible.

    With a shared store a successor may have read the file before: then the change is refused, and this node ends.
    """
    try:
        stored = storage.settings.change(configuration, change)
        if storage.epoch is not None:
            storage.epoch.check()
        return stored
    except ConfigError as error:
        raise ReloadRefused([str(problem) for problem in error.problems]) from error
    except EpochLost as lost:
        raise ReloadRefused([str(lost)]) from lost


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
