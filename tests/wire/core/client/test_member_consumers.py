"""A consumer at all members, each with a fake broker."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable

import pytest

from atalanta.wire.core.client.consumer import Delivery
from atalanta.wire.core.client.errors import ConnectionLost, QueueDoesNotExist
from atalanta.wire.core.client.member_consumers import (
    ASK_NS,
    REFUSED_NS,
    MemberConsumers,
    MemberPort,
)
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.session import ClientSession
from atalanta.wire.core.client.topology import Member
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.consumer import Acknowledge, ForceConsumerDelivery
from tests.wire.core.client import fake_broker
from tests.wire.core.client.engine_rig import Pair, encoded
from tests.wire.core.client.fake_broker import FakeConnection


class Members(MemberPort):
    """The members by node id, and the consumers at them. `go` moves all bytes, and lets time pass."""

    def __init__(self, *names: str, **how: object) -> None:
        self.pairs: dict[str, Pair] = {}
        self.names = list(names)
        self.brokers: dict[str, Pair] = {}
        self.calls: list[tuple[int, Callable[[], None]]] = []
        self.now = 0
        self.warned: list[str] = []
        self.queues: dict[str, tuple[str, ...]] = dict.fromkeys(names, ("q",))
        self.dialled: list[str] = []
        self.hung_up: list[str] = []
        self.consumers = MemberConsumers(self, "q", **how)  # type: ignore[arg-type]

    def named(self, names: Iterable[str] | None = None) -> list[Member]:
        return [Member(each, each, 61616) for each in (self.names if names is None else names)]

    def begin(self) -> None:
        self.consumers.topology(self.named())
        self.go()

    def dial(self, member: Member) -> ClientSession:
        pair = Pair()
        kept = self.pairs.get(member.node_id)
        if kept is not None:
            pair.broker = kept.broker
        else:
            pair.broker.node_id = member.node_id
            for queue in self.queues.get(member.node_id, ()):
                pair.broker.queues[queue] = deque()
        self.pairs[member.node_id] = pair
        self.dialled.append(member.node_id)
        session = pair.session()
        self.calls.append((self.now, pair.dial))
        return session

    def hang_up(self, node_id: str) -> None:
        self.hung_up.append(node_id)
        self.pairs[node_id].link.close()

    def later(self, delay_ns: int, call: Callable[[], None]) -> None:
        self.calls.append((self.now + delay_ns, call))

    def warn(self, text: str) -> None:
        self.warned.append(text)

    def go(self, passes_ns: int = 0) -> None:
        self.now += passes_ns
        for _ in range(20):
            due = [call for at, call in self.calls if at <= self.now]
            self.calls = [entry for entry in self.calls if entry[0] > self.now]
            for call in due:
                call()
            for pair in self.pairs.values():
                pair.run()

    def publish(self, name: str, *texts: str) -> None:
        for each in texts:
            self.pairs[name].broker.publish(encoded(each))
        self.pairs[name].broker.dispatch()
        self.go()

    def take(self) -> list[str]:
        return [str(each.message.text()) for each in self.deliveries()]

    def deliveries(self) -> list[Delivery]:
        found = []
        while (delivery := self.consumers.take()) is not None:
            found.append(delivery)
        return found

    def credits(self, name: str) -> int:
        (consumer,) = self.pairs[name].link.consumers.values()
        return consumer.credits

    def cut(self, name: str) -> None:
        self.pairs[name].cut()
        self.consumers.lost(name)


def done(reply: Reply) -> bool:
    return reply.done


class SlowAnswers:
    """One member's answers to the question for messages, which wait for `release`."""

    def __init__(self, pair: Pair) -> None:
        self._link = pair.link
        self._process = pair.link._consumer_packet
        self._held: list[tuple[int, Packet]] = []
        self._link._consumer_packet = self._hold  # type: ignore[method-assign]

    def _hold(self, channel: int, packet: Packet) -> None:
        if isinstance(packet, ForceConsumerDelivery):
            self._link.deliver()
            self._held.append((channel, packet))
        else:
            self._process(channel, packet)

    def release(self) -> None:
        self._link._consumer_packet = self._process  # type: ignore[method-assign]
        for channel, packet in self._held:
            self._process(channel, packet)


