"""The shell of one node: builds the ports, drives the node, and stops it.

The shell binds the acceptors, recovers, starts, accepts, and reports "ready". At a stop it accepts no more
connections and lets the node disconnect its peers. Then it lets the disk finish and closes the connections after
their output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from atalanta.cluster.inputs import NodeInputs
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.ports import Process
from atalanta.kernel.security.user_operation import UserAnswer, UserOperation
from atalanta.kernel.settings.configuration_request import ConfigurationRequest
from atalanta.kernel.settings.settings_change import SettingsChange
from atalanta.node.clock import Clock
from atalanta.runtime.clock import system_clock, utc_text
from atalanta.runtime.directories import ThreadDirectories
from atalanta.runtime.disk.disk_monitor import DiskMonitor
from atalanta.runtime.disk.reserve import DiskReserve
from atalanta.runtime.driver import Driver
from atalanta.runtime.ids import SystemIds
from atalanta.runtime.lifecycle.lifecycle import ActiveMember, Lifecycle
from atalanta.runtime.lifecycle.reloader import ReloadDone, Reloaded, ReloadRefused
from atalanta.runtime.net.acceptor import Listen
from atalanta.runtime.net.acceptors import AcceptorRefused, Acceptors
from atalanta.runtime.net.limits import Limits
from atalanta.runtime.net.links import LoopLinks
from atalanta.runtime.net.tcp import Connections
from atalanta.runtime.passwords import ThreadPasswords
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.allocator import settle_allocator, trim_allocator
from atalanta.runtime.process.event_loop import rest_collector, settle_collector
from atalanta.runtime.process.signals import deadly_signals
from atalanta.runtime.timers import LoopTimers
from atalanta.runtime.trace import LogTrace

if TYPE_CHECKING:
    from atalanta.runtime.lifecycle.graceful_shutdown import GracefulShutdown, ScaleDownAtStop

# Interval of checks in a stop whether disk and connections are done.
STOP_LOOK_S = 0.01
# forceFailover is answered before the node stops.
FAIL_OVER_DELAY_S = 0.1
# How long a node that stops waits for the answers of the members that it hands its service to.
HAND_OVER_S = 2.0
# Why a run ends.
PAUSED = "paused"
LEFT = "left"


class StoppableDisk(Protocol):
    """The disk as the shell uses it; the node uses the Disk port."""

    def idle(self) -> bool:
        """Returns whether every requested commit was answered."""

    def close(self) -> None:
        """Releases files, lock and threads."""


class Shell(Process):
    """Owns the ports of one node. Create it inside the event loop that will run it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits | None = None,
        trace: LogTrace | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.loop = loop
        self.limits = limits or Limits()
        self.trace = trace or LogTrace()
        self.clock = clock or system_clock()
        self.ids = SystemIds()
        self.driver = Driver(loop, self.clock, self._on_bug, self._on_failed)
        self.connections = Connections(loop, self.driver, self.limits)
        self.timers = LoopTimers(loop, self.clock, self.driver.callback(NodeInputs.on_timer))
        self.links = LoopLinks(self.connections, self.trace)
        self.passwords = ThreadPasswords(loop, self.driver)
        self.directories = ThreadDirectories(loop, self.driver)
        self.acceptors = Acceptors(self.connections, self.trace)
        self._ends = ""  # PAUSED or LEFT; "" while it serves, and after another request
        self._give_store: Callable[[], None] | None = None
        # A stop signal ends a long recovery at once. Otherwise a process that is not to take over would do so.
        self.ends_in_recovery = True
        self._lifecycle = Lifecycle()
        self._disk: StoppableDisk | None = None
        self._stop = asyncio.Event()
        self._status = exit_codes.STOPPED
        self._monitor: DiskMonitor | None = None
        self._clock_check: asyncio.TimerHandle | None = None
        self._told_behind = False  # that the wall clock is far behind the node's

    def watch_disk(self, folder: Path, period_s: float, reserve: DiskReserve | None) -> None:
        """Reports the usage of the disk of `folder` to the node, from the start on, and keeps its reserve."""
        self._monitor = DiskMonitor(self.loop, self.driver, folder, period_s, reserve)

    # --- life -------------------------------------------------------------------------------------

    def bind(self, listens: Sequence[Listen]) -> None:
        """Binds the ports; OSError names a port that cannot be bound, and then none is kept."""
        self.acceptors.bind(listens)

    def listen_early(self) -> None:
        """Lets clients connect and wait until `run` has recovered the node."""
        self.acceptors.listen_early()

    async def run(
        self,
        node: NodeInputs,
        disk: StoppableDisk,
        ready: Callable[[list[str]], None],
        lifecycle: Lifecycle,
    ) -> int:
        """Drives `node` until a stop and returns the exit status. `ready` gets "acceptor=host:port" words.

        Errors of recovery are raised, after everything was closed.
        """
        self._disk = disk
        self._lifecycle = lifecycle
        self.driver.attach(node)
        try:
            settle_allocator()
            rest_collector()
            try:
                with deadly_signals() if self.ends_in_recovery else nullcontext():
                    self.driver.recover()
            finally:
                settle_collector()
                trim_allocator()
            await self._serve(ready)
        finally:
            self.driver.detach()
            self._close_everything()
            # Closed transports report it in the next event-loop iteration.
            await asyncio.sleep(0)
        self.trace.event("node_stopped", {"status": self._status})
        return self._status

    async def _serve(self, ready: Callable[[list[str]], None]) -> None:
        lifecycle = self._lifecycle
        self._check_clock()
        self.driver.post(NodeInputs.start)
        if lifecycle.analyzer is not None:
            lifecycle.analyzer.start()
        if self._monitor is not None:
            self._monitor.start()
        if not self._stop.is_set():
            # A node that continues a scale-down after a crash accepts no clients.
            if lifecycle.scale_down is None or not lifecycle.scale_down.frozen:
                await self.acceptors.accept()
            listening = self.acceptors.addresses()
            self.trace.event("node_ready", {"acceptors": " ".join(listening)})
            ready(listening)
            if lifecycle.reloader is not None:
                lifecycle.reloader.start()
        await self._stop.wait()
        deposed = lifecycle.member is not None and lifecycle.member.deposed
        if self._status == exit_codes.STOPPED and not deposed:
            await self._stop_gracefully()

    def request_stop(self, why: str) -> None:
        """Asks for a graceful stop; `run` returns when it is done."""
        if not self._stop.is_set():
            self.trace.event("node_stopping", {"why": why})
            self._stop.set()

    @property
    def paused(self) -> bool:
        """Returns whether the node stops in order to start again."""
        return self._ends == PAUSED

    @property
    def left(self) -> bool:
        """Returns whether the node stops because it has given its messages away."""
        return self._ends == LEFT

    def pause(self, why: str) -> bool:
        """Asks for a stop with a later start: the shell waits for no clients and does not scale down.

        Returns False, without effect, if the node already stops or scales down.
        """
        scale_down = self._lifecycle.scale_down
        leaves = scale_down is not None and (scale_down.frozen or scale_down.under_way())
        if leaves or self._stop.is_set():
            return False
        self._ends = PAUSED
        self.request_stop(why)
        return True

    def request_reload(self, why: str, done: ReloadDone | None = None) -> None:
        """Reads the configuration again; no effect while the node stops."""
        reloader = self._lifecycle.reloader
        if reloader is not None and not self._stop.is_set():
            reloader.request(why, done)

    def reload(self, why: str, done: Callable[[int, str], None]) -> None:
        """Implements Process.reload."""
        self.request_reload(why, lambda problem: self.driver.post(NodeInputs.on_reload_done, done, problem))

    def change_settings(self, token: int, change: SettingsChange) -> None:
        """Implements Process.change_settings."""
        reloader = self._lifecycle.reloader
        write = self._lifecycle.change_settings
        if reloader is None or write is None:
            super().change_settings(token, change)
        else:
            reloader.change(lambda: write(change), partial(self.driver.callback(NodeInputs.on_settings_changed), token))

    def operate_users(self, token: int, operation: UserOperation) -> None:
        """Implements Process.operate_users."""
        users, reloader = self._lifecycle.users, self._lifecycle.reloader
        if users is None or reloader is None:
            super().operate_users(token, operation)
        else:
            reloader.change(
                lambda: users(operation),
                lambda answer, why: self.driver.post(NodeInputs.on_users, token, answer or UserAnswer(why)),
            )

    def operate_configuration(self, token: int, request: ConfigurationRequest) -> None:
        """Implements Process.operate_configuration."""
        begin, reloader = self._lifecycle.configuration, self._lifecycle.reloader
        if begin is None or reloader is None:
            super().operate_configuration(token, request)
        else:
            reloader.attempt(
                begin(request), lambda answer: self.driver.post(NodeInputs.on_configuration, token, answer)
            )

    def stop_later(self, delay_ns: int, why: str) -> None:
        """Implements Process.stop_later."""
        self.loop.call_later(delay_ns / 1e9, self._stop_left, why)

    def _stop_left(self, why: str) -> None:
        if not self._stop.is_set():
            self._ends = LEFT
            self.request_stop(why)

    def fail_over(self) -> None:
        """Implements Process.fail_over."""
        if self._give_store is None:
            super().fail_over()
        else:
            self.loop.call_later(FAIL_OVER_DELAY_S, self._give_store)

    def give_store_with(self, give: Callable[[], None]) -> None:
        """Sets the function that gives the node's store to its backup."""
        self._give_store = give

    def apply(self, reloaded: Reloaded) -> None:
        """Applies a configuration to the node, and to acceptors and TLS connections from now on. ReloadRefused: an
        acceptor cannot be opened or closed, and nothing has changed."""
        scale_down = self._lifecycle.scale_down
        if scale_down is None or not scale_down.frozen:  # else nobody is to come any more
            try:
                self.acceptors.change(reloaded.acceptors)
            except AcceptorRefused as refusal:
                raise ReloadRefused([str(refusal)], reloaded.files) from refusal
        self.links.secure_again(reloaded.connectors)
        self.driver.post(NodeInputs.on_reload, reloaded.config)

    def accept_no_more(self) -> None:
        """Implements Process.accept_no_more: the operating system refuses new connections."""
        self.acceptors.close_all()

    def start_acceptor(self, name: str) -> None:
        """Implements Process.start_acceptor."""
        try:
            self.acceptors.start(name)
        except AcceptorRefused as refusal:
            raise BrokerError(ILLEGAL_STATE, str(refusal)) from refusal

    def stop_acceptor(self, name: str) -> None:
        """Implements Process.stop_acceptor."""
        try:
            self.acceptors.stop(name)
        except AcceptorRefused as refusal:
            raise BrokerError(ILLEGAL_STATE, str(refusal)) from refusal

    async def _leave(self, scale_down: ScaleDownAtStop) -> None:
        """Scales the node down; clients are served until the target is known. A member in sync takes the service."""
        member = self._lifecycle.member
        at_stop = scale_down.wanted_at_stop() and (member is None or not member.has_successor())
        if at_stop and not scale_down.under_way() and not scale_down.frozen:
            self.driver.post(NodeInputs.leave)
        while scale_down.under_way() and not self.driver.broken:
            await asyncio.sleep(STOP_LOOK_S)
        wanted = at_stop or scale_down.frozen
        if wanted and scale_down.left() and self._status == exit_codes.STOPPED:
            self._status = exit_codes.MESSAGES_LEFT

    async def _let_clients_leave(self, leaving: GracefulShutdown) -> None:
        self.acceptors.close_all()
        if not leaving.all_gone():
            self.trace.event("stop_waits_for_clients", {"clients": leaving.clients()})
            await self._until(leaving.all_gone, leaving.deadline(self.loop.time()))

    async def _stop_gracefully(self) -> None:
        lifecycle = self._lifecycle
        if lifecycle.graceful_shutdown is not None and not self.paused:
            await self._let_clients_leave(lifecycle.graceful_shutdown)
        if lifecycle.scale_down is not None and not self.paused:
            await self._leave(lifecycle.scale_down)
        deadline = self.loop.time() + self.limits.stop_deadline_s
        self.acceptors.close_all()
        self.links.close()
        self.driver.post(NodeInputs.stop)
        self.driver.end_turn()
        arriving = lifecycle.arriving
        if arriving is not None:
            patience_s = self.loop.time() + self.limits.stop_arrivals_s
            await self._until(lambda: not arriving(), min(deadline, patience_s))
        await self._until(self._disk_idle, deadline)
        # Output that waited for the last commit is written before the connections close.
        self.driver.end_turn()
        self.connections.close_all("the node stops")
        # Closed sessions may append further records.
        await self._until(lambda: self.connections.all_closed() and self._disk_idle(), deadline)
        if not self.connections.all_closed():
            self.trace.event("stop_slow", {"connections": len(self.connections)})
        if lifecycle.member is not None:
            await self._hand_over(lifecycle.member)

    async def _hand_over(self, member: ActiveMember) -> None:
        """Gives the service to another member of the group, if one has everything: it need not wait for a lease."""

        def done() -> bool:
            member.hand_over(self.clock.now())
            self.driver.end_turn()
            return member.handed_over or not member.has_successor()

        await self._until(done, self.loop.time() + HAND_OVER_S)

    def _disk_idle(self) -> bool:
        return self._disk is None or self._disk.idle()

    async def _until(self, done: Callable[[], bool], deadline: float) -> None:
        while not done() and self.loop.time() < deadline and not self.driver.broken:
            await asyncio.sleep(STOP_LOOK_S)

    # --- ends without a request -------------------------------------------------------------------

    def _on_bug(self, what: str) -> None:
        self._status = exit_codes.BUG
        self.connections.abort_all()
        self._stop.set()

    def _on_failed(self, why: str) -> None:
        member = self._lifecycle.member
        if member is not None and member.deposed:  # the process goes on, as a follower
            self.trace.event("node_stopping", {"why": why})
        else:
            self.trace.event("node_failed", {"why": why})
            self._status = exit_codes.DISK_FAILED
        self.connections.abort_clients()
        self._stop.set()

    # --- housekeeping -----------------------------------------------------------------------------

    def begin_clock(self, last_ns: int) -> None:
        """Begins the clock of the node to come: not before `last_ns`, the last instant of its predecessor's."""
        ahead_ns = self.clock.begin(last_ns)
        if ahead_ns:
            self.trace.event(
                "clock_given_back",
                {
                    "predecessor": utc_text(last_ns),
                    "begins": utc_text(self.clock.now()),
                    "what_to_do": "one of the two machines has a wrong time: keep the clocks of all machines together,"
                    " with NTP. What the predecessor has scheduled or let expire goes by its own clock until then",
                },
            )

    def _check_clock(self) -> None:
        step_ns = self.clock.follow_wall()
        if step_ns > 0:
            self.trace.event("clock_stepped", {"ahead_ms": step_ns // 1_000_000})
            self.timers.rearm()
        elif step_ns < 0 and not self._told_behind:
            self.trace.event(
                "clock_set_back",
                {
                    "behind_ms": -step_ns // 1_000_000,
                    "what_to_do": "the node's clock runs on: scheduled messages come early and messages expire early by"
                    " this. Set the machine's clock right with NTP, or start the node again or hand over: it begins"
                    " with the machine's clock then",
                },
            )
        self._told_behind = step_ns < 0
        self._clock_check = self.loop.call_later(self.limits.clock_check_s, self._check_clock)

    def _close_everything(self) -> None:
        if self._clock_check is not None:
            self._clock_check.cancel()
        if self._monitor is not None:
            self._monitor.stop()
        if self._lifecycle.reloader is not None:
            self._lifecycle.reloader.close()
        self.acceptors.close_all()
        self.links.close()
        self.timers.clear()
        self.connections.abort_all()
        self.passwords.close()
        self.directories.close()
        self.connections.handshakes.close()
        self.connections.hang_ups.close()
        if self._disk is not None:
            self._disk.close()
        if self._lifecycle.analyzer is not None:
            self._lifecycle.analyzer.stop()
