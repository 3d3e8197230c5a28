"""The passive member of a group: it copies the journal and the files of the active node until it may take over.

The rules are those of `Follower` (ha/replication/follower.py); here are the connection, the timers and the register.
The same driver runs it as a node. It ends with an `outcome`: the shell then makes a node of the folder, or begins
again.

A member whose folder has no node id follows nobody yet: it asks the active node for it. A primary that finds nobody
at any other member's port makes one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.cluster.inputs import NodeInputs
from atalanta.cluster.replication.member_codec import ServiceRequest
from atalanta.cluster.replication.member_handshake import (
    ANOTHER_GROUP,
    ANOTHER_NODE_ID,
    NO_NODE_ID,
    Hello,
    Welcome,
)
from atalanta.cluster.replication.passive.active_search import SEARCH, ActiveSearch
from atalanta.cluster.replication.passive.backup_config import (
    BackupConfig,
    BackupPorts,
    BackupStatus,
    Damaged,
    MemberIdentity,
    NotTakenOver,
    TakenOver,
)
from atalanta.cluster.replication.passive.client_backlog import ClientBacklog
from atalanta.cluster.replication.passive.first_register import FirstRegister
from atalanta.cluster.replication.passive.follower_store import FollowerStore
from atalanta.cluster.replication.passive.incoming_stream import IncomingStream, StreamFailed
from atalanta.cluster.replication.passive.state import (
    ALONE,
    ASKING,
    DAMAGED,
    ENDED,
    FAILED,
    FOLLOWING,
    NAMELESS,
    OVER,
    TAKING_OVER,
)
from atalanta.ha.register import (
    CompareAndSet,
    Read,
    Register,
    RegisterRefused,
    RegisterView,
    found,
)
from atalanta.ha.register_requests import REGISTER_TIMER, RegisterRequests
from atalanta.ha.replication.block_stream import BlockRefused
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import (
    Action,
    Activate,
    Answer,
    Cut,
    Ended,
    Refusal,
    Send,
    Store,
)
from atalanta.kernel.ports import PageError
from atalanta.message.encoding.buffer import DecodeError
from atalanta.store.errors import JournalDamaged
from atalanta.store.segment import SEGMENT_VERSION
from atalanta.wire.protocol_error import ProtocolError

TICK_TIMER: Final = "backup.tick"
TICK_NS: Final = 50_000_000
# Between two reads of the register while nobody sends heartbeats.
READ_NS: Final = 500_000_000
# Clients know one backup, and may dial no other member: it takes over before the other ones.
TURN_NS: Final = 500_000_000
# At a cold start a primary goes first.
PRIMARY_FIRST_NS: Final = 300_000_000
# After this time without an active node the member tells what it waits for.
TELL_NS: Final = 5_000_000_000
LIFE_SIZE: Final = 8
REPLAY_TIMER: Final = "backup.replay"
ASKS: Final = "this member asks to become active"
PROMOTED: Final = "serve if this member is in sync"
FORCED: Final = "serve, whatever the register says"


class Backup(NodeInputs):
    """A passive member. `outcome` and `failed` end it; each is None before.

    `follower` and `store` are None in a folder without a node id, or with a damaged journal: `damage` says what is
    damaged, "" before. Such a member cannot take over. It waits for an active node, which has what it lost.
    """

    def __init__(self, config: BackupConfig, ports: BackupPorts) -> None:
        self.config = config
        self.ports = ports
        self.failed: str | None = None
        self.outcome: MemberIdentity | TakenOver | Damaged | NotTakenOver | None = None
        self.damage = ""
        self.follower: Follower | None = None
        self.store: FollowerStore | None = None
        self._register = RegisterRequests(ports.register, ports.timers, ports.trace)
        hello = Hello(
            config.member, config.node_id or NO_NODE_ID, config.group, SEGMENT_VERSION, config.connectors,
            config.primary, config.asynchronous,
        )  # fmt: skip
        self.search = ActiveSearch(
            self, config.candidates, hello, config.key, ports.wire, ports.links, ports.timers, ports.ids, ports.trace
        )
        self._stream: IncomingStream | None = None
        self._backlog = ClientBacklog(config, ports)
        self._order = ""  # of an operator: PROMOTED or FORCED
        self._last_barrier = 0  # the one before the outcome
        self._alone_since_ns = 0
        self._read_ns = 0  # when the register was read because nobody sent heartbeats
        self._version = 0  # of the register, since `_version_ns`
        self._version_ns = 0
        self._told = ""
        self._why = ""  # it asks to become active
        self._first = FirstRegister(config.learned)

    # --- life -------------------------------------------------------------------------------------

    def recover(self, now: int) -> None:
        """Reads the journal. Raises JournalForeign or OSError."""
        config, ports = self.config, self.ports
        if config.journal is None:
            return
        try:
            store = FollowerStore(ports.disk, ports.large, config.journal, ports.prepare, config.repair)
        except JournalDamaged as error:
            self._on_damage(error)
            return
        self.store = store
        store.tell_cut(ports.trace)
        view = RegisterView(ports.ids.secret(LIFE_SIZE))
        report = store.report
        epochs = tuple(report.epochs)
        follower = Follower(config.member, view, config.terms, now, epochs, report.last, config.granted_ns)
        self.follower = follower
        self._stream = IncomingStream(follower, store, self.search, ports, self._do)

    def _on_damage(self, error: JournalDamaged) -> None:
        """Records that the journal cannot be read: this member cannot take over. An active node has what is lost."""
        self.damage = str(error)
        self.ports.trace.event("journal_damaged", {"folder": self.config.folder, "why": self.damage})
        if self.search.link is not None:
            self.outcome = Damaged(self.damage)
            self._unlink(self.damage)
        elif self.follower is not None:
            self.search.search()

    def start(self, now: int) -> None:
        """Reads the register, or looks for the active node to learn the node id."""
        self._alone_since_ns = now
        self.ports.timers.set(TICK_TIMER, now + TICK_NS)
        if self.follower is None:
            self.search.search()
            self._make_identity()
        else:
            self._register.read()

    def stop(self, now: int) -> None:
        """Ends the connection to the active node."""
        self.search.halt("the member stops")

    def promote(self, now: int, lossy: bool) -> None:
        """Obeys an operator's order to serve. `lossy`: at once, in sync or not, as soon as nothing waits for the disk.

        Else the active node is asked to hand over. Without one, a member in sync takes over when the lease of the last
        one is over.
        """
        if self.damage:
            self._tell_once(f"a member with a damaged journal cannot be promoted: {self.damage}")
            return
        follower, stream = self.follower, self._stream
        if follower is None or stream is None or self._over():
            return
        self._order = FORCED if lossy else PROMOTED
        if lossy:
            self._unlink("this member was promoted")
        self._consider(now)

    def on_process_ended(self, now: int, epoch: int) -> None:
        """Handles the proof that the active process of `epoch` has ended: no lease of it is waited for."""
        if self.follower is not None and not self._over():
            self.follower.on_ended(now, Ended(epoch))
            if self.follower.epoch == epoch:
                self._backlog.on_proof(now, self.follower.promise.wait_ns)
            self._consider(now, at_once=True)

    def status(self) -> BackupStatus:
        """Returns how far the member is."""
        follower, stream = self.follower, self._stream
        if follower is None or stream is None:
            return BackupStatus(0, "", 0, 0, (), self._told)
        known = follower.view.known
        in_sync = () if known is None else known.in_sync
        active = follower.active if stream.following else ""
        behind = max(0, stream.end_lsn - follower.durable)
        return BackupStatus(follower.epoch, active, follower.durable, behind, in_sync, self._told)

    @property
    def state(self) -> str:
        """Returns the state of the member (state.py has the table)."""
        if self.failed is not None:
            return FAILED
        if self.outcome is not None:
            return ENDED
        if self._last_barrier:
            return TAKING_OVER
        if self.damage:
            return DAMAGED
        follower, stream = self.follower, self._stream
        if follower is None or stream is None:
            return NAMELESS
        if not follower.may_ask():
            return ASKING
        return FOLLOWING if stream.following else ALONE

    def _over(self) -> bool:
        """Returns whether the member has ended, or is about to: it has become active."""
        return self.state in OVER

    def _fail(self, why: str) -> None:
        if self.failed is None:
            self.failed = why
            self._unlink(why)

    # --- the node id ------------------------------------------------------------------------------

    def refusal(self, welcome: Welcome) -> str:
        """Implements SearchOwner.refusal."""
        own = self.config.node_id
        if own is not None and welcome.node_id != own and not welcome.refusal.startswith(ANOTHER_GROUP):
            return (
                f"{self.config.folder} has data of node {own.hex()}, {welcome.active} is node {welcome.node_id.hex()}: "
                f"{ANOTHER_NODE_ID}"
            )
        return welcome.refusal

    def _make_identity(self) -> None:
        """Makes the node id of a new group, if no other member can be reached."""
        if self.config.primary and not self.damage and self.search.nobody():
            self.outcome = MemberIdentity(self.ports.ids.uuid(), founded=True)
            self._unlink("this member begins a new group")

    # --- the connection ---------------------------------------------------------------------------

    def on_dialed(self, now: int, conn: int, key: str) -> None:
        """Implements NodeInputs.on_dialed."""
        self.search.on_dialed(now, conn, key)

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        """Implements NodeInputs.on_dial_failed."""
        self.search.on_dial_failed(now, key, why)
        if self._over() or not self.search.nobody():
            return
        if self.follower is None:
            self._make_identity()
        elif self._first.until_ns is not None and now < self._first.until_ns:
            self._first.until_ns = now
            self._register.read()

    def on_data(self, now: int, conn: int, data: bytes) -> None:
        """Implements NodeInputs.on_data."""
        self.search.on_data(now, conn, data)
        stream = self._stream
        if stream is not None:
            promise = stream.follower.promise
            before_ns = promise.until_ns
            self._try(now, lambda: stream.take_frames(now))
            if promise.until_ns < before_ns:  # the active node has said that it serves no more
                self._read_ns = 0
                self._consider(now)

    def on_closed(self, now: int, conn: int, why: str) -> None:
        """Implements NodeInputs.on_closed."""
        self.search.on_closed(now, conn, why)

    def on_linked(self, now: int, welcome: Welcome) -> None:
        """Implements SearchOwner.on_linked."""
        link = self.search.link
        if self.damage:
            self.outcome = Damaged(self.damage)
            self._unlink("the journal of this member is damaged")
            return
        if self.follower is None or link is None:
            self.outcome = MemberIdentity(welcome.node_id)
            self._unlink("the node id is known")
            return
        if self._first.until_ns is not None:
            self._first.serving = welcome.active
            self._unlink("the register does not exist")
            return
        self.ports.wire.logged_in(link.conn)
        self._told = ""
        self.ports.trace.event("replication_linked", {"active": welcome.active, "remote": link.remote})

    def on_link_lost(self, now: int, why: str) -> None:
        """Implements SearchOwner.on_link_lost."""
        stream = self._stream
        if stream is not None:
            if stream.following and not self._over():
                self._backlog.on_loss(now, stream.follower.promise.wait_ns)
            stream.end()
        self._alone_since_ns = now
        self._read_ns = 0
        self.ports.trace.event("replication_link_lost", {"why": why})

    def _unlink(self, why: str) -> None:
        """Ends the connection without another one: the member follows nobody."""
        self.search.halt(why)
        if self._stream is not None:
            self._stream.end()

    def _try(self, now: int, take: Callable[[], None]) -> None:
        """Lets the stream take something. After an error of the active node it begins again."""
        if self.failed is not None:
            return
        try:
            take()
        except (ProtocolError, DecodeError, BlockRefused) as error:
            self.search.drop(now, str(error))
        except PageError as page_error:
            self.ports.trace.event("replica_file_damaged", {"why": str(page_error)})
            self.search.drop(now, f"{page_error}: the active node sends it again")
        except JournalDamaged as damage:
            self._on_damage(damage)
        except StreamFailed as failure:
            self._fail(str(failure))

    # --- the disk ---------------------------------------------------------------------------------

    def on_committed(self, now: int, token: int) -> None:
        """Implements NodeInputs.on_committed. Negative tokens are those of barriers."""
        stream = self._stream
        if stream is None:
            return
        if self.failed is None and token == self._last_barrier != 0:
            self.outcome = TakenOver(stream.follower, stream.last, stream.store.replay, self._why)
        else:
            self._try(now, lambda: stream.on_committed(now, token))
            follower = stream.follower
            if follower.epoch and follower.ended == follower.epoch and follower.durable == follower.last:
                self._consider(now, at_once=True)  # the last blocks of the active node were still to be stored

    def on_disk_failed(self, now: int, why: str) -> None:
        """Implements NodeInputs.on_disk_failed."""
        if self.store is not None:
            self.store.copy.on_failed(why)
        self._fail(why)

    def on_room(self, now: int, room: bool, name: str = "") -> None:
        """Implements NodeInputs.on_room."""
        if self.store is not None:
            self.store.copy.set_room(room, name)

    def on_large_written(self, now: int, file: int, size: int) -> None:
        """Implements NodeInputs.on_large_written."""
        if self._stream is not None:
            self._stream.on_large_written(size)

    def on_large_synced(self, now: int, file: int) -> None:
        """Implements NodeInputs.on_large_synced."""
        stream = self._stream
        if stream is not None:
            self._try(now, lambda: stream.on_large_synced(now, file))

    def on_large_failed(self, now: int, file: int, why: str) -> None:
        """Implements NodeInputs.on_large_failed."""
        self._fail(f"large message file {file} cannot be written: {why}")

    def flush(self, now: int) -> None:
        """Implements NodeInputs.flush: replays some of what the disk has."""
        store = self.store
        if store is None or self._over():
            return
        try:
            if store.step():
                self.ports.timers.set(REPLAY_TIMER, now)
        except JournalDamaged as damage:
            store.end_replay()
            self._on_damage(damage)
        except (DecodeError, OSError) as error:
            store.end_replay()
            self.ports.trace.event("replica_replay_failed", {"why": str(error)})

    # --- becoming active --------------------------------------------------------------------------

    def on_timer(self, now: int, key: str) -> None:
        """Implements NodeInputs.on_timer."""
        if self._over():
            return
        if key.startswith(SEARCH):
            self.search.on_timer(now, key)
        elif key == REGISTER_TIMER:
            self._register.read()
        elif key == TICK_TIMER:
            self.ports.timers.set(TICK_TIMER, now + TICK_NS)
            if self._stream is not None and self._stream.is_silent(now):
                self.search.drop(now, "the active node has said nothing for a long time")
            self._consider(now)
            self._tell(now)
            stream = self._stream
            if stream is None or self._over():
                return
            follower = stream.follower
            if self._backlog.is_over(now, stream.following and follower.ended != follower.epoch):
                self.outcome = NotTakenOver()
            elif stream.following:
                self._try(now, lambda: stream.store.check.step(now))

    def _consider(self, now: int, at_once: bool = False) -> None:
        """Reads the register while nobody sends heartbeats: the answer decides. Obeys an operator's order."""
        follower = self.follower
        if follower is None or self.damage or self._over() or not follower.may_ask():
            return
        stream, known = self._stream, follower.view.known
        if self._order == PROMOTED and stream is not None and stream.following:
            self._order = ""
            stream.send(ServiceRequest(follower.epoch))
        elif self._order == PROMOTED and not follower.promise.is_over(now):
            return  # the active node may still serve under its lease, though the connection to it is lost
        elif self._order == FORCED or (self._order and known is not None and self.config.member in known.in_sync):
            self._do(now, follower.promote(now))
        elif self._order:
            self._order = ""
            self.ports.trace.event("promotion_refused", {"why": "this member follows nobody, and is not in sync"})
            self.search.search()
        elif follower.promise.is_over(now) and (at_once or now >= self._read_ns + READ_NS):
            self._read_ns = now
            self._register.read()

    def _may_take_over(self, now: int, follower: Follower) -> bool:
        """Returns whether the member is in sync, and no other one serves or is about to."""
        known = follower.view.known
        name = self.config.member
        if known is None or name not in known.in_sync or follower.durable < follower.last:
            return False
        if self.config.asynchronous and known.active != name:
            return False  # it serves again after a restart, because an operator's order made it active
        if known.in_sync == (name,):
            return True
        promise = follower.promise
        if not promise.is_over(now):
            return False
        if self._stream is not None and self._stream.lost_for_ns(now) < turn_of(name, known) * TURN_NS:
            return False
        if follower.ended == known.epoch:
            return True  # nobody serves in the epoch that this member would end
        if self._stream is not None and self._stream.paused:
            return False  # heartbeats may have come that were not read
        last_epoch = follower.table[-1][0] if follower.table else 0
        if known.active not in ("", name) and known.epoch > last_epoch:
            # Its first record has not come yet: it may still read its journal.
            return now >= self._version_ns + self.config.patience_ns
        followed = self._stream is not None and self._stream.has_followed
        wait_ns = 0 if self.config.primary or followed else PRIMARY_FIRST_NS
        return now >= promise.until_ns + wait_ns

    def _tell(self, now: int) -> None:
        """Tells once what a member waits for that has no active node for some time."""
        follower = self.follower
        if self.search.link is not None or now < self._alone_since_ns + TELL_NS:
            return
        if self.damage:
            why = "the journal is damaged, and no active member was found that has what is lost"
            self._tell_once(f"{why}: start the others, or restore a copy of this member's folders")
        elif follower is None:
            self._tell_once("no active member was found that knows the node id of the group")
        elif follower.view.known is None:
            why = self._first.waits()
            if why:
                self._tell_once(why)
        elif has_older_register(follower):
            last_epoch, known = follower.table[-1][0], follower.view.known
            self._tell_once(
                f"the register of the group has epoch {known.epoch}, but the journal of this member has epoch "
                f"{last_epoch}: it keeps what it has, and follows nobody. Delete nothing: stop the other members, "
                "restore the register, or promote the member whose data is newest: atalanta ha promote --lossy"
            )
        else:
            names = ", ".join(follower.view.known.in_sync)
            if self.config.member not in follower.view.known.in_sync:
                start = f"in sync are {names}: start one of these, or promote this member"
                self._tell_once(f"{start}, which may lose confirmed messages")
            elif self.config.asynchronous:
                self._tell_once(f"this member is asynchronous, and in sync with {names}: start these, or promote it")

    def _tell_once(self, why: str) -> None:
        if why != self._told:
            self._told = why
            self.ports.trace.event("replica_waits", {"why": why})

    # --- the register -----------------------------------------------------------------------------

    def on_register(self, now: int, version: int, register: Register | None) -> None:
        """Implements NodeInputs.on_register."""
        follower, stream = self.follower, self._stream
        if follower is None or stream is None or self.damage or self._over():
            return
        if register is None:
            self._register.on_answer(settled=True)
            self._on_no_register(now, follower)
            return
        self._first.until_ns = None
        if version > self._version:
            self._version = version
            self._version_ns = now
        self._do(now, follower.on_register(now, version, register))
        self._register.on_answer(settled=follower.view.pending is None)
        if self._over() or not follower.may_ask():
            return
        if stream.following and follower.epoch == 0:
            stream.send(Refusal(follower.seen))
            self.search.drop(now, f"the register has epoch {follower.seen}")
        if self._order:
            self._consider(now)
        elif has_older_register(follower):
            self._unlink("the register is older than the journal of this member")
            self._register.read_later(now)
        elif self._may_take_over(now, follower):
            self._do(now, follower.take_over(now))
        else:
            self.search.search()

    def _on_no_register(self, now: int, follower: Follower) -> None:
        """Founds the group, if this is its primary and nobody serves. Otherwise the member waits for the register, or
        for an operator."""
        view = follower.view
        if view.known is not None:
            self._tell_once("the register of the group is gone: restore it")
        elif self._order and view.pending is None:
            self._consider(now)
            return
        elif not self.config.primary and view.pending is None and not follower.seen:
            self._tell_once("the register of the group does not exist: start its primary")
        elif view.pending is not None or follower.seen or self._first.may_found(
            now, self.config.terms.wait_ns, self.search
        ):
            try:
                request = view.repeated() or view.write(found(self.config.member, follower.seen, view.token()))
            except RegisterRefused as error:
                self._tell_once(str(error))
            else:
                self._register.write(request)
                return
        self._register.read_later(now)

    def on_register_uncertain(self, now: int, why: str) -> None:
        """Implements NodeInputs.on_register_uncertain."""
        if not self._over():
            self._register.on_uncertain(now, why)

    # --- actions ----------------------------------------------------------------------------------

    def _do(self, now: int, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                if self._stream is not None and isinstance(action.message, Answer | Refusal):
                    self._stream.send(action.message)
            elif isinstance(action, Read):
                self._register.read()
            elif isinstance(action, CompareAndSet):
                self._why = reason(self.follower, self._order != "")
                if self._order != FORCED:  # that one stands, because what was known of the register may be old
                    self._order = ""
                self._unlink(ASKS)
                self._register.write(action)
            elif isinstance(action, Activate):
                self._activate(action)
            elif not isinstance(action, Store | Cut):  # the block was stored, the tail was cut
                raise AssertionError(f"{action} is not an action of a passive member")

    def _activate(self, action: Activate) -> None:
        """Ends the passive life, as soon as all jobs of the disk are done."""
        store = self.store
        assert store is not None
        store.files.forget_incomplete()
        self._last_barrier = store.barrier.begin()
        self.ports.trace.event("replica_takes_over", {"epoch": action.epoch, "why": self._why})


def turn_of(member: str, register: Register) -> int:
    """Returns the number of members in sync that take over before this one, as the active node has announced."""
    names = [name for name in register.in_sync if name != register.active]
    return names.index(member) if member in names else 0


def has_older_register(follower: Follower) -> bool:
    """Returns whether the register is older than the member's journal, as no manager's is that keeps what it has.

    Then the member follows nobody, because that would cut what may have been confirmed. It does not take over,
    because that would begin an epoch for the second time.
    """
    known = follower.view.known
    last_epoch = follower.table[-1][0] if follower.table else 0
    return known is not None and known.epoch < last_epoch


def reason(follower: Follower | None, promoted: bool) -> str:
    """Returns why a member asks to become active."""
    known = None if follower is None else follower.view.known
    if promoted:
        return "an operator promoted this member"
    if known is None or follower is None or known.epoch == 0:
        return "it is the first member of its group"
    if known.active in ("", follower.name):
        return "it was active before it was started again" if known.active else "nobody was active"
    if follower.ended == known.epoch:
        return f"{known.active} has handed over, or its process has ended"
    return f"{known.active} was silent for the lease, or cannot be reached"
