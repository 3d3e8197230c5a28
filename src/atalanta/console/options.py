"""The options of a console, and what it refuses to be started with."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from atalanta.wire.loopback import is_loopback
from atalanta.wire.uri import UriError, parse_authority

DEFAULT_LISTEN: Final = "127.0.0.1:8161"
DEFAULT_NODE: Final = "localhost:61616"
PATH: Final = re.compile(r"(/[A-Za-z0-9._~-]+)+")
ORIGIN: Final = re.compile(r"(https?)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?")


class ConsoleRefused(Exception):
    """The console does not start with these options; the text names the option and the remedy."""


@dataclass
class ConsoleOptions:
    """The options that the operator has given.

    `nodes` are host:port or URLs of single nodes. `path` is the path below which a reverse proxy serves the console,
    `origins` are the addresses that browsers have for it there.
    """

    nodes: list[str] = field(default_factory=lambda: [DEFAULT_NODE])
    listen: str = DEFAULT_LISTEN
    path: str = ""
    origins: list[str] = field(default_factory=list)
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    plain: bool = False
    read_only: bool = False

    def as_json(self) -> dict[str, object]:
        """Returns the options for another process, which makes them with `options_from`."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in vars(self).items()}

    @property
    def tls(self) -> bool:
        """Returns whether the console itself speaks TLS."""
        return self.tls_certificate is not None

    def place(self) -> tuple[str, int]:
        """Returns the host and port to listen on. ConsoleRefused for another form, or a place that needs TLS."""
        try:
            host, port = parse_authority(self.listen)
        except UriError as error:
            raise ConsoleRefused(f"--listen {self.listen}: {error}") from None
        if port is None:
            raise ConsoleRefused(f"--listen {self.listen}: not host:port, such as {DEFAULT_LISTEN}")
        if not is_loopback(host) and not self.tls and not self.plain:
            raise ConsoleRefused(
                f"--listen {self.listen}: passwords would cross the network unencrypted; give --tls-certificate and "
                "--tls-key, or listen on 127.0.0.1 behind a proxy that speaks TLS, or say --plain"
            )
        return host, port

    def base_path(self) -> str:
        """Returns the path of every link's beginning, "" or "/console"."""
        path = self.path.rstrip("/")
        if path and (not PATH.fullmatch(path) or any(part in (".", "..") for part in path.split("/"))):
            raise ConsoleRefused(f"--path {self.path}: not a path such as /console")
        return path

    def origin_hosts(self) -> dict[str, str]:
        """Returns the origins that were given, by the Host header that belongs to each."""
        found: dict[str, str] = {}
        for origin in self.origins:
            match = ORIGIN.fullmatch(origin.strip().lower())
            if match is None:
                raise ConsoleRefused(f"--origin {origin}: not an address such as https://ops.example.org")
            scheme, host, port = match.group(1), match.group(2), match.group(3) or ""
            if port == {"http": ":80", "https": ":443"}[scheme]:
                port = ""  # browsers leave it out
            found[f"{host}{port}"] = f"{scheme}://{host}{port}"
        return found

    def tls_context(self) -> ssl.SSLContext | None:
        """Returns the context of the console's own TLS. ConsoleRefused for files that cannot be used."""
        if self.tls_certificate is None:
            if self.tls_key is not None:
                raise ConsoleRefused("--tls-key without --tls-certificate: give both, or none")
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.tls_certificate, self.tls_key, no_password)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            raise ConsoleRefused(
                f"--tls-certificate {self.tls_certificate}: {error}; it is a file in PEM form, the certificate first, "
                "and --tls-key is the file with its key, without a password"
            ) from None
        return context


def options_from(given: dict[str, Any]) -> ConsoleOptions:
    """Returns the options that `as_json` has written."""
    files = {name: None if given[name] is None else Path(given[name]) for name in ("tls_certificate", "tls_key")}
    return ConsoleOptions(**{**given, **files})


def no_password() -> str:
    """Returns no password for an encrypted key: OpenSSL would ask on the terminal, and the console wait there."""
    raise ValueError("the key is encrypted")
