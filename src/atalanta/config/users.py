"""Users and roles beside the broker.xml: `artemis-users.properties`, `artemis-roles.properties`.

A user's line is `name = password`, the password plain or `ENC(iterations:salt:hash)`; a role's is
`role = user1,user2`, as Artemis' PropertiesLoginModule reads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from atalanta.config.configuration import Configuration
from atalanta.config.login_config import LOGIN_FILE, read_login_config
from atalanta.config.problems import Report, nearest
from atalanta.config.properties import Entry, PropertiesError, parse_properties
from atalanta.kernel.security import Security

USERS_FILE: Final = "artemis-users.properties"
ROLES_FILE: Final = "artemis-roles.properties"
FILE_BYTES_MAX: Final = 16 * 1024 * 1024


def read_security(configuration: Configuration) -> Security:
    """Users, roles and rules of the configuration. ConfigError with all problems of both files.

    Without security neither file is needed. With it, missing files mean that nobody but the
    cluster can log in: a warning says so.
    """
    broker = configuration.broker
    security = Security(
        broker.security_enabled, broker.cluster_user, broker.cluster_password, broker.wildcard
    )
    markers = broker.literal_match_markers
    for rule in broker.security_rules:
        match = rule.match
        literal = markers is not None and match[:1] == markers[0] and match[-1:] == markers[1]
        security.add_rule(match[1:-1] if literal else match, rule.permissions, literal)
    if broker.security_enabled:
        report = Report()
        _read_users(configuration, security, report)
        report.check()
    return security


def _read_users(configuration: Configuration, security: Security, report: Report) -> None:
    folder = configuration.users_folder
    names = read_login_config(folder, report, configuration.warnings)
    users_path = folder / names.users
    roles_path = folder / names.roles
    configuration.files += [folder / LOGIN_FILE, users_path, roles_path]
    users = _entries(users_path, configuration, report)
    passwords = {entry.key: entry for entry in users}
    if len(passwords) < len(users):
        _report_repeated(users_path, users, report)
    roles: dict[str, list[str]] = {entry.key: [] for entry in users}
    for entry in _entries(roles_path, configuration, report):
        for name in (part.strip() for part in entry.value.split(",")):
            if name in roles:
                roles[name].append(entry.key)
            elif name:
                near = nearest(name, roles)
                configuration.warnings.append(
                    f"{roles_path}:{entry.line}: role '{entry.key}' names '{name}', who is no user"
                    + (f" ({near})" if near else "")
                )
    for entry in users:
        try:
            security.add_user(entry.key, entry.value, roles[entry.key])
        except ValueError as error:
            report.problem(str(users_path), entry.line, f"user '{entry.key}': {error}")


def _entries(path: Path, configuration: Configuration, report: Report) -> list[Entry]:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            report.problem(str(path), 0, f"the file is larger than {FILE_BYTES_MAX} bytes")
            return []
        data = path.read_bytes()
    except FileNotFoundError:
        configuration.warnings.append(f"{path} is missing: nobody but the cluster can log in")
        return []
    except OSError as error:
        report.problem(str(path), 0, f"cannot be read: {error.strerror}")
        return []
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # what Java once wrote
    try:
        return parse_properties(text)
    except PropertiesError as error:
        report.problem(str(path), error.line, error.text)
        return []


def _report_repeated(path: Path, entries: list[Entry], report: Report) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.key in seen:
            report.problem(str(path), entry.line, f"user '{entry.key}' is given twice")
        seen.add(entry.key)
