"""The command `atalanta check`: reads each file like `atalanta run`, then checks all of them together."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
from pathlib import Path

from rich.console import Console
from rich.table import Table

from atalanta.app.node_config import bridge_settings
from atalanta.app.startup_error import StartupError
from atalanta.app.transports import acceptor_tls, secure_connectors
from atalanta.cli.instance.newest_epoch import check_marks, is_served, newest_journal
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.checks.findings import (
    ERROR,
    INFORMATION,
    WARNING,
    CheckedNode,
    Finding,
    Findings,
)
from atalanta.config.checks.nodes import check_nodes
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError, nearest
from atalanta.config.stored_settings import STORED_SETTINGS_NAME, StoredSettingsFile
from atalanta.config.users.users import read_security
from atalanta.kernel.settings.settings_change import ADDRESS_SETTING, SECURITY_SETTING
from atalanta.runtime.disk.data_folder import read_node_id
from atalanta.runtime.disk.folder_lock import DataFolderError, is_locked
from atalanta.tls.errors import TlsError

STYLES = {ERROR: "bold red", WARNING: "yellow", INFORMATION: "dim"}


def check_files(paths: list[Path], alone: bool = False) -> list[Finding]:
    """Returns all findings, in the order of the files. `alone`: as of `atalanta run`."""
    findings = Findings()
    nodes: list[CheckedNode] = []
    for path in paths:
        node = read_node(path, findings, alone)
        if node is not None:
            nodes.append(node)
    check_nodes(nodes, findings)
    return list(dict.fromkeys(findings.found))


def read_node(path: Path, findings: Findings, alone: bool = False) -> CheckedNode | None:
    """Reads one node and adds the messages that `atalanta run` would print; None if it would not start."""
    try:
        configuration = read_broker_xml(path, dict(os.environ), from_command_line=True, alone=alone)
        stored_settings_file(configuration).read(configuration)
    except ConfigError as error:
        _problems(error, findings)
        return None
    node = CheckedNode(configuration)
    try:
        node.security = read_security(configuration)
    except ConfigError as error:
        _problems(error, findings)
    for warning in configuration.warnings:
        place = re.match(rf"{re.escape(str(path))}:(?:(\d+):)? ", warning)
        text = warning if place is None else warning[place.end() :]
        findings.found.append(Finding(WARNING, str(path), int(place[1] or 0) if place else 0, text))
    _tell_unsupported(node, findings)
    _tell_stored(node, findings)
    _check_roles(node, findings)
    _check_ports(node, findings)
    try:
        if configuration.broker.persistence_enabled:  # else it has no folder
            node.node_id = str(read_node_id(configuration.journal_folder) or "") or None
        check_marks(configuration)
    except DataFolderError as error:
        findings.about(ERROR, node, str(error))
    _check_tls(node, findings)
    try:
        bridge_settings(configuration)
    except StartupError as error:
        for line in error.lines:
            findings.about(ERROR, node, line)
    return node


def stored_settings_file(configuration: Configuration) -> StoredSettingsFile:
    """Returns the file of the node's last run."""
    if not configuration.broker.persistence_enabled:
        return StoredSettingsFile(None)
    return StoredSettingsFile(newest_journal(configuration) / STORED_SETTINGS_NAME)


def _problems(error: ConfigError, findings: Findings) -> None:
    for problem in error.problems:
        findings.found.append(
            Finding(ERROR, problem.file, problem.line, problem.text, problem.hint)
        )


def _tell_unsupported(node: CheckedNode, findings: Findings) -> None:
    """Adds an error for each acceptor that stays closed, a warning for each other lost service, and one line for all
    harmless options."""
    for closed in node.configuration.closed_acceptors:
        text = f"acceptor '{closed.name}': {closed.why}"
        findings.found.append(Finding(ERROR, closed.file, closed.line, text, closed.ways))
    harmless = []
    for each in node.configuration.unsupported:
        if each.lost:
            text = f"without effect: {each.name} ({each.why})"
            findings.found.append(Finding(WARNING, each.file, each.line, text))
        else:
            harmless.append(each.name)
    if harmless:
        names = ", ".join(dict.fromkeys(harmless))
        text = f"{len(harmless)} harmless options without effect: {names}"
        findings.about(INFORMATION, node, text)


def _tell_stored(node: CheckedNode, findings: Findings) -> None:
    """Adds a line for each setting that management operations made, and that replaces what broker.xml says."""
    broker = node.configuration.broker
    written = [f"{ADDRESS_SETTING} '{each.match}'" for each in broker.address_settings]
    written += [f"{SECURITY_SETTING} '{each.match}'" for each in broker.security_rules]
    for kind, name in node.configuration.positions:
        if kind == "stored":
            instead = ", instead of that of broker.xml" if name in written else ""
            findings.add(INFORMATION, node, kind, name, f"{name} was made by management{instead}")


