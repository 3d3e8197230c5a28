"""A machine of a simulated pair: a process that waits for the shared folder, and serves it while it holds the lease.

The rules are those of the classes in ha/folder_lease.py. This shell does what the process does around them: it looks
for the next epoch after each sync, and sends nothing while the lease by its own clock is over. A machine without the
folder runs on: what it does in the folder ends when the folder is there again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.ha import (
    NO_INSTANT,
    RELEASED,
    STOPPED,
    FolderCandidate,
    FolderHolder,
    LastInstant,
    LeaseTerms,
)
from atalanta.sim.host import HostLarge, MakeNode
from atalanta.sim.node_machine import NodeMachine
from atalanta.sim.pairs.shared_folder import Epoch, SharedFolder
from atalanta.sim.world.disk import SimDisk
from atalanta.sim.world.large_files import SimLargeFiles
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core import TransportConfiguration

LOOK_NS: Final = SECOND // 20
RENEWALS: Final = 4  # in the length of a lease
STEP_NS: Final = (100_000, 20_000_000)  # duration of one step in the folder
LOCK_SHARE: Final = 0.7  # of the crashes release the lock; the other machine notices the others by the lease
STOPPED_SHARE: Final = 0.3  # of the graceful stops are without failover


class PairMachine(NodeMachine):
    """A machine of the pair."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        port: int,
        make_node: MakeNode,
        folder: SharedFolder,
        terms: LeaseTerms,
        number: int,
    ) -> None:
        super().__init__(
            world, network, name, port, make_node, terms, number, world.random(f"pair/{name}")
        )
        self.folder = folder
        self.partner: PairMachine = self
        self.last: LastInstant = NO_INSTANT  # of the clock of the former holder
        self.candidate = FolderCandidate(self.terms)
        self.epoch: Epoch | None = None
        self.holder: FolderHolder | None = None
        self.blocked = False  # the node waits for the lease
        self.without_folder = False
        self.announced = False  # the node has announced the other machine
        # Planned faults: the next look of a commit is followed by a pause; the next takeover ends in the middle.
        self.pause_after_look_ns: int = 0
        self.dies_in_takeover = False
        self.on_died: Callable[[PairMachine], None] = ignore_death
        self._at_renewal: list[Callable[[], None]] = []
        self._at_return: list[Callable[[], None]] = []  # of the folder

    def monotonic(self) -> int:
        """Returns the time of the machine's monotonic clock."""
        return self.clock.monotonic()

    # -- the process ----------------------------------------------------------------------------
    def start(self) -> None:
        """Starts the process, which waits for the folder."""
        self.life += 1
        self.up = True
        self.candidate = FolderCandidate(self.terms)
        self.world.note(f"{self.name} waits, life {self.life}")
        self._step(self._look)

    def current(self) -> bool:
        return self.epoch is not None and self.epoch.number == self.folder.newest()

    def _step(self, call: Callable[[], None], delay_ns: int = 0) -> None:
        """Schedules a step of the process in the folder."""
        life = self.life

        def due() -> None:
            if self.life != life:
                return
            if self.paused:
                self._at_resume.append(due)
            elif self.without_folder:
                self._at_return.append(due)
            else:
                call()

        self.world.at(delay_ns + self.draw.randint(*STEP_NS) * self.disk.slow, due)

    # -- takeover -------------------------------------------------------------------------------
    def _look(self) -> None:
        if self.epoch is not None:
            return
        view = self.folder.view(self.folder.newest())
        self.candidate.on_look(self.monotonic(), view)
        if self.candidate.may_take(self.monotonic(), self.primary):
            self._step(lambda: self._take(view.epoch + 1))
        else:
            self._step(self._look, LOOK_NS)

    def _take(self, number: int) -> None:
        disk = SimDisk(self._disk_later, self.world.random(f"disk/{self.name}/{number}"))
        disk.job_max_ns = self.disk.job_max_ns
        large = SimLargeFiles(self._disk_later, self.world.random(f"large/{self.name}/{number}"))
        epoch = self.folder.make(number, disk, large)
        if epoch is None:
            self._step(self._look)
            return
        self.world.note(f"{self.name} makes epoch {number}")
        made_ns = self.monotonic()
        source = self.folder.newest_complete(number)
        since = 0 if source is None else source.number
        self.last = self.candidate.inherited_instant(made_ns, since, number, self.folder.record)
        self.epoch = epoch
        self.holder = FolderHolder(self.terms, number, f"{self.name}/{self.life}")
        self.clock.stood_still = False
        self._renew()
        self._step(lambda: self._inherit(made_ns, source))

    def _inherit(self, made_ns: int, source: Epoch | None) -> None:
        epoch = self._held()
        wait_ns = self.candidate.wait_ns(made_ns, self.folder.view(epoch.number - 1))
        if self.dies_in_takeover:
            self.dies_in_takeover = False
            self.crash()
            self.on_died(self)
            return
        if source is not None:
            self.folder.inherit(source, epoch)
        self._step(lambda: self._complete(made_ns + wait_ns))

    def _complete(self, at_ns: int) -> None:
        """Completes the epoch and serves it, once every earlier lease is over."""
        if not self.may_confirm():
            self._lose()
        elif self.monotonic() < at_ns:
            self._step(lambda: self._complete(at_ns))
        else:
            self._held().complete = True
            self._step(self._serve)

    def _serve(self) -> None:
        if not self.may_confirm():
            self._lose()
            return
        epoch = self._held()
        self.disk = epoch.disk
        self.large = epoch.large
        self.large.attach(HostLarge(self))
        self.announced = False
        self.begin_service(self.last)
        self.run_node()
        self.announce()

    def announce(self) -> None:
        """Announces the other machine as the backup, once its process runs."""
        if self.node is not None and self.partner.up and not self.announced:
            self.announced = True
            partner = self.partner
            backup = TransportConfiguration.tcp(partner.name, partner.address, partner.port)
            self.give(lambda node: node.on_backups(self.now(), {"sim": backup}))

    def _held(self) -> Epoch:
        assert self.epoch is not None
        return self.epoch

    # -- the lease ------------------------------------------------------------------------------
    def next_exists(self) -> bool:
        """Looks for the next epoch."""
        return self.folder.newest() > self._held().number

    def may_confirm(self) -> bool:
        """Returns True if what was synced before may be confirmed."""
        holder = self.holder
        return holder is not None and holder.may_confirm(self.next_exists())

    def _renew(self) -> None:
        holder, epoch = self.holder, self.epoch
        if holder is None or epoch is None:
            return
        sent_ns = self.monotonic()
        # Until its node begins, nobody has seen any other clock than that of the former holder.
        record = holder.next_record(self.last.at(sent_ns) if self.node is None else self.now())

        def write() -> None:
            epoch.record = record
            self._step(look)

        def look() -> None:
            holder.on_renewed(sent_ns, self.next_exists())
            if holder.lost:
                self._lose()
                return
            self.announce()
            self._step(self._renew, self.terms.length_ns // RENEWALS)
            self._renewed()

        self._step(write)

    def _renewed(self) -> None:
        """Lets a node go on that has waited for the lease."""
        holder = self.holder
        if self.blocked and holder is not None and holder.may_deliver(self.monotonic()):
            self.blocked = False
            self.send_out()
            waiting, self._at_renewal = self._at_renewal, []
            for call in waiting:
                call()

    def _lose(self) -> None:
        """Ends the node: the epoch is lost. The process runs again soon, and waits."""
        self.world.note(f"{self.name} has lost epoch {self._held().number}")
        self.losses += 1
        self.crash()
        self._again_later()

    def _committed(self, token: int) -> None:
        """Looks for the next epoch after the sync, then gives the result to the node."""
        if self.paused:
            self._at_resume.append(lambda: self._committed(token))
            return
        if self.node is None:
            return
        if not self.may_confirm():
            self._lose()
            return
        if self.pause_after_look_ns:
            self.pause(self.pause_after_look_ns, True)
        super()._committed(token)

    def may_deliver(self) -> bool:
        return (
            self.node is not None
            and self.holder is not None
            and self.holder.may_deliver(self.monotonic())
        )

    def send_out(self) -> None:
        """Sends what the node has written, if the lease holds. Otherwise the node waits."""
        if self.outbox and not self.may_deliver():
            self.blocked = True
        else:
            super().send_out()

    # -- the end --------------------------------------------------------------------------------
    def crash(self) -> None:
        """Ends the process at once. Its lock is free then, unless the machine is without the folder."""
        super().crash()
        if self.epoch is not None and not self.without_folder:
            self.epoch.locked = self.draw.random() >= LOCK_SHARE
        self.forget()

    def stop(self) -> None:
        """Stops in good order, with or without failover. A node that may send nothing just ends."""
        self.end_in_order(STOPPED if self.draw.random() < STOPPED_SHARE else RELEASED)

    def end_in_order(self, state: str) -> None:
        holder, epoch = self.holder, self.epoch
        hindered = self.paused or self.blocked or self.without_folder
        if holder is None or epoch is None or hindered or not self.may_deliver():
            self.crash()
            return
        super().stop()
        epoch.record = holder.next_record(self.now(), state)
        epoch.locked = False
        self.forget()

    def forget(self) -> None:
        self.epoch = None
        self.holder = None
        self._at_renewal = []
        self._at_return = []
        self.blocked = False
        self.pause_after_look_ns = 0
        super().forget()

    # -- faults ---------------------------------------------------------------------------------
    def pause(self, length_ns: int, clock_stands: bool) -> None:
        self.pause_after_look_ns = 0
        super().pause(length_ns, clock_stands)

    def lose_folder(self, length_ns: int) -> None:
        if not self.without_folder:
            self.world.note(f"{self.name} is without the folder for {length_ns} ns")
            self.without_folder = True
            self.world.at(length_ns, self.find_folder)

    def find_folder(self) -> None:
        """Ends what the machine began in the folder: it is there again."""
        self.without_folder = False
        waiting, self._at_return = self._at_return, []
        for call in waiting:
            call()

    def holds_back(self, call: Callable[[], None]) -> bool:
        if super().holds_back(call):
            return True
        if self.blocked:
            self._at_renewal.append(call)
        return self.blocked

    def _disk_later(self, delay_ns: int, call: Callable[[], None]) -> None:
        def due() -> None:
            if self.without_folder:
                self._at_return.append(due)
            else:
                call()

        self.world.at(delay_ns, due)

    def on_accepted(self, conn: int, port: int) -> None:
        if not self.current():
            self.network.outdate(self, self.succeeded_at if self.clock.stood_still else 0)
        super().on_accepted(conn, port)


def ignore_death(machine: PairMachine) -> None:
    """Does nothing when a machine dies in a takeover."""
