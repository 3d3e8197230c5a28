"""Calls the node: every input of a loop turn, then one flush, then one write a connection.

An exception that comes out of the node is a bug (it turns protocol errors of peers into the end of
their connection itself): the state of the kernel can no longer be trusted, so the driver logs the
traceback, makes no further call and asks for the end of the process. What was confirmed until then
is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from atalanta.runtime.clock import Clock
from atalanta.runtime.input_coalescing import InputCoalescing
from atalanta.runtime.inputs import NodeInputs
from atalanta.runtime.process.logs import log_event

if TYPE_CHECKING:
    from atalanta.node.config import NodeConfig

# Few wait for a commit that small, and those who do send nothing meanwhile: each gets its answer before anything is
# delivered. After larger ones an answer shares a write with the deliveries of its connection.
ANSWERED_FIRST_BYTES = 16 * 1024

logger = logging.getLogger("atalanta.runtime")


class CommittingDisk(Protocol):
    """A disk that leaves short commits to the end of a turn."""

    @property
    def commit_waits(self) -> bool:
        """Whether there is one."""

    def end_turn(self) -> int:
        """Does it and gives its answer to the driver; how many bytes it had, 0 for none."""

    def idle(self) -> bool:
        """Whether nothing that was asked of it is still to be answered."""


class Driver:
    """Serialises everything that happens into inputs of one node."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        on_bug: Callable[[str], None],
        on_failed: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._on_bug = on_bug
        self._on_failed = on_failed
        self._sleep = sleep
        self._node: NodeInputs | None = None
        self._turn_open = False
        self._write_out: list[Callable[[], bool]] = []
        self._disk: CommittingDisk | None = None
        self._coalescing = InputCoalescing()

    def attach(self, node: NodeInputs) -> None:
        """The node to drive; inputs before this are an error of the caller."""
        self._node = node

    def detach(self) -> None:
        """No further call to the node."""
        self._node = None

    def after_flush(self, write_out: Callable[[], bool]) -> None:
        """Registers what carries the node's outputs away at the end of each turn; it says whether there were any."""
        self._write_out.append(write_out)

    def disk_at_turn_end(self, disk: CommittingDisk) -> None:
        """Registers the disk; its commits come after what the turn writes."""
        self._disk = disk

    @property
    def broken(self) -> bool:
        """Whether there is no node to drive (any more)."""
        return self._node is None

    def _open_turn(self) -> None:
        if not self._turn_open:
            self._turn_open = True
            # Runs in the loop's next pass, after all that is ready in this one.
            self._loop.call_soon(self.end_turn)

    def end_turn(self) -> None:
        """The one flush of a loop turn; called by the loop, and once more at the very end."""
        self._turn_open = False
        awaited = self._carry_out()
        disk = self._disk
        if disk is not None and not disk.idle():
            if disk.commit_waits:
                awaited = self._commit(disk) or awaited
            awaited = awaited or not disk.idle()
        pause_ns = self._coalescing.turn_ended(self._clock.monotonic_ns(), awaited or self._turn_open)
        if pause_ns:
            self._sleep(pause_ns / 1e9)

    def _commit(self, disk: CommittingDisk) -> bool:
        """As `_carry_out`. The answer is an input, and what it brings is carried out at once: whoever waits for it
        waits no pass longer."""
        self._turn_open = True
        small = disk.end_turn() <= ANSWERED_FIRST_BYTES
        self._turn_open = False
        wrote = small and self._answer()
        wrote = self._carry_out() or wrote
        if disk.commit_waits:
            # Others may have sent something meanwhile that goes with it.
            self._open_turn()
        return wrote

    def _answer(self) -> bool:
        """As `_carry_out`, for what is said already: nothing is delivered before it is on its way."""
        node = self._node
        if node is not None:
            try:
                node.flush_answers(self._clock.now())
            except Exception as error:
                self._bug("flush_answers", error)
        return self._carry_away()

    def _carry_out(self) -> bool:
        """Whether anything was written."""
        node = self._node
        if node is not None:
            try:
                node.flush(self._clock.now())
            except Exception as error:
                self._bug("flush", error)
        wrote = self._carry_away()
        if node is not None and node.failed is not None:
            self._node = None
            self._on_failed(node.failed)
        return wrote

    def _carry_away(self) -> bool:
        wrote = False
        for write_out in self._write_out:
            wrote = write_out() or wrote
        return wrote

    def _bug(self, where: str, error: Exception) -> None:
        self._node = None
        log_event(logger, "node_bug", {"input": where}, error)
        self._on_bug(f"{where}: {type(error).__name__}: {error}")

    # --- inputs; `data` is the hot one, the others share `_call` ----------------------------------

    def data(self, conn: int, data: bytes) -> None:
        """on_data"""
        node = self._node
        if node is None:
            return
        if not self._turn_open:  # `_open_turn`, written out
            self._turn_open = True
            self._loop.call_soon(self.end_turn)
        try:
            node.on_data(self._clock.now(), conn, data)
        except Exception as error:
            self._bug("on_data", error)

    def _call(self, name: str, *arguments: object) -> None:
        node = self._node
        if node is None:
            return
        self._open_turn()
        try:
            getattr(node, name)(self._clock.now(), *arguments)
        except Exception as error:
            self._bug(name, error)

    def recover(self) -> None:
        """recover; its errors are the disk's or the data's, and go to the caller."""
        if self._node is not None:
            self._node.recover(self._clock.now())

    def start(self) -> None:
        """start"""
        self._call("start")

    def leave(self) -> None:
        """leave"""
        self._call("leave")

    def stop(self) -> None:
        """stop"""
        self._call("stop")

    def accepted(
        self,
        conn: int,
        acceptor: str,
        remote: str,
        server_name: str | None = None,
        certificate: str = "",
    ) -> None:
        """on_accept"""
        if certificate:
            self._call("on_accept", conn, acceptor, remote, server_name, certificate)
        elif server_name is None:
            self._call("on_accept", conn, acceptor, remote)
        else:
            self._call("on_accept", conn, acceptor, remote, server_name)

    def closed(self, conn: int, why: str) -> None:
        """on_closed"""
        self._call("on_closed", conn, why)

    def blocked(self, conn: int) -> None:
        """on_blocked"""
        self._call("on_blocked", conn)

    def unblocked(self, conn: int) -> None:
        """on_unblocked"""
        self._call("on_unblocked", conn)

    def dialed(self, conn: int, key: str) -> None:
        """on_dialed"""
        self._call("on_dialed", conn, key)

    def dial_failed(self, key: str, why: str) -> None:
        """on_dial_failed"""
        self._call("on_dial_failed", key, why)

    def timer(self, key: str) -> None:
        """on_timer"""
        self._call("on_timer", key)

    def datagram(self, group: str, data: bytes) -> None:
        """on_datagram"""
        self._call("on_datagram", group, data)

    def resolved(self, key: str, places: list[tuple[str, int]], why: str) -> None:
        """on_resolved"""
        self._call("on_resolved", key, places, why)

    def posted(self, key: str, files: dict[str, bytes], why: str) -> None:
        """on_posted"""
        self._call("on_posted", key, files, why)

    def committed(self, token: int) -> None:
        """on_committed"""
        self._call("on_committed", token)

    def disk_usage(self, used_fraction: float, free_bytes: int) -> None:
        """on_disk_usage"""
        self._call("on_disk_usage", used_fraction, free_bytes)

    def disk_failed(self, why: str) -> None:
        """on_disk_failed"""
        self._call("on_disk_failed", why)

    def verified(self, token: int, ok: bool) -> None:
        """on_verified"""
        self._call("on_verified", token, ok)

    def reload(self, config: NodeConfig) -> None:
        """on_reload"""
        self._call("on_reload", config)

    def large_written(self, file: int, size: int) -> None:
        """on_large_written"""
        self._call("on_large_written", file, size)

    def large_synced(self, file: int) -> None:
        """on_large_synced"""
        self._call("on_large_synced", file)

    def large_failed(self, file: int, why: str) -> None:
        """on_large_failed"""
        self._call("on_large_failed", file, why)

    def large_read(self, token: int, data: bytes) -> None:
        """on_large_read"""
        self._call("on_large_read", token, data)
