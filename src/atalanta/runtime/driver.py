"""The driver of the node: passes it every input of an event-loop iteration, then one flush, then one write per
connection.

An exception from the node is a bug inside the kernel: the node itself handles the errors of peers, and exceptions of
commands that have not changed the kernel yet (kernel/command.py), by closing their connections. After a bug inside, the
state of the kernel cannot be trusted. So the driver logs the traceback, makes no further call and asks for the end of
the process. Everything confirmed until then is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol

from mypy_extensions import mypyc_attr

from atalanta.cluster.inputs import NodeInputs
from atalanta.node.clock import Clock
from atalanta.runtime.ha.epoch_lost import EpochLost
from atalanta.runtime.process.logs import log_event
from atalanta.runtime.read_pause import ReadPause

Parameters = ParamSpec("Parameters")

# Few clients wait for a commit that small, and they send nothing meanwhile: each gets its answer before any
# delivery. After larger commits an answer shares a write with the deliveries of its connection.
ANSWERED_FIRST_BYTES = 16 * 1024

logger = logging.getLogger("atalanta.runtime")


class CommittingDisk(Protocol):
    """A disk that does short commits at the end of an iteration."""

    @property
    def commit_waits(self) -> bool:
        """Returns whether there is a commit to do."""

    def end_turn(self) -> int:
        """Does the commit and passes its answer to the driver. Returns its bytes; 0 if it is done elsewhere."""

    def idle(self) -> bool:
        """Returns whether every request was answered."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Driver:
    """Serialises all events into inputs of one node."""

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
        self._hold: Callable[[], None] | None = None
        self._read_pause = ReadPause()

    def attach(self, node: NodeInputs) -> None:
        """Sets the node to drive; the caller makes no input before this."""
        self._node = node

    def detach(self) -> None:
        """Ends all calls to the node."""
        self._node = None

    def after_flush(self, write_out: Callable[[], bool]) -> None:
        """Registers a function that sends the node's output at the end of each iteration. The function returns
        whether there was any."""
        self._write_out.append(write_out)

    def disk_at_turn_end(self, disk: CommittingDisk) -> None:
        """Registers the disk; its commits follow the output of the iteration."""
        self._disk = disk

    def hold_output(self, hold: Callable[[], None]) -> None:
        """Registers a function to call before output leaves. It returns when output may leave, perhaps after a while;
        EpochLost ends the node instead."""
        self._hold = hold

    @property
    def broken(self) -> bool:
        """Returns whether there is no node to drive, or no longer."""
        return self._node is None

    def open_turn(self) -> None:
        """Requests an event-loop iteration with a flush, unless one is requested."""
        if not self._turn_open:
            self._turn_open = True
            # Runs in the loop's next iteration, after all inputs that are ready in this one.
            self._loop.call_soon(self.end_turn)

    def end_turn(self) -> None:
        """Does the one flush of an event-loop iteration. Called by the loop, and once more at the very end."""
        self._turn_open = False
        awaited = self._flush()
        disk = self._disk
        if disk is not None and not disk.idle():
            if disk.commit_waits:
                awaited = self._commit(disk) or awaited
            awaited = awaited or not disk.idle()
        pause_ns = self._read_pause.turn_ended(self._clock.monotonic_ns(), awaited or self._turn_open)
        if pause_ns:
            self._sleep(pause_ns / 1e9)

    def _commit(self, disk: CommittingDisk) -> bool:
        """Does the commit and, at once, the output that its answer causes: clients do not wait a further iteration.
        Returns whether anything was written."""
        opened = self._turn_open
        self._turn_open = True
        size = disk.end_turn()
        if size == 0:  # the worker does it
            self._turn_open = opened
            return False
        self._turn_open = False
        wrote = size <= ANSWERED_FIRST_BYTES and self._flush_answers()
        wrote = self._flush() or wrote
        if disk.commit_waits:
            # Other clients may have sent requests meanwhile that belong to the next commit.
            self.open_turn()
        return wrote

    def _flush_answers(self) -> bool:
        """Sends existing answers before new deliveries. Returns whether anything was written."""
        node = self._node
        if node is not None:
            try:
                node.flush_answers(self._clock.now())
            except Exception as error:
                self._bug("flush_answers", error)
        return self.write_all()

    def _flush(self) -> bool:
        """Flushes the node and sends its output. Returns whether anything was written."""
        node = self._node
        if node is not None:
            try:
                node.flush(self._clock.now())
            except Exception as error:
                self._bug("flush", error)
        wrote = self.write_all()
        if node is not None and node.failed is not None:
            self._node = None
            self._on_failed(node.failed)
        return wrote

    def write_all(self) -> bool:
        """Sends all output of the node. Returns whether there was any."""
        hold = self._hold
        if hold is not None:
            try:
                hold()
            except EpochLost as error:
                if self._node is not None:
                    self._node = None
                    self._on_failed(str(error))
                return False
        wrote = False
        for write_out in self._write_out:
            wrote = write_out() or wrote
        return wrote

    def _bug(self, where: str, error: Exception) -> None:
        self._node = None
        log_event(logger, "node_bug", {"input": where}, error)
        self._on_bug(f"{where}: {type(error).__name__}: {error}")

    # --- inputs; `data` is the hot one ------------------------------------------------------------

    def data(self, conn: int, data: bytes) -> None:
        """Passes received data to the node (on_data)."""
        node = self._node
        if node is None:
            return
        if not self._turn_open:  # `open_turn`, inlined
            self._turn_open = True
            self._loop.call_soon(self.end_turn)
        try:
            node.on_data(self._clock.now(), conn, data)
        except Exception as error:
            self._bug("on_data", error)

    def post(
        self,
        handler: Callable[Concatenate[Any, int, Parameters], None],
        *arguments: Parameters.args,
        **named: Parameters.kwargs,
    ) -> None:
        """Makes an input of the node: `post(NodeInputs.on_closed, number, why)` calls its `on_closed` with the time."""
        node = self._node
        if node is None:
            return
        self.open_turn()
        name = handler.__name__
        try:
            getattr(node, name)(self._clock.now(), *arguments, **named)
        except Exception as error:
            self._bug(name, error)

    def callback(self, handler: Callable[Concatenate[Any, int, Parameters], None]) -> Callable[Parameters, None]:
        """Returns a function that makes this input, for a port."""

        def made(*arguments: Parameters.args, **named: Parameters.kwargs) -> None:
            self.post(handler, *arguments, **named)

        return made

    def recover(self) -> None:
        """Runs the node's recovery. Its errors, of the disk or the data, are raised."""
        if self._node is not None:
            self._node.recover(self._clock.now())