def _check_roles(node: CheckedNode, findings: Findings) -> None:
    """Adds a warning for each role with permissions that no user of the login files has."""
    security = node.security
    if security is None or not security.enabled:
        return
    held: set[str] = set()
    for users in (security, *security.domains.values()):
        held.update(role for user in users.users.values() for role in user.roles)
        chain = users.chain
        if chain is not None:
            held.update(role for roles in chain.certificates.roles.values() for role in roles)
            if chain.directories:
                return  # they know what roles there are
            if chain.guest is not None:
                held.add(chain.guest.role)
    if not held:
        return  # the missing files are a finding already
    for (kind, role), (file, line) in node.configuration.positions.items():
        if kind == "role" and role not in held:
            near = nearest(role, held)
            text = f"permissions for role '{role}', which no user has"
            findings.found.append(Finding(WARNING, file, line, text, near))


def _check_ports(node: CheckedNode, findings: Findings) -> None:
    """Adds a warning for each acceptor whose port another process of this machine has now."""
    configuration = node.configuration
    journal = configuration.journal_folder
    if is_locked(journal) or is_locked(journal.parent) or is_served(configuration):
        return  # the node itself runs, and has its ports
    for acceptor in configuration.acceptors:
        if acceptor.port and port_taken(acceptor.host, acceptor.port):
            text = f"acceptor '{acceptor.name}' would not open: another process has port {acceptor.port}"
            hint = "on this machine, now"
            findings.add(WARNING, node, "acceptor", acceptor.name, text, hint)


def port_taken(host: str, port: int) -> bool:
    """Returns whether the port is in use, without a resolver; False for an address of another machine."""
    address = "127.0.0.1" if host == "localhost" else host or "0.0.0.0"
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the acceptor
            if ":" in address:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            ipaddress.ip_address(address)
            probe.bind((address, port))
    except ValueError:  # a host name
        return False
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


def _check_tls(node: CheckedNode, findings: Findings) -> None:
    configuration = node.configuration
    prefix = f"{configuration.path}: "
    for acceptor in configuration.acceptors:
        try:
            acceptor_tls(configuration, acceptor)
        except TlsError as error:
            text = str(error).removeprefix(prefix)
            findings.add(ERROR, node, "acceptor", acceptor.name, text)
    try:
        secure_connectors(configuration)
    except TlsError as error:
        findings.about(ERROR, node, str(error).removeprefix(prefix))


def grouped_by_text(found: list[Finding]) -> list[tuple[Finding, list[str]]]:
    """Groups equal findings of several files, with their positions; the worst first."""
    order = [ERROR, WARNING, INFORMATION]
    groups: dict[tuple[str, str, str], tuple[Finding, list[str]]] = {}
    for each in sorted(found, key=lambda finding: order.index(finding.level)):
        _, positions = groups.setdefault((each.level, each.text, each.hint), (each, []))
        if each.position():
            positions.append(each.position())
    return list(groups.values())


def show(found: list[Finding], files: int) -> None:
    """Prints a table, the worst first, and a line with the counts."""
    console = Console()
    if found:
        table = Table("level")
        table.add_column("where", overflow="fold")
        table.add_column("what", overflow="fold")
        folder = common_folder(found)
        if folder is not None:
            console.print(f"in {folder}:", highlight=False, markup=False, soft_wrap=True)
        here = f"{folder or Path.cwd()}/"
        for each, positions in grouped_by_text(found):
            what = f"{each.text}\n({each.hint})" if each.hint else each.text
            where = "\n".join(position.removeprefix(here) for position in positions)
            table.add_row(
                f"[{STYLES[each.level]}]{each.level}[/]",
                _plain(where),
                _plain(what.replace(here, "")),
            )
        console.print(table)
    counts = [sum(each.level == level for each in found) for level in (ERROR, WARNING)]
    console.print(f"files: {files}, errors: {counts[0]}, warnings: {counts[1]}", highlight=False)


def common_folder(found: list[Finding]) -> Path | None:
    """Returns the common folder of all files with findings, to shorten paths; None below the working folder."""
    folders = [os.path.dirname(os.path.abspath(each.file)) for each in found if each.position()]
    folder = Path(os.path.commonpath(folders)) if folders else Path.cwd()
    below = folder.is_relative_to(Path.cwd())
    return None if below or len(folder.parts) < 2 else folder


def _plain(text: str) -> str:
    """Escapes text of the files, which is not markup."""
    return text.replace("[", "\\[")
