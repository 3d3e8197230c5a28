"""The client of an LDAP directory: what LDAPLoginModule asks there (RFC 4511), over two connections that stay open.

One has the node's own bind, and searches. The other one binds as users do: whether the password is right is all that it
is for. Both are opened again when the server has closed them.
"""

from __future__ import annotations

import math
import re
import ssl
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import ldap3
from ldap3.core.exceptions import LDAPCommunicationError, LDAPExceptionError
from ldap3.utils.conv import escape_filter_chars
from ldap3.utils.dn import parse_dn

from atalanta.kernel.security.directory import DirectoryAnswer, DirectoryConfig
from atalanta.kernel.security.search_filter import fill
from atalanta.runtime.answer_socket import AnswerSocket
from atalanta.tls.context import client_tls
from atalanta.tls.errors import TlsError
from atalanta.wire.tls_config import TlsConfig

GROUPS_MAX: Final = 10_000  # of one user
CREDENTIAL_CHARS_MAX: Final = 16_384  # servers close at requests of some 100,000 bytes
NO_ATTRIBUTES: Final = "1.1"
SUCCESS: Final = 0
SIZE_LIMIT: Final = 4
REFERRALS: Final = (9, 10)  # parts of the answer that other servers have; those that this one has are there
NO_SUCH_OBJECT: Final = 32
REACHED: Final = "see that the directory runs and can be reached"
# A server that says so has not looked at the password.
NOT_NOW: Final = {
    1: "an operations error", 3: "its time limit", 8: "it demands ldaps://", 11: "its limits", 13: "it demands ldaps://",
    51: "it is busy", 52: "unavailable", 80: "an error",
}  # fmt: skip
# A search that a name is the cause of: others are found.
OF_THE_NAME: Final = {3: "its time limit", 11: "its limits", 18: "no such matching", 21: "the name has no such syntax"}
BUSY: Final = (51, 52)
TWO_ENTRIES: Final = "userSearchMatching finds more than one entry of this name: make it narrower"
MANY_GROUPS: Final = f"the user is in more than {GROUPS_MAX} groups: make roleSearchMatching narrower"
# A part of a name that is escaped (RFC 4514): a byte in hexadecimal, or one character.
ESCAPED: Final = re.compile(r"((?:\\[0-9a-fA-F]{2})+)|\\(.)")


class UserRefused(Exception):
    """A user cannot come in, for a reason that is none of the password: others can."""


class LdapProblem(Exception):
    """The directory gives no answer. `remedy` says what to do."""

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(text)
        self.remedy = remedy


def tls_context(directory: DirectoryConfig) -> ssl.SSLContext:
    """Returns the context for `ldaps://`: certificate and host are checked. TlsError."""
    config = TlsConfig(
        trust_store_path=directory.trust_store, trust_store_password=directory.trust_store_password
    )
    return client_tls(config, [Path()]).context


