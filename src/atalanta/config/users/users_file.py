"""Changes to artemis-users.properties and artemis-roles.properties.

Comments and order are kept. Each file is replaced atomically. Artemis reads the result in the same way (`artemis
user add` writes the same).
"""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from atalanta.config.problems import Report
from atalanta.config.users.bootstrap import read_bootstrap
from atalanta.config.users.login_config import LOGIN_FILE, PROPERTIES, read_login_config
from atalanta.config.users.users import FILE_BYTES_MAX, ROLES_FILE, USERS_FILE
from atalanta.config.xml.properties import (
    PropertiesError,
    PropertyEntry,
    continues,
    parse_properties,
    property_line,
)
from atalanta.files.regular import read_regular
from atalanta.files.replace import sync_folder
from atalanta.kernel.security.password import StoredPassword, hash_password

SALT_BYTES: Final = 32  # as Artemis


class UsersError(Exception):
    """The change is not possible; the text gives the reason."""


class UnknownUser(UsersError):
    """There is no user of this name."""


class UserExists(UsersError):
    """There is a user of this name already."""


def stored_password(password: str, plain: bool) -> str:
    """Returns the stored form of a password. With `plain` also a hash in the form `ENC(...)` is accepted."""
    if not password:
        raise UsersError("an empty password is not allowed")
    if not plain:
        return hash_password(password, secrets.token_bytes(SALT_BYTES))
    try:
        StoredPassword(password)
    except ValueError as error:
        raise UsersError(f"the password is no hash: {error}") from error
    return password


@dataclass(frozen=True)
class UserLine:
    name: str
    hashed: bool
    roles: tuple[str, ...]


