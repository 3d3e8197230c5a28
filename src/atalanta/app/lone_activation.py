"""The activation of a node that is alone: it serves at once."""

from __future__ import annotations

import asyncio
import logging

from atalanta.app.configuration_files import read_usable
from atalanta.app.life import ActiveRun, Life
from atalanta.app.node_config import node_config
from atalanta.app.running_node import Ready, bound_shell, run_node
from atalanta.app.storage import Storage
from atalanta.node.config import NodeConfig
from atalanta.runtime.lifecycle.reloader import ReloadRefused
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event
from atalanta.runtime.shell import Shell

log = logging.getLogger("atalanta.app")


class LoneActivation:
    """The activations of one process: the network check may stop the node and start it again several times."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._begun = 0
        self._told: list[str] = []  # why the files were refused last

    async def become_active(self, life: Life) -> ActiveRun | int | None:
        """Implements Activation.become_active. A later start reads the files again, and uses the earlier ones if these
        have problems. The data folder stays open.
        """
        self._begun += 1
        first = self._begun == 1
        if not first:
            await self._read_again(life)
        # Steps that may be refused come before the ports are bound.
        config = node_config(life.configuration, life.security, self._storage.node_id)
        shell = bound_shell(life.configuration)
        life.watch.begun(shell)
        return LoneRun(life, self._storage, shell, config, life.ready if first else lambda words: None)

    async def _read_again(self, life: Life) -> None:
        persistent = life.configuration.broker.persistence_enabled
        try:
            usable = await asyncio.to_thread(read_usable, life.configuration, self._storage)
        except ReloadRefused as error:
            if error.lines != self._told:
                self._told = list(error.lines)
                for line in error.lines:
                    log_event(log, "reload_refused", {"why": line})
        else:
            self._told = []
            life.configuration, life.security, _ = usable
            life.configuration.broker.persistence_enabled = persistent

    async def close(self) -> None:
        """Implements Activation.close."""
        self._storage.close()


class LoneRun:
    """One run of the node."""

    def __init__(self, life: Life, storage: Storage, shell: Shell, config: NodeConfig, ready: Ready) -> None:
        self.status = exit_codes.BUG  # until the run has ended without an error
        self._life = life
        self._storage = storage
        self._shell = shell
        self._config = config
        self._ready = ready

    async def run(self) -> bool:
        """Implements ActiveRun.run: the process ends with it, unless the network is lost."""
        life = self._life
        self.status = await run_node(
            self._shell, self._config, life.configuration, self._storage, self._ready, life.server
        )
        return True
