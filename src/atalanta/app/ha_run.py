"""The part of an active run that a shared store and a group have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from atalanta.app.life import Life
from atalanta.app.node_config import node_config
from atalanta.app.running_node import NewNode, run_node
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage
from atalanta.cluster.connection.colocation_seat import ColocationSeat
from atalanta.config.problems import ConfigError
from atalanta.node.config import NodeConfig
from atalanta.runtime.lifecycle.takeover_scale_down import TakeoverScaleDown
from atalanta.runtime.process import exit_codes

if TYPE_CHECKING:
    from atalanta.node.node import Node
    from atalanta.runtime.disk.disk import FileDisk
    from atalanta.runtime.disk.memory_disk import MemoryDisk
    from atalanta.runtime.shell import Shell


class HaRun:
    """One epoch of this process. `gives`: why it is given to another process.

    `colocated`: of a process that may host backups of other members.
    """

    def __init__(self, life: Life, shell: Shell, colocated: ColocationSeat | None) -> None:
        self.life = life
        self.shell = shell
        self.colocated = colocated
        self.status = exit_codes.BUG  # until the run has ended without an error
        self.gives = ""
        self.node: Node | None = None
        self.scale_down = TakeoverScaleDown(shell, life.configuration.empties_itself)

    async def serve(self, storage: Storage, config: NodeConfig, new: NewNode | None = None) -> None:
        """Runs the node to its end; `status` is its exit status then. `new`: it was made before."""
        life = self.life
        attendance: asyncio.Task[None] | None = None

        def begun(node: Node, disk: FileDisk | MemoryDisk) -> None:
            nonlocal attendance
            self.node = node
            self.begin(node, disk)
            attendance = self.shell.loop.create_task(self.attend(node))

        try:
            self.status = await run_node(
                self.shell, config, life.configuration, storage, self._ready, life.server, begun, new, self.colocated
            )
        finally:
            if attendance is not None:
                attendance.cancel()
            self.scale_down.end()
            life.tell_web("passive")

    def configure(self, storage: Storage) -> NodeConfig:
        """Returns the configuration of the node, with the settings that are stored beside its journal."""
        life = self.life
        try:
            storage.settings.read(life.configuration)
        except ConfigError as error:
            lines = [str(problem) for problem in error.problems]
            raise StartupError(exit_codes.BAD_CONFIGURATION, lines) from error
        return node_config(life.configuration, life.security, storage.node_id)

    def begin(self, node: Node, disk: FileDisk | MemoryDisk) -> None:
        """Begins what runs beside the node, which has not recovered yet."""

    def attend(self, node: Node) -> Coroutine[None, None, None]:
        """Attends to the other processes while the node runs."""
        raise NotImplementedError

    def tries_scale_down(self) -> bool:
        """Returns whether the node is to be emptied, if the file says so: not what an earlier run could not move."""
        raise NotImplementedError

    def _ready(self, words: list[str]) -> None:
        self.on_ready()
        self.life.ready(["role=active", *words])
        if self.node is not None:
            self.scale_down.begin(self.node, self.tries_scale_down())
        # The files may have changed while this process was passive.
        self.shell.loop.call_soon(self.shell.request_reload, "the node is active")

    def on_ready(self) -> None:
        """Records that the node serves."""

    def give(self, why: str) -> None:
        """Stops the node, without a wait for its clients: they follow to the process that takes over."""
        if self.shell.pause(why):
            self.gives = why
