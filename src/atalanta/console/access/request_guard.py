"""The checks of every request before a page sees it: the host it is for, and the page that it comes from."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from typing import Final

from atalanta.wire.loopback import is_loopback

LOCAL_NAMES: Final = ("localhost",)
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: browsers would then send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
NO_STORE: Final = "no-store"
TRANSPORT_SECURITY: Final = "max-age=31536000"


class RequestGuard:
    """The checks of one console. `origins` are those of a reverse proxy, by Host header."""

    def __init__(self, listen_host: str, tls: bool, origins: Mapping[str, str]) -> None:
        self._tls = tls
        self._origins = dict(origins)
        own = (listen_host.lower(), socket.gethostname().lower(), socket.getfqdn().lower())
        self._names = {*LOCAL_NAMES, *own}

    def knows_host(self, host: str) -> bool:
        """Returns whether a request for this Host is for this console.

        A page of an attacker may have a name that leads here (DNS rebinding). It has no such name as these, and an
        address is no name.
        """
        host = host.lower()
        if host in self._origins:
            return True
        name = host_name(host)
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def is_secure(self, host: str) -> bool:
        """Returns whether browsers reach the console by https under this Host."""
        return self._tls or self._origins.get(host.lower(), "").startswith("https:")

    def origin(self, host: str) -> str:
        """Returns the origin that our own pages have in a browser."""
        host = host.lower()
        return self._origins.get(host) or f"{'https' if self._tls else 'http'}://{host}"

    def comes_from_here(self, host: str, headers: Mapping[str, str]) -> bool:
        """Returns whether a form was sent by one of our own pages, as far as the browser tells.

        A program that is no browser tells nothing; the token of the form is asked of all.
        """
        site = headers.get("Sec-Fetch-Site")
        if site is not None and site != "same-origin":
            return False
        origin = headers.get("Origin")
        return origin is None or origin.lower() == self.origin(host)

    def peer(self, remote: str, forwarded: str) -> str:
        """Returns the address that a request comes from: behind a proxy on this machine the last one that it names."""
        if self._origins and forwarded and is_loopback(remote):
            last = forwarded.rpartition(",")[2].strip()
            try:
                return str(ipaddress.ip_address(last))
            except ValueError:
                return remote
        return remote


def host_name(host: str) -> str:
    """Returns a Host header without its port, an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