def test_the_members_are_looked_at_in_turn_and_each_keeps_its_order() -> None:
    members = Members("a", "b")
    members.begin()
    assert done(members.consumers.opened) and members.consumers.opened.error is None
    members.publish("a", "a1", "a2", "a3")
    members.publish("b", "b1")
    assert members.take() == ["a1", "b1", "a2", "a3"]


def test_a_member_without_the_queue_is_asked_again() -> None:
    members = Members("a", "b")
    members.queues["b"] = ()
    members.begin()
    assert members.consumers.opened.error is None
    members.pairs["b"].broker.queues["q"] = deque()
    members.publish("b", "late")
    assert members.take() == []
    members.go(ASK_NS)
    assert members.take() == ["late"]


def test_no_member_has_the_queue() -> None:
    members = Members("a", "b")
    members.queues = {}
    members.begin()
    assert isinstance(members.consumers.opened.error, QueueDoesNotExist)


def test_one_member_cannot_be_reached() -> None:
    members = Members("a", "b")
    members.consumers.topology(members.named())
    members.calls.pop()  # b is not dialled
    members.go()
    assert not done(members.consumers.opened)
    members.consumers.lost("b")
    assert done(members.consumers.opened) and members.consumers.opened.error is None


def test_the_window_is_shared() -> None:
    members = Members("a", "b", window=1_000)
    members.begin()
    assert [members.credits(each) for each in "ab"] == [500, 500]
    members.names.append("c")
    members.queues["c"] = ("q",)
    members.consumers.topology(members.named())
    members.go()
    assert [members.credits(each) for each in "abc"] == [333, 333, 333]
    members.publish("a", "1")
    used = 333 - members.credits("a")
    members.cut("c")
    members.consumers.topology(members.named("ab"))
    members.go()
    assert members.hung_up == ["c"] and members.credits("b") == 500 and members.credits("a") == 500 - used
    # A smaller share counts for what is in the buffer.
    members.consumers.topology(members.named("abc"))
    members.go()
    assert members.credits("a") == 333 - used
    assert members.take() == ["1"]
    members.publish("a", "2", "3")
    assert members.take() == ["2", "3"]
    members.go()
    assert members.credits("a") == 333


def test_with_a_window_of_0_never_more_than_one_message_comes() -> None:
    members = Members("a", "b", window=0)
    members.begin()
    members.publish("a", "a1", "a2")
    members.publish("b", "b1")
    for expected in ("a1", "b1", "a2"):
        reply = members.consumers.available()
        members.go()
        assert done(reply) and members.consumers.buffered == 1
        assert members.take() == [expected]
    reply = members.consumers.available()
    members.go()
    assert done(reply) and members.take() == []
    arrival = members.consumers.arrival()
    members.go()
    assert not done(arrival)
    members.publish("b", "b2")
    members.go(1_000_000_000)
    assert done(arrival) and members.take() == ["b2"]
    arrival = members.consumers.arrival()
    members.go()
    withdrawn = members.consumers.withdraw()
    members.publish("a", "a3")
    members.go(1_000_000_000)
    assert (withdrawn is None or done(withdrawn)) and members.take() == []


def test_a_call_that_does_not_wait_asks_all_that_can_be_asked() -> None:
    members = Members("a", "b", "c")
    members.begin()
    members.cut("c")
    members.go()
    reply = members.consumers.available()
    assert not done(reply)
    members.pairs["a"].run()
    assert not done(reply), "b was not asked yet"
    members.pairs["b"].run()
    assert done(reply) and members.take() == []


