"""The life of a node in this process: it becomes active in one of three ways, serves, ends, and perhaps begins again.

    alone                   app/lone_activation.py
    by the shared store     app/store/activation.py
    as a member of a group  app/group/activation.py

Source: Activation of Artemis and its subclasses. Difference: a node that is no longer active becomes passive in the
same process.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from atalanta.app.running_node import Ready
from atalanta.app.startup_error import StartupError
from atalanta.app.web import start_web
from atalanta.config.configuration import Configuration
from atalanta.kernel.security.security import Security
from atalanta.runtime.network_check.check import NoCheck, network_check
from atalanta.runtime.network_check.network_watch import NetworkWatch
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.allocator import trim_allocator
from atalanta.runtime.process.event_loop import unsettle_collector
from atalanta.runtime.process.logs import log_event

if TYPE_CHECKING:
    from atalanta.app.colocation.hosted_backups import HostedBackups
    from atalanta.app.console import ConsoleProcess
    from atalanta.web.server import WebServer


log = logging.getLogger("atalanta.app")


class ActiveRun(Protocol):
    """One run of an active node, with bound ports."""

    status: int

    async def run(self) -> bool:
        """Serves to its end. Returns whether the process ends then; `status` is its exit status."""


class Activation(Protocol):
    """A way to become active."""

    async def become_active(self, life: Life) -> ActiveRun | int | None:
        """Waits until this process may serve. Returns its run; or the exit status of a process that ends without; or
        None if it begins again when the network is there. StartupError if it cannot serve."""

    async def close(self) -> None:
        """Releases the files and all else that outlives the runs."""


class Life:
    """What all runs of one process share. A run is told to `watch` as soon as it can be stopped."""

    def __init__(
        self,
        configuration: Configuration,
        security: Security,
        ready: Ready,
        server: WebServer | None,
        watch: NetworkWatch,
    ) -> None:
        self.configuration = configuration
        self.security = security
        self.ready = ready
        self.server = server
        self.watch = watch
        self._first = True  # this process has not begun to wait, or to serve
        self._told = ""

    async def next(self, activation: Activation) -> int | None:
        """Becomes active and serves, again and again. Returns the exit status; None after a lost network.

        None, too, if a later start is not possible now (its port is in use, a key store is being written): it is tried
        again.
        """
        while True:
            try:
                active = await activation.become_active(self)
            except StartupError as error:
                if self._first or error.status not in (exit_codes.UNAVAILABLE, exit_codes.BAD_CONFIGURATION):
                    raise
                self._tell(" ".join(error.lines))
                return None
            self._first, self._told = False, ""
            if active is None or isinstance(active, int):
                return active
            if await active.run():
                return active.status
            unsettle_collector()
            trim_allocator()

    def _tell(self, why: str) -> None:
        """Logs once why a later start is not possible."""
        if why != self._told:
            self._told = why
            log_event(log, "network_start_failed", {"why": why})

    def tell_web(self, role: str) -> None:
        """Shows the role of this process, "active" or "passive", at the HTTP server."""
        if self.server is not None:
            self.server.role_changed(role)


async def serve(
    configuration: Configuration,
    security: Security,
    activation: Activation,
    ready: Ready,
    web: str | None,
    colocated: HostedBackups | None,
    console: ConsoleProcess | None = None,
) -> int:
    """Runs the node in the running loop, and beside it the backups that it hosts, and a console. Returns the exit
    status."""
    loop = asyncio.get_running_loop()
    server: WebServer | None = None
    try:
        if web is not None:
            server = await start_web(web)
        check = network_check(loop, configuration.network_check) or NoCheck()
        watch = NetworkWatch(loop, check, configuration.network_check.period_ms / 1_000)
        if server is not None:
            watch.on_change = server.network_changed
        if colocated is not None:
            colocated.start()
        if console is not None:
            console.start()
        life = Life(configuration, security, ready, server, watch)
        return await watch.run(lambda: life.next(activation))
    finally:
        if console is not None:
            console.end()
        if colocated is not None:
            await colocated.close()
        await activation.close()
        if server is not None:
            await server.stop()
        if console is not None:
            await console.close()
