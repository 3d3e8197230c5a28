"""What a follower gets from the active node, over one connection after the other.

A stream begins with an offer, and every part of it needs one that was accepted. An offer waits until the disk has done
all jobs: then the tail that the active node does not have is cut, and the follower says which files it has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from atalanta.cluster.replication.member_codec import (
    FileDeletion,
    FromActive,
    Guard,
    JournalBlock,
    KeptFiles,
    LargeData,
    LargeEnd,
    PageFile,
    ServiceRequest,
    SettingsFile,
    decode_from_active,
    encode_message,
)
from atalanta.ha.last_instant import NO_INSTANT, LastInstant
from atalanta.ha.replication.block_stream import JumpItem
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import (
    Action,
    Answer,
    Cut,
    Ended,
    HandOver,
    Heartbeat,
    Offer,
    Refusal,
)
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.replication.passive.active_search import ActiveSearch
    from atalanta.cluster.replication.passive.backup_config import BackupPorts
    from atalanta.cluster.replication.passive.follower_store import FollowerStore

# Received and not on the disk: with more than this, the connection is not read.
WAITING_BYTES_MAX: Final = 16 << 20
# Heartbeats come four times in a lease.
SILENCE_NS: Final = 2_000_000_000
MS: Final = 1_000_000


class StreamFailed(Exception):
    """The stream cannot be stored: the member ends with this reason."""


class IncomingStream:
    """The stream of one follower. `do` executes the actions of the rules.

    Methods raise ProtocolError, DecodeError and BlockRefused: then the connection is closed, and the stream begins
    again. They raise StreamFailed.
    """

    def __init__(
        self,
        follower: Follower,
        store: FollowerStore,
        search: ActiveSearch,
        ports: BackupPorts,
        do: Callable[[int, list[Action]], None],
    ) -> None:
        self.follower = follower
        self.store = store
        self.following = False  # the offer of this connection was accepted
        self.has_followed = False
        self.paused = False  # the connection is not read
        self._lost_ns: int = 0  # when the loss of the active node was seen, 0 while it sends
        self._heard_ns: int = 0  # when the active node has sent something
        self.end_lsn: int = 0  # the last one of the active node, as far as it is known
        self.last: LastInstant = NO_INSTANT  # of the clock of the active node that was heard last
        self._search = search
        self._wire = ports.wire
        self._trace = ports.trace
        self._settings = ports.settings
        self._keep_lease = ports.keep_lease
        self._lease_ns: int = follower.terms.length_ns  # that of the active node
        self._guard = ports.guard
        self._do = do
        # An offer, and the barrier that it waits for.
        self._offered: tuple[int, Offer] | None = None

    def end(self) -> None:
        """Forgets the stream of a connection that is gone."""
        self._offered = None
        self.paused = False
        self.following = False
        self.store.clear()

    def send(self, message: Answer | Refusal | ServiceRequest) -> None:
        """Sends a message to the active node, if there is a connection."""
        link = self._search.link
        if link is not None:
            self._wire.write(link.conn, encode_message(message))

    def is_silent(self, now: int) -> bool:
        """Returns whether the active node has sent no heartbeat for a long time: the connection may be dead at its end
        only, if a reset got lost.
        """
        if self.paused:
            self._heard_ns = now  # it is not read
        return self.following and now >= self._heard_ns + self.follower.promise.wait_ns + SILENCE_NS

    def lost_for_ns(self, now: int) -> int:
        """Returns the time since it was asked first, and nothing has come from an active node."""
        if self._lost_ns == 0:
            self._lost_ns = now
        return now - self._lost_ns

    # --- inputs -----------------------------------------------------------------------------------

    def take_frames(self, now: int) -> None:
        """Handles the frames that have come, up to an offer that must wait for the disk."""
        link = self._search.link
        self._heard_ns = now
        self._lost_ns = 0
        while link is not None and link is self._search.link and self._offered is None:
            frame = link.framer.next()
            if frame is None:
                break
            self._on_message(now, link.active, decode_from_active(frame))
        self._limit()

    def on_committed(self, now: int, token: int) -> None:
        """Handles a commit of the journal, or a barrier."""
        store = self.store
        if token >= 0:
            store.copy.on_committed(token)
            self._do(now, self.follower.on_durable(now, store.copy.stored))
            if self._offered is None:  # else no job may come behind its barrier
                store.files.delete_up_to(self.follower.durable)
            self._limit()
            return
        store.files.on_barrier(token)
        if self._offered is not None and self._offered[0] == token:
            offer = self._offered[1]
            self._offered = None
            self._on_offer(now, offer)
            self.take_frames(now)
        self._limit()

    def on_large_written(self, size: int) -> None:
        """Handles that bytes of a large body are in their file."""
        self.store.files.on_large_written(size)
        self._limit()

    def on_large_synced(self, now: int, file: int) -> None:
        """Handles that a large body is complete: what waited for it can be stored."""
        self.store.files.on_large_synced(file)
        self._store_parts(now)
        self._limit()

    def _limit(self) -> None:
        """Stops reading while too much waits for the disk."""
        link = self._search.link
        if link is None:
            return
        waiting = self.store.waiting_bytes
        if not self.paused and waiting > WAITING_BYTES_MAX:
            self.paused = True
            self._wire.pause(link.conn)
        elif self.paused and waiting * 2 < WAITING_BYTES_MAX:
            self.paused = False
            self._wire.resume(link.conn)

    # --- messages ---------------------------------------------------------------------------------

    def _on_message(self, now: int, sender: str, message: FromActive) -> None:
        follower, store = self.follower, self.store
        if isinstance(message, Offer):
            self.following = False
            store.clear()
            self._offered = store.barrier.begin(), message
        elif isinstance(message, SettingsFile):
            self._store_settings(message)
        elif not self.following:
            raise ProtocolError(f"{type(message).__name__} without an offer that was accepted")
        elif isinstance(message, Heartbeat):
            self.end_lsn = max(self.end_lsn, message.commit)
            self.last = LastInstant(message.clock_ns, now)
            self._do(now, follower.on_heartbeat(now, sender, message))
        elif isinstance(message, HandOver):
            self.last = LastInstant(message.clock_ns, now)
            self._do(now, follower.on_hand_over(now, message))
        elif isinstance(message, Ended):
            self.last = LastInstant(message.clock_ns, now)
            follower.on_ended(now, message)
        elif isinstance(message, Guard):
            self._watch(message)
        elif isinstance(message, PageFile | LargeData | LargeEnd | FileDeletion | KeptFiles):
            store.on_file(message)
            store.files.delete_up_to(follower.durable)
        else:
            store.add(message)
            self._store_parts(now)

    def _watch(self, message: Guard) -> None:
        """Watches the guard of the active node. ProtocolError."""
        link, epoch = self._search.link, self.follower.epoch
        if message.epoch != epoch:
            raise ProtocolError(f"the guard of epoch {message.epoch} in a stream of epoch {epoch}")
        if link is not None and self._guard is not None:
            self._guard.watch(link.host, message.port, message.salt, message.epoch)

    def _store_settings(self, message: SettingsFile) -> None:
        try:
            if self._settings(message.data):
                self.store.begin_replay()
        except OSError as error:
            raise StreamFailed(f"the management settings of the active node cannot be stored: {error}") from error

    def _on_offer(self, now: int, offer: Offer) -> None:
        """Begins to follow. All earlier jobs of the disk are done."""
        follower, link = self.follower, self._search.link
        if link is None:
            return
        self.end_lsn = offer.last
        actions = follower.on_offer(now, link.active, offer)
        for action in actions:
            if isinstance(action, Cut):
                self._cut(action)
                if self.store.copy.last < action.lsn:  # nothing is left: the journal began behind the cut
                    follower.on_emptied()
                    actions = follower.on_offer(now, link.active, offer)
                break
        if follower.epoch != offer.epoch:
            self._do(now, actions)
            raise ProtocolError(f"{link.active} offers epoch {offer.epoch}, this member has {follower.seen}")
        self._grant(offer)
        self.following = self.has_followed = True
        if self._guard is not None:
            self._guard.close()  # the stream names the guard of this active node, if it has one
        if follower.ended != offer.epoch:
            follower.promise.renew(now)  # it serves: its first heartbeat comes soon
        try:
            files = self.store.files.stored()
        except OSError as error:
            raise StreamFailed(f"the page files cannot be read: {error}") from error
        self._wire.write(link.conn, encode_message(files))
        self._do(now, actions)

    def _grant(self, offer: Offer) -> None:
        """Keeps the length of the active node's lease for later lives of this member, before any of it is granted."""
        try:
            self._keep_lease(offer.lease_ns)
        except OSError as error:
            raise StreamFailed(f"the length of the active node's lease cannot be stored: {error}") from error
        own_ns = self.follower.terms.length_ns
        if offer.lease_ns not in (self._lease_ns, own_ns):
            self._trace.event(
                "lease_lengths_differ",
                {
                    "active": self.follower.active,
                    "its_ms": offer.lease_ns // MS,
                    "own_ms": own_ns // MS,
                    "what_to_do": "this member waits for the longer one: give all members of the group the same"
                    " [ha] lease_ms",
                },
            )
        self._lease_ns = offer.lease_ns

    def _cut(self, cut: Cut) -> None:
        """Cuts the journal, and reports what was cut."""
        try:
            self.store.read(cut.lsn)
        except (OSError, ValueError) as error:
            raise StreamFailed(f"the journal cannot be cut behind record {cut.lsn}: {error}") from error
        tail = self.store.report.cut
        fields: dict[str, object] = {"behind": cut.lsn, "bytes": tail.size_bytes(), "files": " ".join(tail.names())}
        if cut.confirmed:
            fields["confirmed"] = "perhaps: a member that lacked it was promoted"
        self._trace.event("replica_tail_cut", fields)

    def _store_parts(self, now: int) -> None:
        """Stores the parts of the journal that need not wait for a large body."""
        follower, store = self.follower, self.store
        while (item := store.next()) is not None:
            if not isinstance(item, JournalBlock):
                store.copy.on_item(item)
                if isinstance(item, JumpItem):
                    follower.on_emptied()
                    store.begin_replay()
                continue
            block = item.block
            self.end_lsn = max(self.end_lsn, block.last)
            if not follower.takes(block):
                self._do(now, follower.on_block(now, follower.active, block))
                raise ProtocolError(f"record {block.first} of epoch {block.epoch} behind record {follower.last}")
            store.copy.on_item(item.item)
            self._do(now, follower.on_block(now, follower.active, replace(block, last=store.copy.last)))
