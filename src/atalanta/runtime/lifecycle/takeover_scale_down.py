"""The scale-down of a backup that has taken over: it empties itself into another member of the cluster.

Source: SharedStoreBackupActivation and SharedNothingBackupActivation of Artemis, which stop the server for that.
Differences: without a target this node serves, and tries again later. Afterwards it serves on, without messages, in the
next run, until its primary is back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from atalanta.cluster.inputs import NodeInputs
from atalanta.runtime.lifecycle.graceful_shutdown import ScaleDownAtStop

if TYPE_CHECKING:
    from atalanta.runtime.shell import Shell

LOOK_S: Final = 0.05
RETRY_S: Final = 30.0


class LeavingNode(Protocol):
    """A node that may give all its messages away."""

    @property
    def scale_down(self) -> ScaleDownAtStop | None:
        """The scale-down of the node, None without a cluster."""


class TakeoverScaleDown:
    """The scale-down of one active run. `wanted`: this is a backup, and its file says so."""

    def __init__(self, shell: Shell, wanted: bool) -> None:
        self._shell = shell
        self._wanted = wanted
        self._resumed = False
        self._scale_down: ScaleDownAtStop | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, node: LeavingNode, tries: bool) -> None:
        """Begins when the node serves. `tries` False: this run serves what an earlier one could not move."""
        scale_down = self._scale_down = node.scale_down
        self._resumed = scale_down is not None and scale_down.frozen  # what another process has begun
        if scale_down is not None and self._wanted and tries and not self._resumed and scale_down.left():
            self._task = self._shell.loop.create_task(self._empty(scale_down))

    def end(self) -> None:
        """Ends with the run."""
        if self._task is not None:
            self._task.cancel()

    @property
    def has_ended_run(self) -> bool:
        """Returns whether the run has ended because of it: the process goes on."""
        return self._shell.left and (self._wanted or self._resumed)

    def messages_left(self) -> bool:
        """Returns whether messages are still on the node."""
        return self._scale_down is not None and self._scale_down.left() > 0

    async def _empty(self, scale_down: ScaleDownAtStop) -> None:
        """Gives all messages to another member, as soon as there is one. Then the node ends by itself."""
        while not scale_down.frozen:
            self._shell.driver.post(NodeInputs.leave)
            while scale_down.under_way() and not scale_down.frozen:
                await asyncio.sleep(LOOK_S)
            if not scale_down.frozen:
                await asyncio.sleep(RETRY_S)
