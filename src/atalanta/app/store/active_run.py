"""The active run of a node with a shared store: one epoch, from the taken store to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from atalanta.app.connectors import transport
from atalanta.app.ha_run import HaRun
from atalanta.app.life import Life
from atalanta.app.storage import epoch_storage
from atalanta.cluster.inputs import NodeInputs
from atalanta.ha.folder_lease import RELEASED, STOPPED
from atalanta.ha.policy import BACKUP
from atalanta.management.status import COLOCATED_POLICY, HaStatus
from atalanta.runtime.disk.message_deletion import delete_messages
from atalanta.runtime.ha.shared_store import HeldEpoch
from atalanta.runtime.ha.store_requests import HANDOVER, take_request, withdraw_requests
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.app.store.activation import SharedStoreActivation
    from atalanta.node.node import Node
    from atalanta.runtime.disk.disk import FileDisk
    from atalanta.runtime.disk.memory_disk import MemoryDisk
    from atalanta.runtime.shell import Shell

log = logging.getLogger("atalanta.app")

ATTEND_S: Final = 0.5
# A process that waits has changed its file by then, so that it is known to live.
LOOKS: Final = 4
# A store is given back when its holder has served for so long: a primary that fails again and again takes it rarely.
FAILBACK_AFTER_S: Final = 5.0


class SharedStoreRun(HaRun):
    """One epoch of this process, whose store is `held`."""

    def __init__(
        self, activation: SharedStoreActivation, life: Life, shell: Shell, held: HeldEpoch, deletes_messages: bool
    ) -> None:
        super().__init__(life, shell, activation.colocated)
        self.activation = activation
        self.held = held
        self.lost = ""
        self._deletes_messages = deletes_messages
        self._since = time.monotonic()
        self._backups: dict[str, TransportConfiguration] = {}

    async def run(self) -> bool:
        """Implements ActiveRun.run."""
        held, policy, store = self.held, self.activation.policy, self.activation.store
        log_event(log, "node_active", {"role": policy.role, "epoch": held.epoch})
        try:
            if self._deletes_messages:
                deleted = await asyncio.to_thread(delete_messages, held.journal, held.pages, held.large)
                log_event(log, "messages_deleted", {"folder": held.journal, "files": deleted})
            storage = epoch_storage(self.life.configuration, store.node_id, held)
            config = self.configure(storage)
            self.shell.begin_clock(held.last_ns())
            self.shell.ends_in_recovery = policy.equals or policy.failover_on_shutdown
            self.shell.driver.hold_output(held.hold)
            self.shell.give_store_with(lambda: self.give("an operator asked for a failover"))
            held.start(self._on_lost, self.shell.clock.now)
            withdraw_requests(store.journal)
            await self.serve(storage, config)
        finally:
            await asyncio.to_thread(self._end)
        if self.lost:
            log_event(log, "store_lost", {"epoch": held.epoch, "why": self.lost})
            return False
        if self.gives or self.scale_down.has_ended_run:
            ends = policy.role == BACKUP and not policy.restart_backup
        else:
            ends = True
        if ends and (self.gives or self.shell.left):
            self.life.watch.ended()
        return ends

    def tries_scale_down(self) -> bool:
        """Implements HaRun.tries_scale_down."""
        return not self.activation.kept_messages

    def _on_lost(self, why: str) -> None:
        """Records the loss of the epoch, from any thread, and ends the node also when it has nothing to send."""
        self.lost = why
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.shell.loop.call_soon_threadsafe(self.shell.driver.post, NodeInputs.on_disk_failed, why)

    def _end(self) -> None:
        """Tells the others how this epoch ended. After a failure the release of the lock tells it."""
        if self.lost or self.status not in (exit_codes.STOPPED, exit_codes.MESSAGES_LEFT):
            self.held.abandon()
        elif self.scale_down.has_ended_run:
            self.activation.kept_messages = self.scale_down.messages_left()
            self.held.stop(RELEASED)
        elif self.shell.paused or self.activation.policy.failover_on_shutdown:
            self.held.stop(RELEASED)
        else:
            self.held.stop(STOPPED)

    # --- the other processes ----------------------------------------------------------------------

    def begin(self, node: Node, disk: FileDisk | MemoryDisk) -> None:
        """Implements HaRun.begin."""
        node.status.ha = HaStatus(
            "Shared Store Primary" if self.colocated is None else COLOCATED_POLICY,
            True,
            self.activation.policy.failover_on_shutdown,
            self.held.epoch,
        )

    async def attend(self, node: Node) -> None:
        """Implements HaRun.attend: reads the files of the passive processes."""
        told = ""
        looks = 0
        expected = False
        while True:
            await asyncio.sleep(ATTEND_S)
            try:
                await self.activation.members.read()
                request = await asyncio.to_thread(take_request, self.activation.store.journal, HANDOVER)
            except OSError as error:
                if str(error) != told:
                    told = str(error)
                    log_event(log, "store_unreadable", {"why": told})
                continue
            self._announce()
            looks += 1
            alive = self.activation.members.alive
            # A broker of an activemq.xml is mostly alone: it misses only who was there.
            expected = expected or bool(alive) or not self.activation.policy.equals
            if looks >= LOOKS and expected:
                node.status.ha = replace(node.status.ha, waiting=tuple(each.place for each in alive))
            if request:
                self.give("an operator asked for a handover")
            elif self._gives_back():
                self.give("the primary is back")

    def _announce(self) -> None:
        """Tells the cluster which process would take over: the first backup, else a primary that waits."""
        alive = self.activation.members.alive
        connectors = alive[0].connectors if alive else {}
        backups = {name: transport(name, values) for name, values in connectors.items()}
        if described(backups) != described(self._backups):
            self._backups = backups
            self.shell.driver.post(NodeInputs.on_backups, backups)

    def _gives_back(self) -> bool:
        policy = self.activation.policy
        served_s = time.monotonic() - self._since
        wanted = any(each.wants == "failback" for each in self.activation.members.alive)
        return policy.role == BACKUP and policy.allow_failback and wanted and served_s >= FAILBACK_AFTER_S


def described(backups: dict[str, TransportConfiguration]) -> dict[str, dict[str, str]]:
    """Returns the parameters of connectors, to compare them."""
    return {name: each.parameters for name, each in backups.items()}