class PropertiesText:
    """The lines of one file; a missing file is empty."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []
        try:
            data = read_regular(path, FILE_BYTES_MAX)
            if len(data) > FILE_BYTES_MAX:
                raise UsersError(f"{path} is larger than {FILE_BYTES_MAX} bytes")
            text = data.decode("utf-8-sig")
        except FileNotFoundError:
            text = ""
        except UnicodeDecodeError as error:
            raise UsersError(f"{path} is not UTF-8: {error}") from error
        except OSError as error:
            raise UsersError(f"{path} cannot be read: {error.strerror}") from error
        self.lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if self.lines and not self.lines[-1]:
            self.lines.pop()

    def entries(self) -> list[PropertyEntry]:
        try:
            return parse_properties("\n".join(self.lines))
        except PropertiesError as error:
            raise UsersError(f"{self.path}:{error.line}: {error.text}") from error

    def put(self, key: str, value: str | None) -> None:
        """Replaces an entry in its line, or appends it. None removes it. Of a name that is there several times, the
        last entry counts: it is replaced, and the others go.
        """
        fresh = [] if value is None else [property_line(key, value)]
        found = [entry for entry in self.entries() if entry.key == key]
        for entry in reversed(found):  # from the end, so that the lines of those before stay
            start = entry.line - 1
            self.lines[start : start + entry.lines] = fresh if entry is found[-1] else []
        if not found:
            if self.lines and continues(self.lines[-1]):
                self.lines.append("")  # what is added would belong to the last entry
            self.lines += fresh

    def save(self) -> None:
        """Saves the file atomically, and durably. A file keeps its owner and mode; a new file is readable only by its
        owner.

        For a symbolic link the target is replaced, not the link.
        """
        text = "".join(f"{line}\n" for line in self.lines)
        if len(text.encode()) > FILE_BYTES_MAX:
            raise UsersError(f"{self.path} would be larger than {FILE_BYTES_MAX} bytes")
        try:
            path = self.path.resolve()
            fresh = path.with_name(f"{path.name}.new")
            before = path.stat() if path.exists() else None
            file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "w", encoding="utf-8") as out:
                if before is not None:
                    _keep_owner(out.fileno(), before)
                    os.fchmod(out.fileno(), before.st_mode & 0o777)
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            os.replace(fresh, path)
            sync_folder(path.parent)
        except OSError as error:
            raise UsersError(f"{self.path} cannot be written: {error.strerror}") from error


def _keep_owner(file: int, before: os.stat_result) -> None:
    """Keeps the owner of the file: otherwise a node under another user could not read a file written by root."""
    try:
        os.fchown(file, before.st_uid, before.st_gid)
    except PermissionError:  # neither root nor the owner: keep the group only, if it is one of ours
        with contextlib.suppress(PermissionError):
            os.fchown(file, -1, before.st_gid)


class UserFiles:
    """The files of users and of roles. Each change is on disk when the method returns. Raises UsersError."""

    def __init__(self, folder: Path, users: str = USERS_FILE, roles: str = ROLES_FILE) -> None:
        self.users = PropertiesText(folder / users)
        self.roles = PropertiesText(folder / roles)

    def listed(self) -> list[UserLine]:
        members = self._members()
        return [
            UserLine(
                entry.key,
                entry.value.startswith("ENC("),
                tuple(role for role, names in members.items() if entry.key in names),
            )
            for entry in {entry.key: entry for entry in self.users.entries()}.values()
        ]

    def add(self, name: str, stored: str, roles: tuple[str, ...]) -> None:
        """Adds a user. `stored` is a hash or a plain password. Without a role the user has no permissions."""
        if not name or name != name.strip() or "," in name:
            raise UsersError(f"'{name}' cannot be a user's name: no commas, no blanks around it")
        if self._known(name):
            raise UserExists(f"there is a user '{name}' already: see atalanta user reset")
        self._set_roles(name, roles)
        self.users.put(name, stored)
        # Roles are saved first: a role with an unknown user is harmless.
        self.roles.save()
        self.users.save()

    def remove(self, name: str) -> None:
        self._must_know(name)
        self.users.put(name, None)
        self._set_roles(name, ())
        self.users.save()
        self.roles.save()

    def reset(self, name: str, stored: str | None, roles: tuple[str, ...] | None) -> None:
        """Changes a user; None leaves the password or the roles unchanged."""
        self._must_know(name)
        if stored is not None:
            self.users.put(name, stored)
            self.users.save()
        if roles is not None:
            self._set_roles(name, roles)
            self.roles.save()

    def _known(self, name: str) -> bool:
        return any(entry.key == name for entry in self.users.entries())

    def _must_know(self, name: str) -> None:
        if not self._known(name):
            raise UnknownUser(f"there is no user '{name}' in {self.users.path}")

    def _members(self) -> dict[str, list[str]]:
        return {
            entry.key: [part.strip() for part in entry.value.split(",") if part.strip()]
            for entry in self.roles.entries()
        }

    def _set_roles(self, name: str, roles: tuple[str, ...]) -> None:
        for role in roles:
            if not role or role != role.strip() or "," in role:
                raise UsersError(f"'{role}' cannot be a role's name: no commas, no blanks around it")
        members = self._members()
        for role in roles:
            members.setdefault(role, [])
        for role, names in members.items():
            wanted = [member for member in names if member != name]
            if role in roles:
                wanted.append(name)
            if wanted != names:
                self.roles.put(role, ",".join(wanted) if wanted else None)


def open_user_files(folder: Path) -> UserFiles:
    """Opens the two files of the node whose broker.xml is in `folder`, with the names of its login.config."""
    report = Report()
    bootstrap = read_bootstrap(folder, report, [])
    if bootstrap.basic is not None:
        return UserFiles(folder, USERS_FILE, ROLES_FILE)
    names = read_login_config(folder, report, [], bootstrap.domain)
    if report.problems:
        raise UsersError(str(report.problems[0]))
    if not names.passwords:
        raise UsersError(f"{folder / LOGIN_FILE} has no {PROPERTIES}: no broker would read these users")
    return UserFiles(folder, names.users, names.roles)
