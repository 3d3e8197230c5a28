"""Probes of an address or a URL, for runtime/network_check/check.py.

A probe blocks its caller, so it runs on a thread of its own. Source: Artemis' NetworkHealthCheck. With the
default commands InetAddress.isReachable is used first. Without root rights that is a connection to port 7, which
a reachable machine refuses. Then the command is run. With a command of the operator only that command is run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from typing import Final, Protocol

from atalanta.runtime.network_check.config import PING, PING6, NetworkCheckConfig, PingCommand

ECHO_PORT: Final = 7
# A command may have its own timeout. A command that hangs must not count as an answer for ever.
PATIENCE_S: Final = 10.0
OUTPUT_BYTES_MAX: Final = 200
LOOPBACK: Final = "it is a loopback address, which always answers"


class Probe(Protocol):
    """A probe of one entry of a list."""

    name: str

    def check(self) -> str:
        """Returns "" for an answer, else the reason. Blocks."""

    def close(self) -> None:
        """Ends a probe in progress, from another thread."""


class AddressProbe:
    """Probes an entry of network-check-list. `loopback_counts` is for tests, where loopback addresses represent
    other machines."""

    def __init__(self, name: str, config: NetworkCheckConfig, loopback_counts: bool = False) -> None:
        self.name = name
        self._loopback_counts = loopback_counts
        self._config = config
        self._timeout_s = config.timeout_ms / 1_000
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def check(self) -> str:
        """Implements Probe.check."""
        from ipaddress import ip_address  # Imported here: nodes start without it.

        try:
            family, numeric = first_address(self.name)
        except (OSError, UnicodeError) as error:
            return f"no address is known: {getattr(error, 'strerror', None) or error}"
        if ip_address(numeric.partition("%")[0]).is_loopback and not self._loopback_counts:
            return LOOPBACK
        custom = self._config.custom()
        interface = "" if custom else self._config.interface
        silent = "" if custom else self._connects(family, numeric, interface)
        if not custom and not silent:
            return ""
        config = self._config
        ipv6 = family == socket.AF_INET6
        text = (config.ping6_command or PING6) if ipv6 else (config.ping_command or PING)
        timeout_s = max(1, config.timeout_ms // 1_000)
        why = self._run(PingCommand(text).arguments(timeout_s, numeric, interface))
        return f"port {ECHO_PORT}: {silent}, {why}" if why and silent else why

    def _connects(self, family: int, numeric: str, interface: str) -> str:
        """Returns "" if the address answers to a connection, even with a refusal; else the reason."""
        with socket.socket(family, socket.SOCK_STREAM) as peer:
            peer.settimeout(self._timeout_s)
            try:
                if interface:
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
                found = socket.getaddrinfo(
                    numeric, ECHO_PORT, family, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST
                )
                peer.connect(found[0][4])
            except ConnectionRefusedError:
                return ""
            except (OSError, AttributeError) as error:  # no SO_BINDTODEVICE: the command decides
                return getattr(error, "strerror", None) or str(error)
        return ""

    def _run(self, arguments: list[str]) -> str:
        """Runs the command. Returns "" for status 0, else the reason."""
        output = (
            os.memfd_create("ping")
            if hasattr(os, "memfd_create")
            else os.open(os.devnull, os.O_RDWR)
        )
        try:
            try:
                process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=output,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                return f"{arguments[0]} cannot be run: {getattr(error, 'strerror', None) or error}"
            self._process = process
            if self._closed:
                self._kill()
            patience_s = self._timeout_s + PATIENCE_S
            try:
                status = process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self._kill()
                process.wait()
                return f"{' '.join(arguments)}: has not ended within {patience_s:g} s"
            finally:
                self._process = None
            if status == 0:
                return ""
            words = os.pread(output, OUTPUT_BYTES_MAX, 0).decode("utf-8", "replace").split()
            return f"{' '.join(arguments)}: status {status} {' '.join(words)}".rstrip()
        finally:
            os.close(output)

    def _kill(self) -> None:
        """Kills the command and its child processes."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Implements Probe.close."""
        self._closed = True
        self._kill()


class UrlProbe:
    """Probes an entry of network-check-URL-list. Follows redirects, does not read the body."""

    def __init__(self, url: str, timeout_ms: int) -> None:
        self.name = url
        self._timeout_s = timeout_ms / 1_000

    def check(self) -> str:
        """Implements Probe.check."""
        # Imported only when used: few nodes have URLs.
        import urllib.request as request
        from http.client import HTTPException

        # No file URLs and no proxies from the environment, like Java.
        opener = request.OpenerDirector()
        for handler in (
            request.HTTPHandler,
            request.HTTPSHandler,
            request.HTTPRedirectHandler,
            request.HTTPErrorProcessor,
            request.HTTPDefaultErrorHandler,
            request.UnknownHandler,
        ):
            opener.add_handler(handler())
        try:
            opener.open(self.name, timeout=self._timeout_s).close()
        except (OSError, HTTPException, ValueError) as error:
            return str(error) or type(error).__name__
        return ""

    def close(self) -> None:
        """Implements Probe.close: the thread ends by itself, and delays no exit."""


def first_address(name: str) -> tuple[int, str]:
    """Returns family and numeric address with its zone; IPv4 if there is one, as Java prefers. OSError if there is
    none."""
    found = socket.getaddrinfo(name, ECHO_PORT, type=socket.SOCK_STREAM)
    family, _, _, _, numeric = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, socket.getnameinfo(numeric, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]
