"""Messages parked for a member that is away come back: to a consumer here, or at another member.

They lie in the member's store-and-forward queue. After `parked-message-timeout` without a link those go back that have
certainly not reached it (cluster/links/sent_mark.py): as a copy at the end of the other queue, which is in one record
with
the removal from here, as redistribution moves messages. What may have arrived stays until the member is back and has
answered: it drops repeats, so nothing is doubled and nothing lost. A message goes back as a whole, and only where a
consumer takes it; with it go its rules:

- An anycast message, or one for a subscription that exists elsewhere under the same name, may be another node's. A copy
  for a subscription that only the member has is that subscription's, and stays.
- A group stays together: behind a message of a group that stays all others stay, and what goes back goes to one queue.
  Where a grouping handler has given the group to the member it all stays there.

Artemis leaves such messages in the store-and-forward queue. docs/internals/decisions/0009 has the reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.links import sent_mark
from atalanta.cluster.links.sent_mark import SentMark
from atalanta.cluster.parked import binding_names
from atalanta.kernel.observer import Observer
from atalanta.kernel.publish.reroute import reroute
from atalanta.kernel.queue.consumer import Consumer
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.reference import DONE, READY, SCHEDULED, Reference
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.routing.bindings import RemoteBinding
from atalanta.kernel.routing.router import Route, add_remote_route
from atalanta.message.fqqn import split_fqqn
from atalanta.message.internal_headers import FORWARD_DUPLICATE

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster
    from atalanta.cluster.connection.peer import PeerRecord
    from atalanta.message.message import Message

MOVES_MAX: Final = 500  # messages of one turn; the rest follows by a zero timer
LOOKS_MAX: Final = 5_000
ROOM_LOOKS: Final = 40  # so often, every ROOM_NS, room for the next page is waited for
ROOM_NS: Final = 50_000_000
PARKED: Final = "parked."
MARK: Final = "mark."


def sent_by_another(message: Message) -> bool:
    """Who had it before this node, and left, may have sent it to the member
    (cluster/scale_down/scale_down_shipment.py)."""
    return message.special and message.has_property(FORWARD_DUPLICATE)


def may_have_arrived(queue: Queue, through: int) -> int:
    """Messages in its list up to that place, and those that another node may have sent."""
    return sum(
        1
        for reference in queue.references
        if reference.state != DONE
        and (reference.sequence <= through or sent_by_another(reference.message))
    )


class Away:
    """A member without a link, and the look through what is parked for it.

    `meant`: binding id there -> address and routing name, as far as they are known. The look takes several turns; it
    goes on at `position`, a sequence, and is over at 0.
    """

    def __init__(self, since: int) -> None:
        self.since = since
        self.meant: dict[int, tuple[str, str]] = {}
        self.due: bool = False  # the time is over
        self.armed: bool = False
        self.given_up: bool = False  # by an operator, in this life of the node
        self.groups: dict[str, Queue | RemoteBinding] = {}  # where groups went
        self.returned: int = 0
        self.position: int = 0
        self.staying_groups: dict[str, bool] = {}  # of which this look has left a message
        self.without_room: int = (
            0  # turns of this look in a row that found no room for the next page
        )
        self.again: bool = (
            False  # a consumer came meanwhile: what the look has passed may be for it
        )

    def begin(self) -> None:
        """A look from the front."""
        self.position = 0
        self.staying_groups = {}
        self.without_room = 0
        self.again = False


class ParkedMessages(Observer):
    """`away` and `marks` by node id."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.away: dict[str, Away] = {}
        self.marks: dict[str, SentMark] = {}
        self.moves_max: int = MOVES_MAX

    # -- who is away ----------------------------------------------------------------------------
    def start(self, now: int) -> None:
        """After a restart all members are away whose queues are not empty."""
        self.cluster.broker.observers.append(self)
        broker = self.cluster.broker
        prefix = self.cluster.forward_name("")
        for key in broker.values.keys():
            name = key.removeprefix(sent_mark.PREFIX).removeprefix(binding_names.PREFIX)
            if name != key and name.startswith(prefix) and name not in broker.queues:
                self._forget(name)  # a crash came between the end of the queue and this
        for name, queue in self.cluster.broker.queues.items():
            node_id = name[len(prefix) :]
            if not name.startswith(prefix) or "." in node_id:
                continue  # the latter: of a cluster whose name begins like this one's
            if queue.internal and queue.message_count > 0:
                away = self._gone(now, node_id)
                away.meant.update(binding_names.recall(self.cluster.broker.values, name))

    def mark_of(self, node_id: str, queue: Queue) -> SentMark:
        known = self.marks.get(node_id)
        if known is None or known.queue is not queue:
            known = SentMark(self.cluster.broker, queue)
            known.timer = self.cluster.key(MARK + node_id)
            self.marks[node_id] = known
        return known

    def lost(self, now: int, record: PeerRecord) -> None:
        """The link is gone, in good order or not; before the member's bindings are."""
        away = self._gone(now, record.node_id)
        bindings = record.bindings  # what waits may be for a queue that is reached another way since
        for remote in [*bindings.spares.values(), *bindings.bindings.values()]:
            away.meant[remote.remote_id] = (remote.address, remote.routing_name)
        if record.forward.message_count > 0:
            binding_names.remember(self.cluster.broker.values, record.forward, away.meant)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        """Of a node that has left, or whose queue an operator has deleted: nothing is kept."""
        prefix = self.cluster.forward_name("")
        node_id = queue.name[len(prefix) :]
        ours = queue.internal and queue.name.startswith(prefix) and "." not in node_id
        if not queue.deleted or not ours:  # not deleted: it has changed
            return
        self.marks.pop(node_id, None)
        self.away.pop(node_id, None)
        for timer in (MARK, PARKED):
            self.cluster.broker.timers.cancel(self.cluster.key(timer + node_id))
        self._forget(queue.name)

    def _forget(self, name: str) -> None:
        sent_mark.drop(self.cluster.broker.values, name)
        binding_names.forget(self.cluster.broker.values, name)

    def expect(self, now: int, node_id: str) -> None:
        """Messages for a node that has no link, from one that left."""
        self._gone(now, node_id)

    def back(self, node_id: str) -> None:
        """Messages flow to it again."""
        if self.away.pop(node_id, None) is not None:
            binding_names.forget(self.cluster.broker.values, self.cluster.forward_name(node_id))
            self.cluster.broker.timers.cancel(self.cluster.key(PARKED + node_id))

    def _gone(self, now: int, node_id: str) -> Away:
        away = self.away.get(node_id)
        if away is None:
            away = Away(now)
            self.away[node_id] = away
            timeout_ms = self.cluster.clusters.own.parked_message_timeout_ms
            if timeout_ms >= 0:
                self._arm(node_id, away, now + timeout_ms * 1_000_000)
        return away

    def _arm(self, node_id: str, away: Away, at: int) -> None:
        away.armed = True
        self.cluster.broker.timers.set(self.cluster.key(PARKED + node_id), at)

    def give_up(self, now: int, node_id: str) -> int:
        """An operator says that the member never returns: also what may have arrived there goes to others.

        How many messages that are; -1 if the member is not away. If it does return, those may be there twice.
        """
        away = self.away.get(node_id)
        queue = self.cluster.broker.queues.get(self.cluster.forward_name(node_id))
        if away is None or queue is None or queue.consumers:
            return -1
        mark = self.mark_of(node_id, queue)
        count = may_have_arrived(queue, mark.through)
        mark.forget()
        away.given_up = True
        away.position = 0
        self._arm(node_id, away, now)
        return count

    # -- triggers -------------------------------------------------------------------------------
    def on_consumer_added(self, now: int, consumer: Consumer) -> None:
        queue = consumer.queue
        if self.away and not consumer.browse_only and not queue.internal:
            self.look_again(now)

    def look_again(self, now: int) -> None:
        """There is a consumer more, here or elsewhere."""
        for node_id, away in self.away.items():
            if away.due and away.armed:
                away.again = True
            elif away.due:
                away.position = 0
                self._arm(node_id, away, now)

    def on_mark_timer(self, now: int, node_id: str) -> None:
        mark = self.marks.get(node_id)
        if mark is not None:
            mark.look(now)

    def on_timer(self, now: int, node_id: str) -> None:
        away = self.away.get(node_id)
        if away is None:
            return
        away.armed = False
        away.due = True
        broker = self.cluster.broker
        queue = broker.queues.get(self.cluster.forward_name(node_id))
        if queue is None or queue.consumers:
            return
        if away.position == 0:
            away.begin()
        moved = self._look(now, queue, away, self.mark_of(node_id, queue))
        if moved:
            broker.trace.count("parked_messages_returned", moved)
            away.returned += moved
        if away.position > 0:
            self._arm(node_id, away, now + (ROOM_NS if away.without_room else 0))
        elif away.returned:
            broker.trace.event(
                "parked_messages_returned",
                {"node": node_id, "messages": away.returned, "stay": queue.message_count},
            )
            away.returned = 0
        if away.again and not away.armed:
            self._arm(node_id, away, now)

    # -- going back -----------------------------------------------------------------------------
    def _look(self, now: int, queue: Queue, away: Away, mark: SentMark) -> int:
        """One bounded part of the queue. Returns how many went."""
        broker = self.cluster.broker
        start = queue.index_of(max(away.position, 1))
        looked = queue.references[start : start + LOOKS_MAX]
        moves = 0
        for reference in looked:
            away.position = reference.sequence + 1
            if reference.state == READY and self._return(reference, away, mark):
                moves += 1
                if moves >= self.moves_max:
                    return moves
        if len(looked) == LOOKS_MAX:
            return moves
        away.position = max(away.position, 1)
        if queue.paged is not None and (self._next_page(now, queue, away) or moves):
            return moves
        for _, waiting in broker.scheduled.of_queue(queue):
            if moves >= self.moves_max:
                return moves
            if waiting.state == SCHEDULED and waiting.sequence == 0:
                moves += self._return(waiting, away, mark)
        away.position = 0
        return moves

    def _next_page(self, now: int, queue: Queue, away: Away) -> bool:
        """Whether more of it lies in page files that can be looked at; room may come with what has just gone."""
        paging = self.cluster.broker.paging
        if paging.refill(now, queue, True):
            away.without_room = 0
            return True
        if queue.paged is None or paging.reader.failed is not None or not away.returned:
            return False
        away.without_room += 1
        return away.without_room <= ROOM_LOOKS

    def _return(self, reference: Reference, away: Away, mark: SentMark) -> bool:
        """False if it has to stay."""
        group = reference.message.group_id
        by_handler = self.cluster.broker.grouping is not None
        if group is not None and (by_handler or group in away.staying_groups):
            return False  # a grouping handler keeps its groups with the member (kernel/publish/grouping.py)
        chosen: list[Queue | RemoteBinding] = []
        unsent = reference.sequence > mark.through or reference.sequence == 0
        if unsent and (away.given_up or not sent_by_another(reference.message)):
            chosen = self._takers(reference, away, group)
        if not chosen:
            if group is not None:
                away.staying_groups[group] = True
            return False
        if group is not None and len(chosen) == 1:
            away.groups[group] = chosen[0]
        routes: list[Route] = []
        for taker in chosen:
            if isinstance(taker, RemoteBinding):
                add_remote_route(routes, taker)
            else:
                routes.append(Route(taker, b""))
        why = "parked for a member that is away"
        reroute(self.cluster.broker, reference, routes, why, FORWARD_DUPLICATE)
        return True

    def _takers(
        self, reference: Reference, away: Away, group_id: str | None
    ) -> list[Queue | RemoteBinding]:
        """One for each queue of the member that the message is for; none unless there is one for all of them."""
        message = reference.message
        only_queue = split_fqqn(message.address)[1]
        takers: list[Queue | RemoteBinding] = []
        for address_name, routing_name in self._meant(reference, away):
            address = self.cluster.broker.addresses.get(address_name)
            group = None if address is None else address.groups.get(routing_name)
            if group is None:
                return []
            pinned = None if group_id is None else away.groups.get(group_id)
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

    def _meant(self, reference: Reference, away: Away) -> list[tuple[str, str]]:
        """Address and routing name of each binding id; empty if one of them is unknown.

        Those of anycast messages are told by their address, also when nobody wrote down what they mean.
        """
        ids = binding_names.ids_of(reference.route_to)
        found: list[tuple[str, str]] = []
        for binding_id in ids:
            known = away.meant.get(binding_id)
            if known is None:
                name = split_fqqn(reference.message.address)[0]
                address = self.cluster.broker.addresses.get(name)
                if address is None or len(ids) != 1:
                    return []
                if reference.message.routing_type != ANYCAST and address.multicast:
                    return []
                known = (name, name)
            if known in found:
                return []  # two queues of one name: which of them is whose is not ours to say
            found.append(known)
        return found