@pytest.mark.parametrize("cumulative", [False, True])
def test_acknowledgements(cumulative: bool) -> None:
    members = Members("a", "b", cumulative=cumulative)
    members.begin()
    members.publish("a", "a1", "a2")
    members.publish("b", "b1", "b2")
    taken = members.deliveries()
    assert [each.message.text() for each in taken] == ["a1", "b1", "a2", "b2"]
    reply = members.consumers.acknowledge_and_wait(taken[2], not cumulative)
    members.go()
    assert done(reply) and reply.error is None
    left = {
        name: len(next(iter(members.pairs[name].link.consumers.values())).unacknowledged) for name in members.names
    }
    assert left == ({"a": 0, "b": 1} if cumulative else {"a": 1, "b": 2})
    members.cut("b")
    reply = members.consumers.acknowledge_and_wait(taken[3], not cumulative)
    assert isinstance(reply.error, ConnectionLost)
    members.pairs["b"].dial()
    members.go()
    again = members.deliveries()
    assert [each.message.text() for each in again] == (["b2"] if cumulative else ["b1", "b2"])


def test_members_that_are_named_no_longer_are_given_up_with_their_connection() -> None:
    members = Members("a", "b")
    members.begin()
    members.consumers.topology(members.named("a"))
    members.publish("b", "still there")
    assert members.take() == ["still there"] and members.hung_up == []
    members.cut("b")
    members.go()
    assert members.hung_up == ["b"]
    members.consumers.topology(members.named())
    members.go()
    assert members.dialled == ["a", "b", "b"]
    members.publish("b", "back")
    assert members.take()[-1] == "back"


def test_another_node_at_the_address_of_a_member_is_not_consumed_twice() -> None:
    members = Members("a", "b")
    members.begin()
    members.pairs["b"].broker.node_id = "c"
    members.cut("b")
    members.pairs["b"].dial()
    members.consumers.topology([*members.named("a"), Member("c", "b", 61616)])
    assert members.hung_up == ["b"]


def test_a_queue_that_is_deleted_is_waited_for() -> None:
    members = Members("a", "b")
    members.begin()
    del members.pairs["b"].broker.queues["q"]
    members.cut("b")
    members.pairs["b"].dial()
    members.go()
    assert members.consumers.failed is None
    members.pairs["b"].broker.queues["q"] = deque()
    members.publish("b", "new")
    members.go(ASK_NS)
    assert members.take() == ["new"]


def test_a_second_loss_before_the_consumer_is_made_again_leaves_the_window_whole() -> None:
    members = Members("a", "b", window=200)
    members.begin()
    consumer = members.consumers.members["a"].consumer
    assert consumer is not None
    members.cut("a")
    at_the_loss = Reply()
    at_the_loss.resolve(None)
    consumer.created(at_the_loss)  # what the requests that are not repeated are told
    consumer.resize(150)
    consumer.resize(100)
    members.pairs["a"].dial()
    for text in "1234":
        members.publish("a", text)
        assert members.take() == [text]


def test_an_error_is_told_to_each_later_call() -> None:
    members = Members("a")
    members.begin()
    error = ConnectionLost("the connection that names the members is lost", 4)
    members.consumers.fail(error)
    assert members.consumers.failed is error and not members.consumers.closed
    assert members.consumers.available().error is error
    assert done(members.consumers.arrival())
    members.consumers.topology(members.named("ab"))
    assert members.dialled == ["a"]
    closed = members.consumers.close()
    members.go()
    assert done(closed) and members.consumers.failed is error


def test_the_end_of_one_wait_is_not_that_of_another() -> None:
    members = Members("a")
    members.begin()
    reply = members.consumers.arrival()
    members.consumers.withdraw()
    members.publish("a", "1")
    assert done(reply)


def test_waits_with_a_window_of_0_leave_no_timers_behind() -> None:
    members = Members("a", "b", window=0)
    members.begin()
    for _ in range(20):
        members.consumers.arrival()
        members.go(20_000_000)
        members.consumers.withdraw()
        members.go()
    assert len(members.calls) <= 1


def test_with_a_window_of_0_a_message_ends_the_turn() -> None:
    members = Members("a", "b", window=0)
    members.begin()
    answers = SlowAnswers(members.pairs["a"])
    reply = members.consumers.arrival()
    members.publish("a", "a1")
    members.publish("b", "b1")
    assert done(reply) and members.take() == ["a1"]
    answers.release()
    members.go()
    assert members.consumers.buffered == 0, "nobody waits for it"


