"""The users of an activemq.xml as the files that Artemis reads: artemis-users.properties and the others."""

from __future__ import annotations

from os.path import realpath
from pathlib import Path
from typing import Final

from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report
from atalanta.config.users.login_config import (
    GUEST_ROLE_OPTION,
    GUEST_USER_OPTION,
    GUESTS,
    LOGIN_FILE,
    NAMELESS_OPTION,
    PROPERTIES,
    ROLE_OPTION,
    STRICT_OPTION,
    USER_OPTION,
    read_login_config,
)
from atalanta.config.users.logins import LoginSource
from atalanta.config.users.users import ROLES_FILE, USERS_FILE, read_entries
from atalanta.config.xml.properties import property_line
from atalanta.kernel.security.login_modules import PASSWORD, Guest

ARTEMIS: Final = "org.apache.activemq.artemis.spi.core.security.jaas."


def user_files(logins: LoginSource, path: Path, report: Report) -> dict[str, str]:
    """Returns the texts of the files, by name. Users of a directory or with certificates are left out, with a line."""
    passwords: dict[str, str] = {each.name: each.password for each in logins.users}
    roles: dict[str, list[str]] = {}
    for user in logins.users:
        for role in user.roles:
            roles.setdefault(role, []).append(user.name)
    if logins.domain and not _from_files(logins, path, report, passwords, roles):
        why = "copy it and the files it names: it has other login modules than that of properties files"
        report.without_effect(str(path), 0, LOGIN_FILE, why, True)
        return {}
    found = {
        USERS_FILE: "".join(f"{property_line(name, text)}\n" for name, text in passwords.items()),
        ROLES_FILE: "".join(f"{property_line(role, ','.join(names))}\n" for role, names in roles.items()),
    }
    if logins.guest is not None:
        found[LOGIN_FILE] = login_text(logins.guest)
    return found


def _from_files(
    logins: LoginSource, path: Path, report: Report, passwords: dict[str, str], roles: dict[str, list[str]]
) -> bool:
    """Reads users.properties and groups.properties; False if login.config has other users, too."""
    folder = Path(realpath(path)).parent
    configuration = Configuration(path, folder)
    names = read_login_config(folder, report, configuration.warnings, logins.domain)
    if any(kind != PASSWORD for kind, _ in names.modules):
        return False
    for entry in read_entries(folder / names.users, configuration, report):
        passwords[entry.key] = entry.value
    for entry in read_entries(folder / names.roles, configuration, report):
        roles[entry.key] = [name.strip() for name in entry.value.split(",") if name.strip()]
    for role in logins.roles_of_all():
        roles[role] = list(passwords)
    return True


def login_text(guest: Guest) -> str:
    """Returns a login.config with users of the files, and the guest."""
    return f"""activemq {{
   {ARTEMIS}{PROPERTIES} sufficient
      {USER_OPTION}="{USERS_FILE}"
      {ROLE_OPTION}="{ROLES_FILE}";
   {ARTEMIS}{GUESTS} sufficient
      {STRICT_OPTION}={'true' if guest.strict else 'false'}
      {NAMELESS_OPTION}={'true' if guest.nameless else 'false'}
      {GUEST_USER_OPTION}="{guest.user}"
      {GUEST_ROLE_OPTION}="{guest.role}";
}};
"""
