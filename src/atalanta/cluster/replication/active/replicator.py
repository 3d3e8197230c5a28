"""The active side of a group: the journal goes to the followers, and what they have decides about confirmations.

The node gives it the lsns that are on its own disk (`on_stored`), the journal gets back what may be confirmed
(`Journal.confirm`). The rules are those of `Active` (ha/replication/active.py); here are its connections, timers and
the register.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from atalanta.cluster.part import Part
from atalanta.cluster.replication.active.file_changes import (
    FileChanges,
    ReplicatedLargeFiles,
    ReplicatedPages,
)
from atalanta.cluster.replication.active.follower_stream import FollowerStream, Sources
from atalanta.cluster.replication.active.group_reports import GroupReports
from atalanta.cluster.replication.active.known_followers import KnownFollowers
from atalanta.cluster.replication.active.protocol import MemberConnection
from atalanta.cluster.replication.active.seat import ReplicationSeat
from atalanta.cluster.replication.member_codec import (
    FromFollower,
    ServiceRequest,
    SettingsFile,
    StoredFiles,
)
from atalanta.ha.register import CompareAndSet, Read, Register
from atalanta.ha.register_requests import RegisterRequests
from atalanta.ha.replication.active import Active
from atalanta.ha.replication.messages import (
    Action,
    Answer,
    Block,
    Confirm,
    Ended,
    HandOver,
    Heartbeat,
    Refusal,
    Send,
    Stop,
)
from atalanta.kernel.ports import LargeFiles, Timers, Trace
from atalanta.store.journal import Journal
from atalanta.store.pages import PageFiles
from atalanta.wire.core.transport import TransportConfiguration

TICK_TIMER: Final = "replication.tick"
PUMP_TIMER: Final = "replication.pump"
READ_TIMER: Final = "replication.register"
LOOK_TIMER: Final = "replication.look"
CHECK_TIMER: Final = "replication.check"  # set by the process before it decides about a handover
HANDOVER_TIMER: Final = "replication.handover"  # set by the process, directly before it stops for a chosen follower
# A required follower without a connection is removed from the in-sync set after this time.
GONE_NS: Final = 500_000_000
# An operator may promote a member that is not required. Nothing but the register tells this node.
LOOK_NS: Final = 2_000_000_000


class Replicator(Part):
    """The active member of a group. `on_stop(why)` ends the service of the node, `why` is "" after a handover;
    `announce` tells the cluster of the backup. `append_mark` appends any record, so that there is a block.

    `stopped` says why the service has ended, "" before; `successor` is the member that it was handed to; `deposed` says
    why another member has it against the will of this node, "" if none has.
    """

    def __init__(
        self,
        seat: ReplicationSeat,
        journal: Journal,
        pages: PageFiles | None,
        large: LargeFiles | None,
        timers: Timers,
        trace: Trace,
        append_mark: Callable[[], object],
        on_stop: Callable[[str], None],
        announce: Callable[[int, dict[str, TransportConfiguration]], None],
    ) -> None:
        self.seat = seat
        self.journal = journal
        self.timers = timers
        self.trace = trace
        self.begun: bool = False
        self._clock_ns: int = 0  # the last instant of the node's clock
        self.active: Active
        self.streams: dict[str, FollowerStream] = {}
        self.successor: str = ""
        self.deposed: str = ""
        self.followers = KnownFollowers()
        self.changes = FileChanges(journal)
        # The ports that the node uses instead of its own.
        self.pages = None if pages is None else ReplicatedPages(pages, self.changes, self._on_damaged)
        self.large = None if large is None else ReplicatedLargeFiles(large, self.changes, self._on_damaged)
        self._sources = Sources(journal, self.changes, pages, large, trace)
        self._append_mark = append_mark
        self._on_stop = on_stop
        self._announce = announce
        self.announced: str = ""
        self._register = RegisterRequests(seat.register, timers, trace, READ_TIMER)
        self._reports: GroupReports

    def register_problem(self) -> str:
        """Returns why the register cannot be read or written, "" as far as it was tried with success."""
        return self._register.problem

    # --- life -----------------------------------------------------------------------------------------------

    def begin(self, now: int) -> None:
        """Begins the epoch with the recovered journal, before anything is appended."""
        seat = self.seat
        self.active = Active(seat.follower, self._steady_ns(now), seat.drop_after_ns, seat.min_in_sync)
        if self.active.last != self.journal.last:
            raise AssertionError(f"the journal ends at {self.journal.last}, the member at {self.active.last}")
        self.journal.begin_epoch(self.active.epoch)
        self.journal.group = self
        self._reports = GroupReports(self.trace, self.in_sync(), seat.min_in_sync)
        self.begun = True
        self.timers.set(TICK_TIMER, now)
        self.timers.set(LOOK_TIMER, now + LOOK_NS)

    @property
    def epoch(self) -> int:
        """Returns the epoch of the active node."""
        return self.active.epoch

    @property
    def stopped(self) -> str:
        """Returns why the service has ended, "" before."""
        return self.active.stopped if self.begun else ""

    def in_sync(self) -> tuple[str, ...]:
        """Returns the members of the in-sync set as the register is known."""
        known = self.active.view.known
        return () if known is None else known.in_sync

    def _steady_ns(self, now: int) -> int:
        """Returns the time by which leases are counted: the node's clock may be set, and run at half speed."""
        return now if self.seat.steady_ns is None else self.seat.steady_ns()

    def serves(self, now: int) -> bool:
        """Returns whether output to clients may leave at `now`."""
        return self.active.serves(self._steady_ns(now))

    # --- the journal ------------------------------------------------------------------------------------------

    def on_stored(self, now: int, lsn: int) -> None:
        """Implements JournalGroup.on_stored."""
        self._note_appended(now)
        self._do(now, self.active.on_durable(self._steady_ns(now), lsn))

    def _note_appended(self, now: int) -> None:
        """Tells the rules what was handed to the disk: only that is sent."""
        active = self.active
        written = self.journal.written_lsn()
        if written > active.last and active.accepts():
            active.on_append(self._steady_ns(now), written)

    def after_flush(self, now: int) -> None:
        """Sends each follower what is new, at the end of a batch of inputs."""
        if self.active.stopped:
            return
        self._note_appended(now)
        unfinished = needs_block = False
        for stream in list(self.streams.values()):
            stream.pump(now)
            if stream.failed:
                self._fail(now, stream)
            elif stream.unfinished:
                unfinished = True
            elif stream.wants_block() and self.journal.idle():
                needs_block = True
        if needs_block:
            self._append_mark()
        if unfinished or needs_block:
            self.timers.set(PUMP_TIMER, now)

    def on_large_read(self, token: int, data: bytes) -> None:
        """Handles the part of a large body that a stream reads. Its tokens are negative."""
        for stream in self.streams.values():
            if stream.read_token == token:
                stream.on_large_read(data)

    # --- connections --------------------------------------------------------------------------------------------

    def on_member(self, now: int, connection: MemberConnection) -> None:
        """Begins the stream to a follower that has proven to be a member. An older connection of it ends."""
        member = connection.member
        before = self.streams.get(member)
        if before is not None:
            self._end(now, before)
            before.connection.close("the member has a newer connection")
        self.streams[member] = FollowerStream(member, connection, self.active, self._sources)
        self.active.set_asynchronous(member, connection.asynchronous)
        place = next((each.address for each in connection.connectors.values()), "")
        self.followers.on_member(now, member, connection.asynchronous, place)
        self.trace.event("replica_connected", {"member": member, "remote": connection.peer()})
        self._do(now, [self.active.offer(member)])
        if self.seat.guard is not None:
            connection.send(self.seat.guard)
        connection.send(SettingsFile(self.seat.settings()))

    def on_message(self, now: int, connection: MemberConnection, message: FromFollower) -> None:
        """Handles a message of a follower."""
        stream = self.streams.get(connection.member)
        if stream is None or stream.connection is not connection:
            return
        if isinstance(message, StoredFiles):
            stream.on_files(message)
        elif isinstance(message, Refusal):
            self._do(now, self.active.on_refusal(self._steady_ns(now), stream.member, message.epoch))
            if not self.active.stopped:
                stream.failed = "it refuses the stream, which begins again"
        elif isinstance(message, ServiceRequest):
            if message.epoch == self.epoch and not self.active.stopped:
                self.followers.on_request(stream.member)
                self.active.set_asynchronous(stream.member, False)
                self.trace.event("service_requested", {"member": stream.member})
        elif stream.begun:
            stream.on_answer(message)
            if not stream.failed and message.epoch == self.epoch:
                self.followers.on_answer(now, stream.member, message, self.active.last)
                self._do(now, self.active.on_answer(self._steady_ns(now), stream.member, message))
                # Without its lease, a member that is required would stop the service.
                leased = self.active.lease.holds(self._steady_ns(now), [stream.member])
                if leased and stream.has_caught_up(now, message.durable):
                    self._do(now, self.active.join(self._steady_ns(now), stream.member))
        if stream.failed:
            self._fail(now, stream)

    def on_gone(self, now: int, connection: MemberConnection, why: str) -> None:
        """Handles the end of a follower's connection."""
        stream = self.streams.get(connection.member)
        if stream is not None and stream.connection is connection:
            self._end(now, stream)
            self.trace.event("replica_disconnected", {"member": stream.member, "why": why})

    def _fail(self, now: int, stream: FollowerStream) -> None:
        """Ends the stream that cannot go on; the follower connects again."""
        self.trace.event("replica_stream_failed", {"member": stream.member, "why": stream.failed})
        self._end(now, stream)
        stream.connection.close(stream.failed)

    def _end(self, now: int, stream: FollowerStream) -> None:
        stream.close()
        self.streams.pop(stream.member, None)
        self.active.on_disconnected(self._steady_ns(now), stream.member)
        self.followers.on_gone(now, stream.member)

    def on_blocked(self, connection: MemberConnection, blocked: bool) -> None:
        """Records that a follower reads too slowly, or reads again."""
        stream = self.streams.get(connection.member)
        if stream is not None and stream.connection is connection:
            stream.blocked = blocked

    def on_settings_stored(self) -> None:
        """Implements Part.on_settings_stored: sends the settings to all followers, and appends a record behind them.

        A follower stores them before any later block, so it has them when it has that record.
        """
        settings = SettingsFile(self.seat.settings())
        for stream in self.streams.values():
            stream.connection.send(settings)
        self._append_mark()

    # --- time -----------------------------------------------------------------------------------------------------

    def on_timer(self, now: int, key: str) -> None:
        """Implements Part.on_timer. The timer of the pump only causes a batch of inputs."""
        if self.active.stopped:
            return
        if key == READ_TIMER:
            self._register.read()
        elif key == LOOK_TIMER:
            self.timers.set(LOOK_TIMER, now + LOOK_NS)
            if self.active.view.pending is None:
                self._register.read()
        elif key == CHECK_TIMER:
            self._register.check()
        elif key == HANDOVER_TIMER:
            self._favour_next(now)
        elif key == TICK_TIMER:
            self._tick(now)
            self.timers.set(TICK_TIMER, now + self.seat.follower.terms.length_ns // 4)

    def _tick(self, now: int) -> None:
        active = self.active
        steady_ns = self._steady_ns(now)
        self._do(now, active.on_tick(steady_ns))
        for member in active.required():
            if member not in self.streams and self.followers.gone_for_ns(now, member) >= GONE_NS:
                self._do(now, active.drop(steady_ns, member))
        self._reports.tell_waits(steady_ns, active, self._register.problem)
        self._announce_backup(now)

    # --- the register -----------------------------------------------------------------------------------------------

    def on_register(self, now: int, version: int, register: Register | None) -> None:
        """Handles the register as read, or as written."""
        if register is None:
            view = self.active.view
            new = view.pending is None
            request = view.restore() if self.seat.restores_register and not self.active.stopped else None
            if request is not None:
                if new:
                    self.trace.event("register_restored", {"epoch": self.active.epoch, "active": self.active.name})
                self._register.on_answer(settled=False)
                self._register.write(request)
                return
            self._register.on_uncertain(now, "the register does not exist: restore it")
            return
        if register.epoch < self.active.epoch and register.active not in ("", self.active.name):
            self._reports.tell_replaced(self.active.epoch, register)
        self._do(now, self.active.on_register(self._steady_ns(now), version, register))
        self._register.on_answer(settled=self.active.view.pending is None)
        if self.active.stopped:
            return  # the register may be of an epoch that is not this node's
        self._reports.tell_members(self.in_sync())
        self._announce_backup(now)

    def on_register_uncertain(self, now: int, why: str) -> None:
        """Handles that the outcome of a request is unknown: the register is read again, until it is known."""
        if not self.active.stopped:
            self._register.on_uncertain(now, why, again=self.active.view.pending is not None)

    def _announce_backup(self, now: int) -> None:
        """Announces the connectors of the follower that takes over before others: the first one in sync, else any.

        The passive members keep to this order, because clients may dial no other member.
        """
        names = [name for name in self._reports.in_sync if name in self.streams] or sorted(self.streams)
        names = [name for name in names if name not in self.active.asynchronous]
        backup = min(names, key=lambda name: (not self.streams[name].favoured, name), default="")
        if backup != self.announced:
            self.announced = backup
            self._announce(now, dict(self.streams[backup].connection.connectors) if backup else {})

    def _favour_next(self, now: int) -> None:
        """Announces the follower that is about to get the service: the one that an operator wants, else a primary."""
        wanted = self.followers.wanted
        for name, stream in self.streams.items():
            chosen = name == wanted if wanted else stream.connection.primary
            stream.favoured = chosen and name in self._reports.in_sync
        self._announce_backup(now)

    # --- handover -----------------------------------------------------------------------------------------------------

    @property
    def handed_over(self) -> bool:
        """Returns whether the successor has read that it has the service: then it closes its connection."""
        return self.successor != "" and self.successor not in self.streams

    def has_successor(self) -> bool:
        """Returns whether a follower is in sync and connected."""
        return bool(self._successors())

    def has_wanted(self) -> bool:
        """Returns whether the follower that an operator wants to serve is in sync."""
        return self.followers.wanted in self._successors()

    def _successors(self) -> list[str]:
        """Returns the followers in sync, sorted: the one that an operator wants, then the announced one."""
        ready = [name for name in self.in_sync() if name in self.streams and name not in self.active.asynchronous]
        wanted = self.followers.wanted
        return sorted(ready, key=lambda name: (name != wanted, name != self.announced, name))

    def handover_problem(self) -> str | None:
        """Returns why nobody could take over, "" if one could, None until the answer to CHECK_TIMER is known.

        A successor cannot become active without the register, and this node would serve no more.
        """
        checked = self._register.checked
        if checked:
            return f"the register cannot be read: {checked}"
        if checked == "" and self.active.view.pending is not None:
            return "a change of the register is under way"
        return checked

    def hand_over(self, now: int) -> bool:
        """Hands the service to the first of the successors, if everything is confirmed. Returns whether it was done.

        Nothing may be appended any more. Call it again while it returns False and there is time.
        """
        active = self.active
        if active.stopped or active.view.pending is not None or not self.journal.idle():
            return bool(self.successor)
        for member in self._successors():
            if active.answered.get(member, -1) >= active.last:
                self.successor = member
                self._do(now, active.hand_over(self._steady_ns(now), member))
                return True
        return False

    def _on_damaged(self, why: str, name: str, remove: Callable[[], None]) -> None:
        """Resigns because of a damaged file, if a follower in sync has it, too: this member gets it again from there.

        Once for each file, so that two damaged copies do not send the service to and fro.
        """
        if self.begun and not self.stopped and name not in self.seat.damaged and self.has_successor():
            self.seat.damaged[name] = True
            remove()
            # The kernel reads files without a time, and the end of the service needs none.
            self.resign(0, f"{why}: a member in sync has another copy")

    def resign(self, now: int, why: str) -> None:
        """Ends the service for good: a follower may take over at once."""
        self._do(now, self.active.resign(self._steady_ns(now), why))

    def _end_service(self, why: str) -> None:
        """Ends the service of the node: it has handed it over, or another member has it, or its disk failed."""
        if self.successor:
            self.trace.event("replication_handed_over", {"to": self.successor})
            self._on_stop("")
        elif self.journal.failed is None:
            self.deposed = why
            self._on_stop(f"deposed: {why}")

    # --- actions -----------------------------------------------------------------------------------------

    def _do(self, now: int, actions: list[Action]) -> None:
        self._clock_ns = max(self._clock_ns, now)
        for action in actions:
            if isinstance(action, Send):
                stream = self.streams.get(action.member)
                message = action.message
                if isinstance(message, Heartbeat | HandOver | Ended):
                    message = replace(message, clock_ns=self._clock_ns)
                if stream is not None and not isinstance(message, Block | Answer | Refusal):
                    stream.send(message)
            elif isinstance(action, Confirm):
                if action.lsn > self.journal.durable:
                    self.journal.confirm(now, action.lsn)
            elif isinstance(action, CompareAndSet):
                self._register.write(action)
            elif isinstance(action, Read):
                self._register.read()
            elif isinstance(action, Stop):
                self._end_service(action.why)
            else:
                raise AssertionError(f"{action} is not an action of an active member")