class LdapClient:
    """The client of a directory that one thread uses."""

    def __init__(self, directory: DirectoryConfig) -> None:
        self._directory = directory
        self._searches: Any = None  # ldap3 has no types
        self._binds: Any = None

    def close(self) -> None:
        """Closes both connections."""
        for connection in (self._searches, self._binds):
            _close(connection)
        self._searches = self._binds = None

    def look_up(self, user: str, password: str | None) -> DirectoryAnswer:
        """Returns whether the password is the user's, with his roles; None: the roles of a user."""
        # Directories ignore blanks around a name: with them one user would have as many names as he likes.
        if not user or user != user.strip() or not user.isprintable() or password == "":
            return DirectoryAnswer(False)
        # A server that ends a password at a NUL would see none, and one that closes at a large request would seem away.
        if len(user) > CREDENTIAL_CHARS_MAX or "\0" in (password or "") or len(password or "") > CREDENTIAL_CHARS_MAX:
            return DirectoryAnswer(False)
        try:
            return self._look_up(user, password)
        except UserRefused as refusal:
            return DirectoryAnswer(False, why=str(refusal))
        except LdapProblem as error:
            self.close()
            return DirectoryAnswer(False, problem=str(error), remedy=error.remedy)
        except Exception:  # an answer that the library cannot read: what else comes on this connection is not known
            self.close()
            raise

    def _look_up(self, user: str, password: str | None) -> DirectoryAnswer:
        directory = self._directory
        name = user
        roles: list[str] = []
        if directory.user_filter:
            found = self._find_user(user)
            if len(found) > 1:
                raise UserRefused(TWO_ENTRIES)
            if not found:
                return DirectoryAnswer(False)
            name = str(found[0]["dn"])
            roles = self._roles_of_entry(found[0])
        if password is not None and not self._bind_as(name, password):
            return DirectoryAnswer(False)
        return DirectoryAnswer(True, tuple(dict.fromkeys(roles + self._roles_by_search(name, user))))

    def _find_user(self, user: str) -> list[dict[str, Any]]:
        directory = self._directory
        wanted = directory.user_role_attribute or NO_ATTRIBUTES
        text = fill(directory.user_filter, [escape_filter_chars(user)])
        return self._search(directory.user_base, text, directory.user_subtree, wanted, 2, "userBase")

    def _roles_of_entry(self, entry: dict[str, Any]) -> list[str]:
        """Returns the roles that the user's own entry names: groups, or with `roleName` parts of their names."""
        directory = self._directory
        if not directory.user_role_attribute:
            return []
        values = _values(entry, directory.user_role_attribute)
        if directory.classic or not directory.role_attribute:
            return values
        return [part for value in values for part in _parts(value, directory.role_attribute)]

    def _roles_by_search(self, name: str, user: str) -> list[str]:
        directory = self._directory
        if not directory.role_filter or (directory.classic and not directory.role_attribute):
            return []
        roles: list[str] = []
        seen: set[str] = set()
        pending = self._groups(
            fill(directory.role_filter, [escape_filter_chars(name), escape_filter_chars(user)]), roles, seen
        )
        while pending and directory.expand_filter:
            group = pending.pop(0)
            pending += self._groups(fill(directory.expand_filter, [escape_filter_chars(group)]), roles, seen)
        return roles

    def _groups(self, text: str, roles: list[str], seen: set[str]) -> list[str]:
        """Adds the roles of groups that are not seen yet. Returns the names of their entries."""
        directory = self._directory
        wanted = directory.role_attribute or NO_ATTRIBUTES
        fresh: list[str] = []
        for entry in self._search(
            directory.role_base, text, directory.role_subtree, wanted, GROUPS_MAX, "roleBase"
        ):
            name = str(entry["dn"])
            if name in seen:
                continue
            seen.add(name)
            fresh.append(name)
            if directory.role_attribute:
                values = _values(entry, directory.role_attribute)
                roles += values if directory.classic else values[:1]
            else:
                roles.append(name)
        if len(seen) > GROUPS_MAX:
            raise UserRefused(MANY_GROUPS)
        return fresh

    def _search(
        self, base: str, text: str, subtree: bool, attribute: str, count_max: int, option: str
    ) -> list[dict[str, Any]]:
        """Returns the entries that match, without those of other servers."""

        def search(connection: Any) -> Any:
            connection.search(
                base,
                text,
                ldap3.SUBTREE if subtree else ldap3.LEVEL,
                attributes=[attribute],
                size_limit=count_max,
                time_limit=math.ceil(self._directory.read_timeout_ms / 1_000),
            )
            return connection.result, connection.response

        result, response = self._again_if_closed(search, True)
        code = int(result["result"])
        if code == NO_SUCH_OBJECT:
            raise LdapProblem(f"there is no {option} '{base}'", f"write {option} as the directory names it")
        if code in OF_THE_NAME:
            raise UserRefused(f"the search in {option} '{base}' failed: {OF_THE_NAME[code]}")
        if code not in (SUCCESS, SIZE_LIMIT, *REFERRALS):
            raise LdapProblem(
                f"the search in {option} '{base}' failed: {NOT_NOW.get(code, result['description'])}",
                "see the log of the directory; the user of connectionUsername must be allowed to search there",
            )
        if code == SIZE_LIMIT and count_max == GROUPS_MAX:
            raise UserRefused(MANY_GROUPS)
        return [entry for entry in response or () if entry["type"] == "searchResEntry"]

    def _bind_as(self, name: str, password: str) -> bool:
        """Returns True if the password is that of the entry. It is sent as it is, and never when it is empty."""
        secret = password.encode("utf-8", "surrogatepass")
        assert name and secret

        def bind(connection: Any) -> Any:
            connection.user, connection.password = name, secret
            connection.authentication = ldap3.SIMPLE
            try:
                connection.bind(read_server_info=False)
            finally:
                connection.password = None
            return connection.result, None

        result, _ = self._again_if_closed(bind, False)
        code = int(result["result"])
        if code in BUSY:
            raise LdapProblem(f"a user's bind failed: {NOT_NOW[code]}", "see the log of the directory")
        if code in NOT_NOW:
            raise UserRefused(f"the user's bind failed: {NOT_NOW[code]} (see the log of the directory)")
        return code == SUCCESS

    # -- connections ----------------------------------------------------------------------------
    def _again_if_closed(self, operation: Any, searches: bool) -> Any:
        """Returns what the operation returns. A connection that was open before may be closed by now: then once more
        with a new one."""
        connection = self._searches if searches else self._binds
        if connection is not None:
            try:
                connection.socket.begin()
                return operation(connection)
            except (LDAPCommunicationError, OSError) as error:
                _close(connection)
                if "timed out" in str(error):
                    raise LdapProblem(_reason(error), REACHED) from None
        connection = self._open(searches)
        if searches:
            self._searches = connection
        else:
            self._binds = connection
        try:
            connection.socket.begin()
            return operation(connection)
        except (LDAPCommunicationError, OSError) as error:
            raise LdapProblem(_reason(error), REACHED) from None

    def _open(self, searches: bool) -> Any:
        """Opens a connection to the first server that can be reached, for searches with the node's own bind."""
        problem: LdapProblem | None = None
        for url in self._directory.urls:
            try:
                return self._open_at(url, searches)
            except LdapProblem as error:
                problem = error
        assert problem is not None
        raise problem

    def _open_at(self, url: str, searches: bool) -> Any:
        directory = self._directory
        place = urlsplit(url)
        secure = place.scheme == "ldaps"
        try:
            server = ldap3.Server(
                place.hostname,
                place.port,
                secure,
                get_info=ldap3.NONE,
                tls=self._tls() if secure else None,
                connect_timeout=directory.connect_timeout_ms / 1_000,
            )
            named = searches and directory.bind_name
            connection: Any = ldap3.Connection(
                server,
                directory.bind_name if named else None,
                directory.bind_password.encode() if named else None,
                authentication=ldap3.SIMPLE if named else ldap3.ANONYMOUS,
                auto_referrals=False,
                check_names=False,
                receive_timeout=math.ceil(directory.read_timeout_ms / 1_000),
                raise_exceptions=False,
            )
            connection.open(read_server_info=False)
            connection.socket = AnswerSocket(connection.socket, directory.read_timeout_ms / 1_000)
            if searches and not connection.bind(read_server_info=False):
                said = connection.result["description"]
                _close(connection)
                remedy = "see connectionUsername and connectionPassword in login.config"
                raise LdapProblem(f"{url} does not accept the node itself: {said}", remedy)
        except TlsError as error:
            raise LdapProblem(str(error), "see atalanta.ldap.trustStorePath in login.config") from None
        except (LDAPExceptionError, OSError) as error:
            text = _reason(error)
            remedy = "see that the directory runs and that connectionURL leads there"
            if "certificate" in text.lower() or "ssl" in text.lower():
                remedy = "give atalanta.ldap.trustStorePath the certificate of its authority; the host of connectionURL"
                remedy += " must be in its certificate"
            raise LdapProblem(f"{url} cannot be reached: {text}", remedy) from None
        return connection

    def _tls(self) -> Any:
        tls: Any = ldap3.Tls(validate=ssl.CERT_REQUIRED)
        tls.wrap_socket = partial(_wrap_socket, tls_context(self._directory))  # the file may be another one by now
        return tls


