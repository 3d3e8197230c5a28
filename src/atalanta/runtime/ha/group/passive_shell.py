"""The shell of a passive member: it drives a node that accepts nobody, dials the active one, and writes its files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from atalanta.cluster.inputs import NodeInputs
from atalanta.runtime.clock import steady_ns, system_clock
from atalanta.runtime.driver import Driver
from atalanta.runtime.ids import SystemIds
from atalanta.runtime.net.limits import Limits
from atalanta.runtime.net.links import LoopLinks
from atalanta.runtime.net.tcp import Connections
from atalanta.runtime.process.event_loop import collect_young_only
from atalanta.runtime.shell import StoppableDisk
from atalanta.runtime.timers import LoopTimers
from atalanta.runtime.trace import LogTrace
from atalanta.tls.context import ClientTls

if TYPE_CHECKING:
    from atalanta.cluster.replication.passive.backup import Backup

STOP_S = 5.0
LOOK_S = 0.01


class PassiveFiles(Protocol):
    """The files of large messages as this shell uses them besides the port."""

    def close(self) -> None:
        """Releases files and threads."""


class PassiveShell:
    """Owns the ports of a passive member. Create it inside the event loop that will run it.

    Its clock follows no change of the wall clock: a promise to wait must not end early.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, limits: Limits, connectors: dict[str, ClientTls]
    ) -> None:
        self.loop = loop
        self.clock = system_clock(steady_ns)
        self.trace = LogTrace()
        self.ids = SystemIds()
        self.driver = Driver(loop, self.clock, self._on_bug, self._on_failed)
        self.connections = Connections(loop, self.driver, limits)
        self.timers = LoopTimers(loop, self.clock, self.driver.callback(NodeInputs.on_timer))
        self.links = LoopLinks(self.connections, self.trace)
        self.links.secure(connectors)
        self.failed = ""  # why the member cannot go on
        self.bug = False
        self._node: Backup | None = None
        self._ended = asyncio.Event()
        self.driver.after_flush(self._look)

    def end(self) -> None:
        """Ends the run, whatever its outcome."""
        self._ended.set()

    async def run(self, node: Backup, disk: StoppableDisk, large: PassiveFiles) -> None:
        """Drives `node` until it has an outcome, has failed, or `end`. Errors of recovery are raised.

        Everything is closed afterwards, whatever the end.
        """
        self._node = node
        self.driver.attach(node)
        collect_young_only()
        try:
            self.driver.recover()
            self.driver.post(NodeInputs.start)
            await self._ended.wait()
            self.connections.close_all("the member stops to follow")
            deadline = self.loop.time() + STOP_S
            while not disk.idle() and not self.driver.broken and self.loop.time() < deadline:
                await asyncio.sleep(LOOK_S)
        finally:
            self.driver.detach()
            self.links.close()
            self.timers.clear()
            self.connections.abort_all()
            self.connections.handshakes.close()
            disk.close()
            large.close()
            # Closed transports report it in the next event-loop iteration.
            await asyncio.sleep(0)

    def _look(self) -> bool:
        """Looks for an outcome at the end of each turn."""
        if self._node is not None and self._node.outcome is not None:
            self._ended.set()
        return False

    def _on_bug(self, what: str) -> None:
        self.bug = True
        self._on_failed(what)

    def _on_failed(self, why: str) -> None:
        self.failed = why
        self.trace.event("node_failed", {"why": why})
        self._ended.set()
