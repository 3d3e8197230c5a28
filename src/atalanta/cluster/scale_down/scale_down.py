"""Scale-down: a node moves all its messages to another member, disconnects its clients, and stops (ScaleDownHandler).

- Seeking: the node connects to the target, while it still serves clients. A node that scales down is not a target.
- Reading: readers of the log get nothing new, and acknowledge what they were shown (log_readers.py).
- Freezing: nothing more is read from clients, and members learn that this node has no consumers. When all that was read
  is durable and answered, and the target knows the duplicate ids of this node, clients and members get DISCONNECT with
  the target (reason 2), and reconnect there.
- Moving: messages, transactions in doubt, and duplicate ids again (stages.py).

The target is chosen once. A lost link to the target is dialled again until the timeout. When the target scales down
itself, or at the timeout, the node stops moving, keeps the remaining messages in its journal, and ends. `why` states
the remedy.

The durable state of each side, step by step:

1. Seeking, reading: nothing of the scale-down. After a crash here the node serves its clients again.
2. Frozen: the source has a record with the target and the messages that stay (journal_mark.py), before step 3. A source
   that starts with this record reads nothing from clients and peers, and continues at step 3 with the same target.
3. Ids: the target has every duplicate id of the source on disk. Only now are clients and peers disconnected: a message
   that they repeat at the target is recognized there. Members that missed the DISCONNECT keep their messages.
4. Moving: the target writes each message with its repeat id (shipments.py) in one record, before it answers. The source
   removes the message after the answer. In between the message is at both nodes, and the source delivers it to no
   consumer. The message is sent again under the same id until there is an answer, on a new link and after a crash of
   either side alike.
5. End: the record is removed if all that was sent has been answered. The remaining messages are then only here, and the
   next start serves clients. If a sent message has no answer (`in_doubt`), the record stays, and the next start
   continues at step 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.config import ScaleDownConfig
from atalanta.cluster.core_bridges.bridges import CoreBridges
from atalanta.cluster.part import Part
from atalanta.cluster.scale_down.candidates import DiscoveredNodes, TargetCandidate, TargetChoice
from atalanta.cluster.scale_down.disconnect import Disconnects, report_refused
from atalanta.cluster.scale_down.journal_mark import DepartureMark
from atalanta.cluster.scale_down.link import ScaleDownLink
from atalanta.cluster.scale_down.log_readers import Readers, report_retained, unsettled
from atalanta.cluster.scale_down.phase import (
    DONE,
    FAILED,
    FREEZING,
    MOVING,
    NONE,
    READING,
    SEEKING,
    TRANSITIONS,
    UNDER_WAY,
    reported_phase,
)
from atalanta.cluster.scale_down.stages import Mover
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.wire.uri import masked

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connections import ClusterConnections
    from atalanta.kernel.ports import Process
    from atalanta.kernel.queue.queue import Queue
    from atalanta.wire.connection import ClientConnection, TransportConnection

TARGET: Final = "scaledown.target"
DEADLINE: Final = "scaledown.deadline"
LOOK: Final = "scaledown.look"  # try again a little later
LOOK_NS: Final = 50_000_000
LINGER_NS: Final = 2_000_000_000
# Artemis waits this long for a node to appear (DEFAULT_DISCOVERY_INITIAL_WAIT_TIMEOUT).
SEEK_NS: Final = 10_000_000_000


class ScaleDown(Part):
    """The scale-down of a node. `frozen`: clients were disconnected, so the node must end even if the scale-down
    fails."""

    def __init__(
        self,
        clusters: ClusterConnections,
        connections: dict[int, TransportConnection],
        process: Process,
        parts: dict[str, Part],
    ) -> None:
        self.clusters = clusters
        own = clusters.own
        config: ScaleDownConfig = clusters.settings.scale_down or ScaleDownConfig()
        # scale-down-clustername of 1.4, else the first.
        named = clusters.by_name.get(config.cluster_name or "")
        self.cluster = named or clusters.connections[0]
        self.choice = TargetChoice(config, self.cluster)
        self.broker = clusters.broker
        self.host = clusters.host
        self.connections = connections
        self.process = process
        self.parts = parts
        self.timeout_ms = own.scale_down_timeout_ms
        self.full_timeout_ns = own.scale_down_full_timeout_ms * 1_000_000
        self.askers: dict[int, bool] = {}
        self.phase = NONE
        self.frozen = False
        self.frozen_at: int = 0
        self.why = ""
        self.target: TargetCandidate | None = None
        self.candidate: TargetCandidate | None = None  # is being dialled or identified
        self.seek_until = 0
        self.link: ScaleDownLink | None = None
        self.mover: Mover | None = None
        self.taken: bool = False  # the link is to the target and is usable
        self.disconnects: Disconnects | None = None  # from the freeze to the last DISCONNECT
        self.members_disconnected: bool = False  # members may be disconnected
        self.mark = DepartureMark(self.broker.values)
        self.pinned: dict[str, int] = {}  # queue -> the last sequence that stays
        self.in_doubt: bool = False  # the target may have messages that it has not answered for
        self.waiting_reported: bool = False
        self.readers = Readers(clusters.broker.trace, own.scale_down_reader_timeout_ms)
        self.moved = 0

    @property
    def linger_ns(self) -> int:
        """Returns how long the node stays after its end, so that management clients can read the result."""
        return LINGER_NS if self.askers else 0

    # -- start ----------------------------------------------------------------------------------
    def wanted_at_stop(self) -> bool:
        """Returns True if `<scale-down>` is configured and enabled."""
        return self.cluster.settings.scale_down is not None and self.choice.config.enabled

    def _enter(self, phase: str) -> None:
        """Begins the phase (phase.py has the table)."""
        if phase not in TRANSITIONS[self.phase]:
            raise AssertionError(f"a scale-down that is {self.phase} becomes {phase}")
        self.phase = phase
        self.wants_turn = phase in (FREEZING, MOVING)

    def over(self) -> bool:
        return self.phase in (DONE, FAILED)

    def under_way(self) -> bool:
        return self.phase in UNDER_WAY

    def asked(self, now: int, connector: str | None, asker: int) -> None:
        """Starts a scale-down for management. Raises BrokerError if there is no target; the node then continues to
        serve."""
        if self.under_way() or self.frozen:
            raise BrokerError(ILLEGAL_STATE, "this broker is leaving already")
        if connector is not None and connector not in self.cluster.settings.connectors:
            raise BrokerError(ILLEGAL_STATE, f"there is no connector '{masked(connector)}'")
        self.choice.connector = connector
        if not self.choice.candidates() and self.choice.group is None:
            why = self.choice.reason()
            raise BrokerError(
                ILLEGAL_STATE, f"no member can take the messages of this broker: {why}"
            )
        if asker >= 0:
            self.askers[asker] = True
        self.leave(now)

    def leave(self, now: int) -> None:
        """Starts the scale-down; `over` tells when it has ended."""
        if self.under_way() or self.frozen:
            return
        self._enter(SEEKING)
        self.why = ""
        self._seek_anew(now)
        group = self.choice.group
        if group is not None:
            self.choice.heard = DiscoveredNodes()
            self.clusters.discovery.listen(now, group, self.choice.heard, "scale-down")
        self.cluster.local.report("scale_down_began", self.broker.node_id, f"{self.left()} messages here")
        self.broker.timers.set(DEADLINE, now + self.timeout_ms * 1_000_000)
        self._seek(now)

    def resume(self, now: int) -> bool:
        """Continues a scale-down that a crash interrupted, before any client is served. Returns False if there is
        none."""
        known = self.mark.read()
        if known is None:
            return False
        if not self.clusters.own.scale_down_resume:
            self.mark.clear()
            self.cluster.local.report("scale_down_forgotten", known[0].node_id, "scale-down-resume is false")
            return False
        self.target, self.pinned = known
        self.in_doubt = True
        self.cluster.local.report(
            "scale_down_resumed", self.target.node_id, f"{self.left()} messages here"
        )
        self._enter(MOVING)
        self.frozen = True
        self.broker.stop()
        self.clusters.stop(now)  # no bridge to a member: messages that wait for it may be at the target
        self.process.accept_no_more()
        self.broker.timers.set(DEADLINE, now + self.timeout_ms * 1_000_000)
        self._dial_again(now)
        return True

    def stop(self, now: int) -> None:
        if self.link is not None:
            self.link.close("the node stops")

    # -- the target -----------------------------------------------------------------------------
    def _seek_anew(self, now: int) -> None:
        self.seek_until = now + SEEK_NS

    def _seek(self, now: int) -> None:
        """Dials the next candidate. When all were tried, the search starts again until SEEK_NS have passed."""
        if self.candidate is not None or self.phase != SEEKING:
            return
        self.candidate = self.choice.next()
        if self.candidate is not None:
            self.cluster.dialer.dial(TARGET, self.candidate.transport)
        elif now >= self.seek_until:
            self._end(now, FAILED, self.why or self.choice.reason())
        else:
            self.broker.timers.set(LOOK, now + 4 * LOOK_NS)

    def on_dialed(self, now: int, conn: int, key: str) -> TransportConnection | None:
        if self.candidate is None or self.link is not None or not self.under_way():
            return None
        self.link = ScaleDownLink(self, conn, now, self.choice, self.candidate)
        self.link.open(now, self.candidate.transport)
        return self.link

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        if self.frozen and self.under_way() and self.target is not None and not self.waiting_reported:
            self.waiting_reported = True
            reason = f"{why}; it is called until the time is up: start it again"
            self.cluster.local.report("scale_down_waits_for_target", self.target.node_id, reason)
        self._not_this_one(now, why)

    def _not_this_one(self, now: int, why: str) -> None:
        candidate = self.candidate
        self.candidate = None
        if candidate is None or not self.under_way():
            return
        self.why = f"{candidate.transport.address}: {why}"
        if self.phase == READING:  # nothing has changed yet, so another target is possible
            self._enter(SEEKING)
            self.target = None
            self._seek_anew(now)
        if self.phase == SEEKING:
            self.choice.refuse(candidate)
            self._seek(now)
        else:
            self.broker.timers.set(
                TARGET, now + self.cluster.config.retry_interval_ms * 1_000_000
            )

    def identified(self, now: int, link: ScaleDownLink, node_id: str) -> None:
        """Records which node is at the other end of `link`."""
        if self.candidate is None:
            return  # the timeout passed in this batch of inputs
        if node_id == self.cluster.local.node_id:
            link.close("that is this node")
        elif self.target is not None and node_id == self.target.node_id:
            self.taken = True
        elif self.target is not None:
            link.close(f"that is node {node_id}")
        elif link.ours:
            link.call(now, "broker", "scaleDownProgress", [], self._on_progress)
        else:
            self._take(now, link)

    def _on_progress(self, now: int, succeeded: bool, value: object) -> None:
        """Handles the candidate's answer to whether it scales down itself."""
        link = self.link
        if link is None or self.phase != SEEKING or self.candidate is None:
            return
        if succeeded and reported_phase(value) in UNDER_WAY:
            link.close("that node leaves itself")
        else:
            self._take(now, link)

    def _take(self, now: int, link: ScaleDownLink) -> None:
        assert self.candidate is not None
        self.target = TargetCandidate(link.node_id, self.candidate.transport, link.trusted)
        self.taken = True
        self.cluster.local.report("scale_down_target", link.node_id, self.target.transport.address)
        self._enter(READING)
        self.readers.settle(now, self.movable())
        self._read_step(now)

    def link_lost(self, now: int, link: ScaleDownLink, why: str) -> None:
        """Gives messages under way back to their queues. Dials the target again, unless it scales down itself."""
        if self.link is link:
            self.link = None
            self.taken = False
        if self.mover is not None:
            # An Atalanta target answers for everything it took before it disconnects.
            if self.mover.unanswered() and not (link.target_left and link.ours):
                self.in_doubt = True
            self.mover.abort(now)
            self.mover = None
        if not self.under_way():
            return
        self.cluster.local.report("scale_down_link_lost", self.broker.node_id, why)
        if self.frozen and link.target_left:
            assert self.target is not None
            self._end(now, FAILED, f"the target {self.target_text()} leaves itself")
        else:
            self._not_this_one(now, why)

    # -- reading --------------------------------------------------------------------------------
    def _read_step(self, now: int) -> None:
        """Serves clients until the readers of the log have acknowledged what they were shown."""
        if self.readers.waiting(now):
            self.check_soon(now)
        else:
            self._freeze(now)

    # -- freezing -------------------------------------------------------------------------------
    def _freeze(self, now: int) -> None:
        """Stops reading from clients, and delivers nothing more to them; the parts dial nothing more.

        Bridges of the cluster continue: messages for a member that is connected are forwarded directly.
        """
        assert self.target is not None
        self._enter(FREEZING)
        self.frozen = True
        self.broker.stop()
        self._pin()
        report_retained(self.broker.trace, self.movable())
        self.mark.write(self.target, self.pinned)
        # Before clients are disconnected: a client that tried this node first would wait for its call-timeout.
        self.process.accept_no_more()
        for part in self.parts.values():
            if part is not self:
                part.stop(now)
            if isinstance(part, CoreBridges):
                for bridge in part.by_number.values():
                    bridge.stop(now)
        self.disconnects = Disconnects(self.broker.store, self.host, self.connections, now)
        self.disconnects.hold(now, self.askers)
        for queue in self.movable():
            if not queue.internal:
                queue.hold(1)
        self.clusters.notifications.withdraw_consumers(now)
        self.frozen_at = now

    def _pin(self) -> None:
        """Pins messages that a log reader was shown and has not acknowledged: the reader may have stored them
        already.

        The reader would read them once more at the target. When this node starts again, the reader continues at its
        offset.
        """
        for queue in self.movable():
            if unsettled(queue):
                self.pinned[queue.name] = queue.log.shown_through
                self.why = f"a reader of queue {queue.name} has not acknowledged what it was shown"

    def hold_members(self, now: int) -> bool:
        """Stops reading from members. Returns True once what was read last is answered."""
        if self.members_disconnected:
            return True
        if self.disconnects is None:  # clients had to go before the target knew the ids
            self.disconnects = Disconnects(self.broker.store, self.host, self.connections, now)
        if self.disconnects.members_held:
            return True
        self.disconnects.hold_members(now)
        self.check_soon(now)
        return False

    def disconnect_all(self, now: int, to_members: bool) -> bool:
        """Disconnects clients and members once the target knows the duplicate ids. Returns True if all have ended."""
        assert self.target is not None
        self.members_disconnected = self.members_disconnected or to_members
        self.host.leave_to(self.target.node_id, self.target.transport)
        if self.disconnects is not None:
            if not self.disconnects.send(now, to_members):
                self.check_soon(now)
                return False
            self.disconnects = None
        if self.members_disconnected:
            report_refused(self.connections)
        self._enter(MOVING)
        return True

    def arrived(self, now: int, conn: int, connection: ClientConnection) -> None:
        """Answers a connection that opened after the freeze like all others.

        As long as members must not be disconnected, the connection only gets refusals: it may be a member.
        """
        if self.disconnects is not None:
            self.disconnects.add(now, conn, connection)
        elif self.members_disconnected:
            connection.stop(now)
        else:
            connection.refuse_requests(False)

    # -- batches of inputs ----------------------------------------------------------------------
    def flush(self, now: int) -> None:
        disconnects = self.disconnects
        if disconnects is not None and not disconnects.answered():
            return
        if not self.mark.durable():
            return
        if self.mover is None and self.taken and self.link is not None:
            self.mover = Mover(self, self.link)
        if self.mover is not None:
            self.mover.turn(now)
        if self.disconnects is not None:
            if now >= self.disconnects.until:
                self.disconnect_all(now, False)
            else:
                self.broker.timers.set(LOOK, min(now + LOOK_NS, self.disconnects.until))

    def check_soon(self, now: int, delay_ns: int = LOOK_NS) -> None:
        """Sets the timer for another attempt a little later."""
        self.broker.timers.set(LOOK, now + delay_ns)

    def on_timer(self, now: int, key: str) -> None:
        if key == DEADLINE:
            if self.under_way():
                why = f"not done within {self.timeout_ms // 1000} s"
                waiting = [] if self.link is None else list(self.link.sender.waiting)
                if waiting:
                    why += f"; the target has no room at address {waiting[0]}"
                    why += f" and {len(waiting) - 1} others" if len(waiting) > 1 else ""
                self._end(now, FAILED, f"{why}; {self.why}" if self.why else why)
        elif key == TARGET:
            if self.under_way():
                self._dial_again(now)
        elif self.phase == SEEKING:
            self._seek(now)
        elif self.phase == READING:
            self._read_step(now)

    def _dial_again(self, now: int) -> None:
        if self.link is None and self.candidate is None and self.target is not None:
            self.candidate = self.target
            self.cluster.dialer.dial(TARGET, self.candidate.transport)

    # -- the end --------------------------------------------------------------------------------
    def moved_all(self, now: int) -> None:
        """Ends the scale-down after everything was tried. The target has answered for all that was sent."""
        self.in_doubt = False
        left = self.left()
        if left:
            self._end(now, FAILED, self.why or f"{left} messages could not be moved")
        else:
            self._end(now, DONE, "")

    def _end(self, now: int, phase: str, why: str) -> None:
        self._enter(phase)
        self.broker.timers.cancel(DEADLINE)
        self.candidate = None
        link = self.link
        if self.mover is not None:
            self.in_doubt = self.in_doubt or self.mover.unanswered()
            self.mover.abort(now)
            self.mover = None
        if link is not None:
            link.stop(now)
        if not self.in_doubt:
            self.mark.clear()
        self.why = why if phase == DONE or not self.frozen else f"{why}; {self._remedy()}"
        target = "" if self.target is None else self.target.node_id
        self.broker.trace.event(
            "scale_down_ended",
            {"target": target, "moved": self.moved, "left": self.left(), "why": self.why},
        )
        for name, count in self.queues_left().items():
            self.broker.trace.event("scale_down_left", {"queue": name, "messages": count})
        if not self.frozen:
            self.readers.release()
            self.target = None
            self.askers.clear()
            group = self.choice.group
            if group is not None and self.choice.heard is not None:
                self.clusters.discovery.unlisten(group, self.choice.heard)
        self.choice.heard = None
        if self.frozen:
            self.process.stop_later(self.linger_ns, "the node has left")

    def _remedy(self) -> str:
        """Returns the operator's next step after a failed scale-down."""
        if not self.in_doubt:
            return "start this node again: it serves its clients, and may leave again"
        return (
            f"the target {self.target_text()} may have messages that it has not answered for: start it and this node"
            " again, and the departure goes on. If the target never returns, scale-down-resume = false lets this node"
            " serve its clients; those messages may then be delivered twice"
        )

    # -- state ----------------------------------------------------------------------------------
    def target_text(self) -> str:
        """Returns the target's address and node id."""
        return "" if self.target is None else f"{self.target.transport.address} ({self.target.node_id})"

    def movable(self) -> list[Queue]:
        """Returns the queues that are not temporary."""
        return [queue for queue in self.broker.queues.values() if not queue.spec.temporary]

    def has_other_members(self) -> bool:
        """Returns whether a member besides the target is connected."""
        target_id = "" if self.target is None else self.target.node_id
        return any(
            node_id != target_id and record.linked()
            for cluster in self.clusters.connections
            for node_id, record in cluster.peers.items()
        )

    def queues_left(self) -> dict[str, int]:
        return {
            queue.name: queue.message_count for queue in self.movable() if queue.message_count > 0
        }

    def left(self) -> int:
        """Returns the number of messages left, counted per queue, plus the transactions in doubt."""
        counts = sum(queue.message_count for queue in self.movable())
        return counts + self.broker.branches.prepared
