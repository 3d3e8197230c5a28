"""Users and roles beside the broker.xml: `artemis-users.properties`, `artemis-roles.properties`.

A user's line is `name = password`, the password plain or `ENC(iterations:salt:hash)`. A role's line is `role =
user1,user2`, as Artemis' PropertiesLoginModule reads them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report, nearest
from atalanta.config.users.bootstrap import BOOTSTRAP_FILE, bootstrap_domain
from atalanta.config.users.login_config import GUESTS, LOGIN_FILE, UserFileNames, read_login_config
from atalanta.config.xml.properties import PropertiesError, PropertyEntry, parse_properties
from atalanta.files.regular import read_regular
from atalanta.kernel.security.login_modules import (
    GUEST,
    PASSWORD,
    SUFFICIENT,
    CertificateUsers,
    LoginChain,
)
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.effective_settings import all_security_rules

if TYPE_CHECKING:
    from atalanta.config.users.logins import LoginSource

USERS_FILE: Final = "artemis-users.properties"
ROLES_FILE: Final = "artemis-roles.properties"
FILE_BYTES_MAX: Final = 16 * 1024 * 1024


def read_security(configuration: Configuration) -> Security:
    """Reads users, roles and rules of the configuration. ConfigError with all problems of both files.

    Without security neither file is needed. With security but without files, only cluster nodes can log in; then
    there is a warning.
    """
    broker = configuration.broker
    security = Security(
        broker.security_enabled,
        broker.cluster_user,
        configuration.accepted_cluster_password,
        broker.wildcard,
        broker.uuid_namespace or broker.temporary_queue_namespace,
    )
    security.set_rules(all_security_rules(broker), broker.literal_match_markers)
    if broker.security_enabled:
        report = Report()
        _read_users(configuration, security, report, "")
        for acceptor in configuration.acceptors:
            domain = acceptor.security_domain
            if domain and domain not in security.domains:
                users = Security(True, security.cluster_user, security.cluster_password)
                security.domains[domain] = users
                _read_users(configuration, users, report, domain)
        report.check()
    return security


def _read_users(
    configuration: Configuration, security: Security, report: Report, domain: str
) -> None:
    folder = configuration.users_folder
    logins = configuration.logins
    if logins is not None and not domain and not logins.domain:
        _take_logins(logins, security, report)
        return
    if logins is not None:
        domain = domain or logins.domain
    elif not domain:
        domain = bootstrap_domain(folder, report, configuration.warnings)
        configuration.files.append(folder / BOOTSTRAP_FILE)
    names = read_login_config(folder, report, configuration.warnings, domain, configuration.values)
    configuration.files.append(folder / LOGIN_FILE)
    roles = _read_passwords(configuration, names, security, report) if names.passwords else {}
    certificates = CertificateUsers()
    if names.subjects and names.subject_roles:
        certificates = read_certificate_users(configuration, names, report)
        for user in certificates.users():
            certificates.roles.setdefault(user, []).extend(_roles_of_all(configuration))
    elif names.guest is None and not names.directories:
        return
    everyone = tuple(_roles_of_all(configuration))
    directories = [replace(each, more_roles=everyone) for each in names.directories]
    configuration.files += [Path(each.trust_store) for each in directories if each.trust_store]
    security.chain = LoginChain(names.modules, certificates, roles, names.guest, directories)
    if names.guest is not None and names.guest.user == configuration.broker.cluster_user:
        text = f"{GUESTS}: '{names.guest.user}' is the cluster's user"
        report.problem(str(folder / LOGIN_FILE), 0, text)


def _take_logins(logins: LoginSource, security: Security, report: Report) -> None:
    """Adds the users of the configuration file itself. A guest is for clients that name no user."""
    roles: dict[str, list[str]] = {}
    for user in logins.users:
        roles[user.name] = list(user.roles)
        try:
            security.add_user(user.name, user.password, user.roles)
        except ValueError as error:
            report.problem(user.file, user.line, f"user '{user.name}': {error}")
    if logins.guest is not None:
        modules = [(PASSWORD, SUFFICIENT), (GUEST, SUFFICIENT)]
        security.chain = LoginChain(modules, CertificateUsers(), roles, logins.guest)


def _roles_of_all(configuration: Configuration) -> list[str]:
    return [] if configuration.logins is None else configuration.logins.roles_of_all()


def _read_passwords(
    configuration: Configuration, names: UserFileNames, security: Security, report: Report
) -> dict[str, list[str]]:
    """Adds users with passwords to `security`. Returns the roles of all names in the role file."""
    folder = configuration.users_folder
    users_path = folder / names.users
    roles_path = folder / names.roles
    configuration.files += [users_path, roles_path]
    users = _last_of_each("user", users_path, configuration, report)
    everyone = _roles_of_all(configuration)
    roles: dict[str, list[str]] = {entry.key: list(everyone) for entry in users}
    unknown: dict[str, list[str]] = {}
    for entry in _last_of_each("role", roles_path, configuration, report):
        for name in (part.strip() for part in entry.value.split(",")):
            if name in roles:
                roles[name].append(entry.key)
            elif name and names.subjects:
                unknown.setdefault(name, []).append(entry.key)
            elif name:
                near = nearest(name, roles)
                configuration.warnings.append(
                    f"{roles_path}:{entry.line}: role '{entry.key}' names '{name}', which is not a user"
                    + (f" ({near})" if near else "")
                )
    for entry in users:
        try:
            security.add_user(entry.key, entry.value, roles[entry.key])
        except ValueError as error:
            report.problem(str(users_path), entry.line, f"user '{entry.key}': {error}")
    return {**roles, **unknown}


def read_certificate_users(
    configuration: Configuration, names: UserFileNames, report: Report
) -> CertificateUsers:
    """Reads `user = CN=…, O=…` or `user = /pattern/` from one file and `role = user1,user2` from the other."""
    found = CertificateUsers()
    folder = configuration.users_folder
    subjects, roles = folder / names.subjects, folder / names.subject_roles
    configuration.files += [subjects, roles]
    for entry in _last_of_each("user", subjects, configuration, report):
        try:
            found.add(entry.key, entry.value)
        except ValueError as error:
            report.problem(str(subjects), entry.line, f"user '{entry.key}': {error}")
    for entry in _last_of_each("role", roles, configuration, report):
        for name in (part.strip() for part in entry.value.split(",")):
            if name:
                found.roles.setdefault(name, []).append(entry.key)
    return found


def read_entries(path: Path, configuration: Configuration, report: Report) -> list[PropertyEntry]:
    try:
        data = read_regular(path, FILE_BYTES_MAX)
    except FileNotFoundError:
        configuration.warnings.append(f"{path} is missing: only the cluster user can log in")
        return []
    except OSError as error:
        report.problem(str(path), 0, f"cannot be read: {error.strerror}")
        return []
    if len(data) > FILE_BYTES_MAX:
        report.problem(str(path), 0, f"the file is larger than {FILE_BYTES_MAX} bytes")
        return []
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # older Java wrote these files in Latin-1
    try:
        return parse_properties(text)
    except PropertiesError as error:
        report.problem(str(path), error.line, error.text)
        return []


def _last_of_each(
    what: str, path: Path, configuration: Configuration, report: Report
) -> list[PropertyEntry]:
    """Returns the entries of a file of users or roles. Of a name that is there twice the last entry counts, as in
    Java's Properties: a warning says so.
    """
    found: dict[str, PropertyEntry] = {}
    for entry in read_entries(path, configuration, report):
        if entry.key in found:
            configuration.warnings.append(
                f"{path}:{entry.line}: {what} '{entry.key}' is there twice: the last one counts"
            )
        found[entry.key] = entry
    return list(found.values())