def _wrap_socket(context: ssl.SSLContext, connection: Any, do_handshake: bool = False) -> None:
    """Replaces the socket by one that has checked certificate and host: the library's own check is not used."""
    connection.socket = context.wrap_socket(
        connection.socket, do_handshake_on_connect=do_handshake, server_hostname=connection.server.host
    )


def _close(connection: Any) -> None:
    if connection is None:
        return
    try:
        connection.unbind()
    except (LDAPExceptionError, OSError):
        return  # the server has closed it


def _reason(error: Exception) -> str:
    """Returns the text of an error, without the tuples that the library writes around it."""
    text = str(error).replace("\\", "").partition(" (_ssl.c")[0].strip("()\"',") or type(error).__name__
    return text[:200]


def _values(entry: dict[str, Any], attribute: str) -> list[str]:
    """Returns the values of an attribute as text. Names of attributes have no case."""
    for name, values in entry["raw_attributes"].items():
        if name.lower() == attribute.lower():
            return [value.decode("utf-8", "replace") for value in values]
    return []


def _parts(name: str, attribute: str) -> list[str]:
    """Returns the values of `attribute` in the name of an entry; none if it is no name."""
    try:
        parts = parse_dn(name)
    except LDAPExceptionError:
        return []
    return [ESCAPED.sub(_unescaped, value) for kind, value, _ in parts if kind.lower() == attribute.lower()]


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        return bytes.fromhex(match[1].replace("\\", "")).decode("utf-8", "replace")
    return match[2]
