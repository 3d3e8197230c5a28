"""Messages parked for a member that is away are moved to a consumer here or at another member.

They wait in the member's store-and-forward queue. After `parked-message-timeout` without a link, those are moved
that certainly have not reached the member (cluster/links/sent_mark.py). A copy goes to the end of the other queue,
in one record with the removal here, as in redistribution. A message that may have arrived stays until the member is
back and has answered. The member drops repeats, so no message is doubled or lost. A message is moved as a whole,
and only to queues with a consumer for it:

- An anycast message may go to another node. So may a message for a subscription that exists there under the same
  name. A message for a subscription that only the member has stays.
- A group stays together. After a message of a group that stays, all others stay, and moved ones go to one queue. If
  a grouping handler has given the group to the member, all its messages stay.

Artemis leaves such messages in the store-and-forward queue. docs/internals/decisions/0009 has the reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.links import sent_mark
from atalanta.cluster.links.sent_mark import SentMark
from atalanta.cluster.store_and_forward import binding_names
from atalanta.kernel.observer import Observer
from atalanta.kernel.queue.consumer import QueueConsumer
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.reference import DONE, READY, SCHEDULED, Reference
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.routing.bindings import RemoteBinding
from atalanta.kernel.routing.router import Route, add_remote_route, join_route
from atalanta.message.fqqn import split_fqqn
from atalanta.message.internal_headers import FORWARD_DUPLICATE

if TYPE_CHECKING:
    from atalanta.cluster.connection.peer import PeerRecord
    from atalanta.cluster.topology.local_node import LocalNode
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.publish.message_mover import MessageMover
    from atalanta.kernel.publish.message_router import MessageRouter
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.message.message import Message

MOVES_MAX: Final = 500  # messages per event-loop iteration; the rest follows by a zero timer
SCAN_MAX: Final = 5_000
ROOM_CHECKS: Final = 40  # checks for free memory for the next page, one every ROOM_NS
ROOM_NS: Final = 50_000_000
PARKED: Final = "parked."
PARKED_WHY: Final = "parked for a member that is away"
MARK: Final = "mark."


def sent_by_another(message: Message) -> bool:
    """Returns whether the node that had the message before, and left, may have sent it to the member.

    cluster/scale_down/shipments.py marks such messages.
    """
    return message.special and message.has_property(FORWARD_DUPLICATE)


def may_have_arrived(queue: Queue, through: int) -> int:
    """Returns the number of messages up to the sequence `through`, and of those that another node may have sent."""
    return sum(
        1
        for reference in queue.references
        if reference.state != DONE
        and (reference.sequence <= through or sent_by_another(reference.message))
    )


class AbsentMember:
    """A member without a link, and the scan of its parked messages.

    `meant`: binding id at the member -> address and routing name, as far as they are known. A scan takes several
    event-loop iterations. It continues at `position`, a sequence, and is finished at 0.
    """

    def __init__(self, since: int) -> None:
        self.since = since
        self.meant: dict[int, tuple[str, str]] = {}
        self.due: bool = False  # parked-message-timeout is over
        self.timer_set: bool = False
        self.given_up: bool = False  # by an operator, since the start of this node
        self.groups: dict[str, Queue | RemoteBinding] = {}  # target of each group that was moved
        self.returned: int = 0
        self.position: int = 0
        self.staying_groups: dict[str, bool] = {}  # groups with a message that stays
        self.without_room: int = (
            0  # checks in a row without free memory for the next page
        )
        self.again: bool = (
            False  # a consumer was added during the scan and may take messages before `position`
        )

    def begin(self) -> None:
        """Starts a scan at the front of the queue."""
        self.position = 0
        self.staying_groups = {}
        self.without_room = 0
        self.again = False


class ParkedMessages(Observer):
    """The parked messages of a cluster connection. `away` and `marks` are by node id."""

    def __init__(
        self,
        local: LocalNode,
        mover: MessageMover,
        router: MessageRouter,
        queues: QueueRegistry,
        values: NamedValues,
        timeout_ms: int,
    ) -> None:
        """`timeout_ms` is parked-message-timeout; below 0 no message is moved."""
        self.local = local
        self.mover = mover
        self.router = router
        self.queues = queues
        self.addresses = queues.addresses.by_name
        self.values = values
        self.timeout_ms = timeout_ms
        self.absent: dict[str, AbsentMember] = {}
        self.marks: dict[str, SentMark] = {}
        self.moves_max: int = MOVES_MAX

    # -- absent members --------------------------------------------------------------------------
    def start(self, now: int) -> None:
        """Records all members with waiting messages as away, after a restart of this node."""
        self.queues.observers.append(self)
        prefix = self.local.forward_name("")
        for key in self.values.keys():
            name = key.removeprefix(sent_mark.PREFIX).removeprefix(binding_names.PREFIX)
            if name != key and name.startswith(prefix) and name not in self.queues.by_name:
                self._forget(name)  # a crash came after the queue was deleted
        for name, queue in self.queues.by_name.items():
            node_id = name[len(prefix) :]
            if not name.startswith(prefix) or "." in node_id:
                continue  # with ".": another cluster, whose name begins like this one's
            if queue.internal and queue.message_count > 0:
                self.mark_of(node_id, queue)  # from now on the queue is known as one to another node
                absent = self._gone(now, node_id)
                absent.meant.update(binding_names.recall(self.values, name))

    def mark_of(self, node_id: str, queue: Queue) -> SentMark:
        known = self.marks.get(node_id)
        if known is None or known.queue is not queue:
            known = SentMark(self.values, self.local.timers, queue)
            known.timer = self.local.key(MARK + node_id)
            self.marks[node_id] = known
        return known

    def lost(self, now: int, record: PeerRecord) -> None:
        """Records a member as away when its link ends, with or without DISCONNECT; before its bindings are removed."""
        absent = self._gone(now, record.node_id)
        bindings = record.bindings  # with spares: the route to a queue may have changed since
        for remote in [*bindings.spares.values(), *bindings.bindings.values()]:
            absent.meant[remote.remote_id] = (remote.address, remote.routing_name)
        if record.forward.message_count > 0:
            binding_names.remember(self.values, record.forward, absent.meant)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        """Forgets a node whose queue is deleted: the node has left, or an operator deleted the queue."""
        prefix = self.local.forward_name("")
        node_id = queue.name[len(prefix) :]
        ours = queue.internal and queue.name.startswith(prefix) and "." not in node_id
        if not queue.deleted or not ours:  # not deleted: only changed
            return
        self.marks.pop(node_id, None)
        self.absent.pop(node_id, None)
        for timer in (MARK, PARKED):
            self.local.cancel_timer(timer + node_id)
        self._forget(queue.name)

    def _forget(self, name: str) -> None:
        sent_mark.drop(self.values, name)
        binding_names.forget(self.values, name)

    def expect(self, now: int, node_id: str) -> None:
        """Records a node without link as away, when a node that left hands over messages for it."""
        self._gone(now, node_id)

    def back(self, node_id: str) -> None:
        """Records that a member is connected: its messages are delivered to it again."""
        if self.absent.pop(node_id, None) is not None:
            binding_names.forget(self.values, self.local.forward_name(node_id))
            self.local.cancel_timer(PARKED + node_id)

    def _gone(self, now: int, node_id: str) -> AbsentMember:
        absent = self.absent.get(node_id)
        if absent is None:
            absent = AbsentMember(now)
            self.absent[node_id] = absent
            if self.timeout_ms >= 0:
                self._set_timer(node_id, absent, now + self.timeout_ms * 1_000_000)
        return absent

    def _set_timer(self, node_id: str, absent: AbsentMember, at: int) -> None:
        absent.timer_set = True
        self.local.set_timer(PARKED + node_id, at)

    def give_up(self, now: int, node_id: str) -> int:
        """Moves all parked messages of a member that never returns, as an operator states: also those that may be
        there.
        """
        absent = self.absent.get(node_id)
        queue = self.queues.by_name.get(self.local.forward_name(node_id))
        if absent is None or queue is None or queue.consumers:
            return -1
        mark = self.mark_of(node_id, queue)
        count = may_have_arrived(queue, mark.through)
        mark.forget()
        absent.given_up = True
        absent.position = 0
        self._set_timer(node_id, absent, now)
        return count

    # -- triggers -------------------------------------------------------------------------------
    def on_consumer_added(self, now: int, consumer: QueueConsumer) -> None:
        queue = consumer.queue
        if self.absent and not consumer.browse_only and not queue.internal:
            self.scan_again(now)

    def scan_again(self, now: int) -> None:
        """Scans again after a consumer was added, here or on another node."""
        for node_id, absent in self.absent.items():
            if absent.due and absent.timer_set:
                absent.again = True
            elif absent.due:
                absent.position = 0
                self._set_timer(node_id, absent, now)

    def on_mark_timer(self, now: int, node_id: str) -> None:
        mark = self.marks.get(node_id)
        if mark is not None:
            mark.give_back_idle(now)

    def on_timer(self, now: int, node_id: str) -> None:
        absent = self.absent.get(node_id)
        if absent is None:
            return
        absent.timer_set = False
        absent.due = True
        queue = self.queues.by_name.get(self.local.forward_name(node_id))
        if queue is None or queue.consumers:
            return
        if absent.position == 0:
            absent.begin()
        moved = self._scan(now, queue, absent, self.mark_of(node_id, queue))
        if moved:
            self.local.trace.count("parked_messages_returned", moved)
            absent.returned += moved
        if absent.position > 0:
            self._set_timer(node_id, absent, now + (ROOM_NS if absent.without_room else 0))
        elif absent.returned:
            self.local.trace.event(
                "parked_messages_returned",
                {"node": node_id, "messages": absent.returned, "stay": queue.message_count},
            )
            absent.returned = 0
        if absent.again and not absent.timer_set:
            self._set_timer(node_id, absent, now)

    # -- moving ---------------------------------------------------------------------------------
    def _scan(self, now: int, queue: Queue, absent: AbsentMember, mark: SentMark) -> int:
        """Scans a limited part of the queue. Returns the number of moved messages."""
        start = queue.index_of(max(absent.position, 1))
        examined = queue.references[start : start + SCAN_MAX]
        moves = 0
        for reference in examined:
            absent.position = reference.sequence + 1
            if reference.state == READY and self._return(reference, absent, mark):
                moves += 1
                if moves >= self.moves_max:
                    return moves
        if len(examined) == SCAN_MAX:
            return moves
        absent.position = max(absent.position, 1)
        if queue.paged is not None and (self._next_page(now, queue, absent) or moves):
            return moves
        for _, waiting in self.mover.store.scheduled.of_queue(queue):
            if moves >= self.moves_max:
                return moves
            if waiting.state == SCHEDULED and waiting.sequence == 0:
                moves += self._return(waiting, absent, mark)
        absent.position = 0
        return moves

    def _next_page(self, now: int, queue: Queue, absent: AbsentMember) -> bool:
        """Returns whether the scan continues in page files. Moved messages may soon free memory for the next page."""
        paging = self.mover.store.paging
        if paging.read_more(now, queue, True):
            absent.without_room = 0
            return True
        if queue.paged is None or not absent.returned:
            return False
        absent.without_room += 1
        return absent.without_room <= ROOM_CHECKS

    def _return(self, reference: Reference, absent: AbsentMember, mark: SentMark) -> bool:
        """Moves a message. Returns False if it has to stay."""
        group = reference.message.group_id
        by_handler = self.router.grouping is not None
        if group is not None and (by_handler or group in absent.staying_groups):
            return False  # a grouping handler leaves its groups to the member (kernel/publish/grouping.py)
        chosen: list[Queue | RemoteBinding] = []
        unsent = reference.sequence > mark.through or reference.sequence == 0
        if unsent and (absent.given_up or not sent_by_another(reference.message)):
            chosen = self._takers(reference, absent, group)
        if not chosen:
            if group is not None:
                absent.staying_groups[group] = True
            return False
        if group is not None and len(chosen) == 1:
            absent.groups[group] = chosen[0]
        routes: list[Route] = []
        for taker in chosen:
            if isinstance(taker, RemoteBinding):
                add_remote_route(routes, taker)
            else:
                join_route(routes, taker, b"")
        self.mover.reroute(reference, routes, PARKED_WHY, FORWARD_DUPLICATE)
        return True

    def _takers(
        self, reference: Reference, absent: AbsentMember, group_id: str | None
    ) -> list[Queue | RemoteBinding]:
        """Returns one target for each of the member's queues that the message is for; none if one has no target."""
        message = reference.message
        only_queue = split_fqqn(message.address)[1]
        takers: list[Queue | RemoteBinding] = []
        for address_name, routing_name in self._meant(reference, absent):
            address = self.addresses.get(address_name)
            group = None if address is None else address.groups.get(routing_name)
            if group is None:
                return []
            pinned = None if group_id is None else absent.groups.get(group_id)
            if pinned is not None:
                if pinned not in group.locals and not (
                    isinstance(pinned, RemoteBinding)
                    and pinned in group.remotes
                    and pinned.connected
                ):
                    return []
                takers.append(pinned)
                continue
            choice = group.attended(message, only_queue, reference.queue)
            if choice < 0:
                return []
            here = len(group.locals)
            takers.append(group.locals[choice] if choice < here else group.remotes[choice - here])
        return takers

    def _meant(self, reference: Reference, absent: AbsentMember) -> list[tuple[str, str]]:
        """Returns address and routing name of each binding id; empty if one of them is unknown.

        A single unknown id means the message's address, if the message is anycast or the address has no multicast.
        Where queues of wildcard addresses get a copy of their own, it may mean one of those: the message stays.
        """
        ids = binding_names.ids_of(reference.route_to)
        found: list[tuple[str, str]] = []
        for binding_id in ids:
            known = absent.meant.get(binding_id)
            if known is None:
                name = split_fqqn(reference.message.address)[0]
                address = self.addresses.get(name)
                if address is None or address.wildcards is not None or len(ids) != 1:
                    return []
                if reference.message.routing_type != ANYCAST and address.multicast:
                    return []
                known = (name, name)
            if known in found:
                return []  # two queues of one name cannot be told apart
            found.append(known)
        return found
