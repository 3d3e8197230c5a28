"""The options of LDAPLoginModule in a login.config, of Artemis and of ActiveMQ Classic, as a directory to ask.

An option that means another way to ask than this version has is a problem, by name. What the way to ask does not depend
on has no effect; a name that is not known is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from atalanta.config.problems import nearest
from atalanta.kernel.security.directory import CONNECT_TIMEOUT_MS, READ_TIMEOUT_MS, DirectoryConfig
from atalanta.kernel.security.search_filter import verify_filter

LDAP: Final = "LDAPLoginModule"
CLASSIC_PACKAGE: Final = "org.apache.activemq.jaas."
FACTORY: Final = "com.sun.jndi.ldap.LdapCtxFactory"
TRUST_STORE: Final = "atalanta.ldap.trustStorePath"  # of ours: Java's is that of the process
TRUST_STORE_PASSWORD: Final = "atalanta.ldap.trustStorePassword"
USED: Final = (
    "connectionURL", "connectionUsername", "connectionPassword", "connectionProtocol", "authentication",
    "userBase", "userSearchMatching", "userSearchSubtree", "userRoleName",
    "roleBase", "roleName", "roleSearchMatching", "roleSearchSubtree", "expandRoles", "expandRolesMatching",
    "authenticateUser", "referral", "connectionTimeout", "readTimeout", "passwordCodec", "initialContextFactory",
    "saslLoginConfigScope", TRUST_STORE, TRUST_STORE_PASSWORD,
)  # fmt: skip
# What cannot be seen: connections stay open, what other servers have is never followed, and a directory that gives no
# answer is asked again at the next login.
UNUSED: Final = (
    "debug", "reload", "connectionPool", "ignorePartialResultException", "noCacheExceptions",
    "com.sun.jndi.ldap.connect.pool", "java.naming.ldap.version",
)  # fmt: skip
MISSING: Final = "needs the package ldap3: pip install 'atalanta[ldap]'"
TIMEOUT_MS_MAX: Final = 600_000

Tell = Callable[[str, str], None]


class LdapOptions:
    """The options of one module. `name` is the module's class; `problem` gets a text and a hint, or "".

    `folder` is that of the login.config: a path is relative to it. `values` may have the key of masked passwords.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, str],
        folder: Path,
        values: Mapping[str, str],
        problem: Tell,
        warn: Callable[[str], None],
    ) -> None:
        self.options = options
        self.folder = folder
        self.values = values
        self.tell = problem
        self.warn = warn
        self.classic = name.startswith(CLASSIC_PACKAGE)

    def read(self) -> DirectoryConfig:
        """Returns the directory to ask."""
        if find_spec("ldap3") is None:
            self._problem(MISSING)
        self._names()
        urls, base = self._urls()
        bind_name, bind_password = self._own_user()
        user_filter = self._filter("userSearchMatching", 1)
        # Classic has no such option.
        authenticates = self.classic or not self._text("authenticateUser") or self._flag("authenticateUser")
        if self.classic and not user_filter:
            self._problem("userSearchMatching is needed: without it ActiveMQ lets in everybody")
        expand = self._filter("expandRolesMatching", 1)
        if self._flag("expandRoles") and not expand:
            self._problem("expandRoles needs expandRolesMatching, like (member={0})")
        trust_store = self._trust_store(urls)
        return DirectoryConfig(
            urls,
            bind_name,
            bind_password,
            self._base("userBase", base, bool(user_filter)),
            user_filter,
            self._flag("userSearchSubtree"),
            self._text("userRoleName"),
            self._base("roleBase", base, "roleSearchMatching" in self.options),
            self._filter("roleSearchMatching", 2),
            self._flag("roleSearchSubtree"),
            self._text("roleName"),
            expand if self._flag("expandRoles") else "",
            authenticates,
            self.classic,
            self._time("connectionTimeout", CONNECT_TIMEOUT_MS),
            self._time("readTimeout", READ_TIMEOUT_MS),
            trust_store,
            self._password(TRUST_STORE_PASSWORD),
        )

    def _problem(self, text: str, hint: str = "") -> None:
        self.tell(f"{LDAP}: {text}", hint)

    def _text(self, option: str) -> str:
        return self.options.get(option, "").strip()

    def _flag(self, option: str) -> bool:
        return self._text(option).lower() == "true"

    def _names(self) -> None:
        """Tells of options that are not known, and of ways to ask that are not supported."""
        for option in self.options:
            if option not in USED and option not in UNUSED:
                near = nearest(option, USED)
                self.warn(f"{LDAP}: {option} is not known and has no effect" + (f" ({near})" if near else ""))
        factory = self._text("initialContextFactory")
        if factory not in ("", FACTORY):
            self._problem(f"initialContextFactory '{factory}' is Java: only {FACTORY} is known")
        if self._text("saslLoginConfigScope"):
            self._problem("saslLoginConfigScope: Kerberos (GSSAPI) is not supported", "bind with authentication=simple")
        referral = self._text("referral") or "ignore"
        if referral == "follow":
            self.warn(f"{LDAP}: referral=follow: users and groups that other servers have are not found")
        elif referral not in ("ignore", "throw"):
            self._problem(f"referral '{referral}' is none of ignore, throw, follow")
        codec = self._text("passwordCodec")
        if codec and "DefaultSensitiveStringCodec" not in codec:
            self._problem(f"passwordCodec '{codec.partition(';')[0]}' is Java", "write the password as ${NAME}")

    def _urls(self) -> tuple[tuple[str, ...], str]:
        """Returns the servers, and the name below which all bases are: the path of the URLs."""
        protocol = self._text("connectionProtocol").lower()
        # "s" stands in the manual of Artemis, and means nothing.
        if protocol not in ("", "s", "simple", "none", "plain", "ssl"):
            self._problem(f"connectionProtocol '{protocol}' is not supported", "ssl, or ldaps:// in connectionURL")
        urls: list[str] = []
        base = ""
        for text in self._text("connectionURL").split():
            try:
                place = urlsplit(text)
                host, port = place.hostname or "", place.port
            except ValueError:
                host, port = "", None
            if not host or place.scheme not in ("ldap", "ldaps"):
                shown = text.rpartition("@")[2]  # there may be a password in front of it
                self._problem(f"connectionURL '{shown}' is not like ldap://host:389 or ldaps://host:636")
                continue
            secure = place.scheme == "ldaps" or protocol == "ssl"
            base = unquote(place.path.lstrip("/"))
            shown = f"[{host}]" if ":" in host else host
            urls.append(f"ldap{'s' if secure else ''}://{shown}:{port or (636 if secure else 389)}")
            if not secure and not _is_here(host):
                self.warn(f"{LDAP}: passwords go to {host} in clear text: write ldaps:// in connectionURL")
        if not self._text("connectionURL"):
            self._problem("connectionURL is needed, like ldaps://directory.example.org")
        return tuple(urls), base

    def _own_user(self) -> tuple[str, str]:
        """Returns whom the node itself binds as; anonymous with authentication=none."""
        authentication = self._text("authentication").lower()
        if authentication not in ("", "none", "simple"):
            self._problem(f"authentication '{authentication}' is not supported", "none or simple, with ldaps://")
        name, password = self._text("connectionUsername"), self._password("connectionPassword")
        if authentication == "none" or (authentication == "" and not name and not password):
            return "", ""
        for option, value in (("connectionUsername", name), ("connectionPassword", password)):
            if not value:
                self._problem(f"{option} is needed", "or authentication=none: the directory answers anybody")
        return name, password

    def _password(self, option: str) -> str:
        """Returns a password, without its mask. It may have blanks at its ends."""
        text = self.options.get(option, "")
        if not (text.startswith("ENC(") and text.endswith(")")):
            return text
        from atalanta.tls.password_codec import codec_key, unmask  # few files have masks

        try:
            return unmask(text, codec_key(self._text("passwordCodec"), self.values))
        except ValueError as error:
            self._problem(f"{option}: {error}")
            return ""

    def _base(self, option: str, below: str, needed: bool) -> str:
        base = self._text(option)
        if needed and not base and not below:
            self._problem(f"{option} is needed, like ou=users,dc=example,dc=org")
        return ",".join(part for part in (base, below) if part)

    def _filter(self, option: str, count: int) -> str:
        text = self._text(option)
        if not text:
            return ""
        if not text.startswith("("):
            text = f"({text})"
        try:
            verify_filter(text, count)
        except ValueError as error:
            self._problem(f"{option}: {error}")
        return text

    def _time(self, option: str, default: int) -> int:
        text = self._text(option)
        if not text:
            return default
        try:
            number = int(text)
        except ValueError:
            self._problem(f"{option} '{text}' is not a number of milliseconds")
            return default
        return min(number, TIMEOUT_MS_MAX) if number > 0 else default

    def _trust_store(self, urls: tuple[str, ...]) -> str:
        text = self._text(TRUST_STORE)
        if not text:
            return ""
        path = self.folder / text
        if not path.is_file():
            self._problem(f"{TRUST_STORE}: there is no file {path}")
        if not any(url.startswith("ldaps:") for url in urls):
            self._problem(f"{TRUST_STORE} is for TLS", "write ldaps:// in connectionURL")
        return str(path)


def _is_here(host: str) -> bool:
    """Returns True for this machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
