"""The passive run of a node with a shared store: its ports are bound, and it waits until it may take the store.

A port that is bound and does not listen refuses clients, so they go on to the next server of their list. As soon as
the store may be taken, the ports listen: clients that lost the former node wait in the backlog until this node has
read its journal, instead of trying again after their retry interval.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import sys
from collections.abc import Callable
from typing import Final

from atalanta.app.running_node import BoundPorts
from atalanta.app.startup_error import StartupError
from atalanta.ha.folder_lease import ACTIVE, STOPPED
from atalanta.ha.policy import PRIMARY, HaPolicy
from atalanta.runtime.disk.folder_lock import DataFolderDamaged
from atalanta.runtime.ha.holder_watch import HolderWatch
from atalanta.runtime.ha.pair_members import PairMembers
from atalanta.runtime.ha.shared_store import HeldEpoch, SharedStore, StoreView, look_at_store
from atalanta.runtime.ha.store_requests import PROMOTE, take_request
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.app")

LOOK_S: Final = 0.05
NOT_ALLOWED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
# A backup lets a waiting primary go first: after a failback both see that the store is free.
PRIMARY_FIRST_S: Final = 1.0
RETRY_S: Final = 1.0


class StoreWait:
    """The wait of a process for the store. It may need several passive runs, which bind the ports anew.

    `told`: the last thing that was told; it is not told once more. `failing`: the last attempt to take the store has
    failed. `waited`: another process had the store meanwhile.
    """

    def __init__(self, policy: HaPolicy, monotonic_ns: Callable[[], int], wait_ms: int = -1) -> None:
        """A primary waits for `wait_ms` at most, -1 for ever."""
        waits_ns = wait_ms * 1_000_000 if policy.role == PRIMARY and wait_ms >= 0 else sys.maxsize
        self.until_ns = monotonic_ns() + waits_ns
        self.told = ""
        self.failing = False
        self.waited = False


class PassiveRun:
    """One run with bound ports. A stop signal, or a lost network, ends it."""

    def __init__(
        self,
        store: SharedStore,
        policy: HaPolicy,
        members: PairMembers,
        title: str,
        monotonic_ns: Callable[[], int],
        store_wait: StoreWait,
    ) -> None:
        """`title` names this process for people."""
        self.store = store
        self.policy = policy
        self.members = members
        self.title = title
        self.paused = False
        self.again = False  # the ports listen, and the store was not taken: they must be bound anew
        self.timed_out = False
        self.primary = policy.role == PRIMARY
        self._monotonic_ns = monotonic_ns
        self._wait = store_wait
        self._wake = asyncio.Event()
        self._stopping = ""
        self._listens = False
        self._free_since_ns = -1
        self._began_ns = monotonic_ns()
        self._locked = False  # the holder was seen to live
        self._ports: BoundPorts | None = None
        self._watch = HolderWatch(asyncio.get_running_loop(), self._wake.set, self._let_clients_wait)

    # --- asked by the network watch ---------------------------------------------------------------

    def pause(self, why: str) -> bool:
        """Ends the wait in order to begin again."""
        self.paused = True
        self.request_stop(why)
        return True

    def request_stop(self, why: str) -> None:
        """Ends the wait."""
        if not self._stopping:
            self._stopping = why
            log_event(log, "node_stopping", {"why": why})
        self._wake.set()

    def request_reload(self, why: str) -> None:
        """Changes nothing: the files are read again when this node becomes active."""

    # --- the wait ---------------------------------------------------------------------------------

    async def wait(self, ports: BoundPorts, waiting: Callable[[StoreView], None]) -> HeldEpoch | None:
        """Returns the epoch when it was taken, None after a stop or the longest wait, or with `again`.

        `waiting` is called once if the store is not free.
        """
        self._ports = ports
        try:
            while not self._stopping and not self.again:
                held = await self._try(ports, waiting)
                if held is not None:
                    return held
                if self._has_waited():
                    self.timed_out = True
                    return None
                await self._pause()
        finally:
            self._watch.close()
        return None

    def _has_waited(self) -> bool:
        """Returns whether the longest wait is over. It never ends before one can know whether a silent holder lives."""
        now_ns = self._monotonic_ns()
        known = self._locked or now_ns >= self._began_ns + self.policy.lease_ms * 2_000_000
        return known and now_ns >= self._wait.until_ns

    async def _pause(self) -> None:
        """Waits for the next look; the end of the holder's process, or a stop, ends it."""
        try:
            await asyncio.wait_for(self._wake.wait(), LOOK_S)
        except TimeoutError:
            return
        if not self._stopping:
            self._wake.clear()

    async def _try(self, ports: BoundPorts, waiting: Callable[[StoreView], None]) -> HeldEpoch | None:
        try:
            await self.members.beat()
            view = await asyncio.to_thread(self.store.look)
            self._locked = view.locked
            self.store.announced(self.members.announcement.since_ns)
        except OSError as error:
            if error.errno in NOT_ALLOWED and not self.store.reached:
                line = f"the shared store {self.store.journal} cannot be used: {error}: this user has to write there"
                raise StartupError(exit_codes.DISK_FAILED, [line]) from error
            await self._failed(error)
            return None
        self.store.reached = True
        self._watch.follow(view.lock if view.state == ACTIVE else None)
        why = self._may_take(view)
        if not why:
            if not self.store.has_begun(view.epoch):
                self._waits(view, waiting)
            return None
        if not self._wait.failing:
            self._listen(ports)
            log_event(log, "store_free", {"epoch": view.epoch, "why": why})
        try:
            held = await asyncio.to_thread(self.store.take, self.title)
        except DataFolderDamaged as damaged:
            raise StartupError(exit_codes.BAD_DATA, [str(damaged)]) from damaged
        except OSError as error:
            self._wait.failing = True
            self.again = self._listens
            await self._failed(error)
            return None
        self._wait.failing = False
        if held is None:
            self._wait.waited = True
            self._wait.told = ""  # somebody else is waited for
            self.again = self._listens
            log_event(log, "store_taken_by_another", {"epoch": view.epoch + 1})
        return held

    def _waits(self, view: StoreView, waiting: Callable[[StoreView], None]) -> None:
        """Tells once that the store is not free: as soon as its holder is known, or was unknown for a lease."""
        self._wait.failing = False
        self._wait.waited = True
        unknown = view.epoch > 0 and view.record is None  # its holder writes the record after it has made the epoch
        if unknown and self._monotonic_ns() < self._began_ns + self.policy.lease_ms * 1_000_000:
            return
        if self._wait.told != "waits":
            self._wait.told = "waits"
            waiting(view)

    def _listen(self, ports: BoundPorts) -> None:
        self._listens = True
        ports.listen_early()

    def _let_clients_wait(self) -> None:
        """Lets clients wait as soon as the holder's process has ended, in the thread that has noticed it.

        Not after a stop in good order: then no backup serves, and clients must be refused.
        """
        ports = self._ports
        with contextlib.suppress(OSError):  # the next look reports it
            if ports is not None and look_at_store(self.store.journal).state == ACTIVE:
                self._listen(ports)

    def _may_take(self, view: StoreView) -> str:
        """Returns the reason why the store may be taken now, "" if it may not."""
        now_ns = self._monotonic_ns()
        why = self.store.may_take(view, self.primary or self._promoted(view), now_ns)
        if not why:
            self._free_since_ns = -1
            return ""
        if self._free_since_ns < 0:
            self._free_since_ns = now_ns
        if not self.primary and view.released and self.members.primary_waits():
            waited_s = (now_ns - self._free_since_ns) / 1e9
            return why if waited_s >= PRIMARY_FIRST_S else ""
        return why

    def _promoted(self, view: StoreView) -> bool:
        """Returns whether an operator wants this backup to serve, though the primary was stopped."""
        return view.state == STOPPED and take_request(self.store.journal, PROMOTE)

    async def _failed(self, error: OSError) -> None:
        """Tells once that the folder cannot be used, and waits: another try follows."""
        text = str(error)
        if text != self._wait.told:
            self._wait.told = text
            log_event(log, "store_unreadable", {"why": text})
        await asyncio.sleep(RETRY_S)