def test_a_lost_member_ends_a_wait_that_is_being_withdrawn() -> None:
    members = Members("a", "b", window=0)
    members.begin()
    SlowAnswers(members.pairs["a"])
    members.consumers.arrival()
    members.go()
    withdrawn = members.consumers.withdraw()
    assert withdrawn is not None and not done(withdrawn)
    members.cut("a")
    assert done(withdrawn)
    # It gets no credit of that wait when it is back.
    members.pairs["a"].dial()
    members.publish("a", "a1")
    assert members.consumers.buffered == 0


def test_a_wait_goes_on_after_a_call_that_was_given_up() -> None:
    members = Members("a", "b", window=0)
    members.begin()
    answers = SlowAnswers(members.pairs["a"])
    members.consumers.available()
    members.consumers.withdraw()
    members.go()
    reply = members.consumers.arrival()
    members.publish("b", "b1")
    assert not done(reply), "a has a credit still"
    answers.release()
    members.go(1_000_000_000)
    assert done(reply) and members.take() == ["b1"]


def test_a_cumulative_acknowledgement_does_not_count_for_what_was_given_back() -> None:
    members = Members("a", "b", cumulative=True)
    members.begin()
    members.publish("a", "a1", "a2")
    members.publish("b", "b1")
    taken = members.deliveries()
    assert [each.message.text() for each in taken] == ["a1", "b1", "a2"]
    members.consumers.settle(taken[1], False, 0)
    reply = members.consumers.acknowledge_and_wait(taken[2], False)
    members.go()
    assert done(reply) and reply.error is None
    acknowledged = [each for each in members.pairs["b"].link.packets(Acknowledge)]
    assert acknowledged == []


@pytest.mark.parametrize("how", ["browse_only", "pre_acknowledged"])
def test_messages_that_nobody_acknowledges_are_not_kept(how: str) -> None:
    members = Members("a", cumulative=True, **{how: True})
    members.begin()
    members.publish("a", "a1")
    message = members.deliveries()[0].message
    gc.collect()
    assert sys.getrefcount(message) == 2, "the program's, and the argument"


def test_a_member_that_went_away_while_it_was_asked_keeps_no_close_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    members = Members("a", "b")
    members.consumers.topology(members.named())
    answers = FakeConnection._consumer_packet
    silent = members.pairs["b"].broker

    def answer(link: FakeConnection, channel: int, packet: Packet) -> None:
        if link.broker is not silent:
            answers(link, channel, packet)

    monkeypatch.setattr(FakeConnection, "_consumer_packet", answer)
    members.go()
    assert members.consumers.members["b"].consumer is not None and not done(members.consumers.opened)
    members.cut("b")
    assert done(members.consumers.opened)
    closed = members.consumers.close()
    members.go()
    assert done(closed)


def test_messages_of_a_member_that_was_given_up_are_lost() -> None:
    members = Members("a", "b")
    members.begin()
    members.publish("b", "b1")
    (taken,) = members.deliveries()
    members.consumers.topology(members.named("a"))
    members.cut("b")
    members.go()
    assert members.hung_up == ["b"] and taken.lost
    reply = members.consumers.acknowledge_and_wait(taken, True)
    assert isinstance(reply.error, ConnectionLost) and "member b was given up" in reply.error.text


def test_a_member_that_refuses_the_login_is_dialled_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    members = Members("a", "b")
    members.begin()
    members.cut("b")
    monkeypatch.setattr(fake_broker, "PASSWORD", "another")
    members.pairs["b"].dial()
    for _ in range(5):
        members.cut("b")
        members.go()
    assert members.dialled == ["a", "b"] and members.warned == ["member b at b:61616: wrong password"]
    monkeypatch.undo()
    members.go(REFUSED_NS)
    assert members.dialled == ["a", "b", "b"]
    members.publish("b", "b1")
    assert members.take() == ["b1"]


def test_a_member_that_names_another_one_first_is_not_taken_for_that() -> None:
    """An Artemis node names the members in any order."""
    members = Members("a", "b")
    members.begin()
    broker = members.pairs["b"].broker
    broker.node_id, broker.members = "a", {"b": 61616}
    members.cut("b")
    members.pairs["b"].dial()
    members.consumers.topology(members.named("a"))
    members.publish("b", "b1")
    assert members.hung_up == [] and members.take() == ["b1"]
