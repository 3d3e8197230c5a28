"""Messages of one group go to one consumer, in their order."""

from __future__ import annotations

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.queue.message_groups import BUCKET_KEY
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import Bench, consume, endpoint


def send(bench: Bench, session: Session, *messages: str, durable: bool = True) -> None:
    """`a1` is a message of group a, `-x` one without a group."""
    for text in messages:
        message = bench.message("q", text.encode(), durable)
        if text[0] != "-":
            message.put_property("_AMQ_GROUP_ID", text[0])
        session.send(bench.now, message, 0)
    bench.settle()


def readers(bench: Bench, count: int, credits: int = -1) -> list[Session]:
    sessions: list[Session] = []
    for _ in range(count):
        session = bench.session()
        consume(session, bench, "q", credits=credits)
        sessions.append(session)
    return sessions


def groups_of(session: Session) -> set[str]:
    return {body.decode()[0] for body in endpoint(session).bodies()}


def test_each_group_stays_with_one_consumer_and_in_order(bench: Bench) -> None:
    bench.queue("q")
    first, second = readers(bench, 2)
    sender = bench.session()
    for n in range(5):
        send(bench, sender, f"a{n}", f"b{n}", f"c{n}", f"d{n}")
    assert groups_of(first) == {"a", "c"} and groups_of(second) == {"b", "d"}
    for session in (first, second):
        for group in groups_of(session):
            mine = [body for body in endpoint(session).bodies() if body.decode()[0] == group]
            assert mine == sorted(mine) and len(mine) == 5


def test_a_new_group_goes_to_the_consumer_with_the_fewest(bench: Bench) -> None:
    """A worker that comes late gets the next groups, whoever's turn it is."""
    bench.queue("q")
    [early] = readers(bench, 1)
    sender = bench.session()
    send(bench, sender, "a1", "b1", "c1")
    [late] = readers(bench, 1)
    send(bench, sender, "d1", "e1", "f1", "a2", "g1", "h1")
    assert groups_of(late) > {"d", "e", "f"} and len(groups_of(late)) == len(groups_of(early)) == 4


def test_who_has_ended_a_group_is_the_last_to_get_a_new_one(bench: Bench) -> None:
    """MessageGroupTest.testClosingMessageGroup of Classic."""
    bench.queue("q")
    [early] = readers(bench, 1)
    sender = bench.session()
    send(bench, sender, "a1", "a2")
    [late] = readers(bench, 1)
    sender.send(bench.now, bench.message("q", b"a3", _AMQ_GROUP_ID="a", _AMQ_GROUP_SEQUENCE=-1), 0)
    send(bench, sender, "a4", "a5", "b1")
    assert endpoint(early).bodies() == [b"a1", b"a2", b"a3", b"b1"]
    assert endpoint(late).bodies() == [b"a4", b"a5"]


def test_a_new_group_goes_to_no_consumer_whose_selector_leaves_it_out(bench: Bench) -> None:
    bench.queue("q")
    [everything] = readers(bench, 1)
    picky = bench.session()
    consume(picky, bench, "q", credits=-1, selector="kind = 'x'")
    sender = bench.session()
    send(bench, sender, "a1", "b1", "c1")
    assert groups_of(everything) == {"a", "b", "c"} and endpoint(picky).bodies() == []


def test_a_busy_consumer_holds_back_its_own_groups_only(bench: Bench) -> None:
    bench.queue("q")
    busy, idle = readers(bench, 2, credits=0)
    sender = bench.session()
    busy.add_credits(0, 1)
    send(bench, sender, "a1")
    assert endpoint(busy).bodies() == [b"a1"]
    idle.add_credits(0, -1)
    send(bench, sender, "a2", "b1", "-x", "a3", "b2")
    assert endpoint(idle).bodies() == [b"b1", b"-x", b"b2"]
    busy.add_credits(0, -1)
    bench.settle()
    assert endpoint(busy).bodies() == [b"a1", b"a2", b"a3"]


def test_a_group_goes_on_with_another_consumer_when_its_own_leaves(bench: Bench) -> None:
    """Messages that it had not acknowledged come first, then those that others passed over."""
    bench.queue("q")
    leaving, staying = readers(bench, 2)
    sender = bench.session()
    send(bench, sender, "a1", "b1", "a2", "b2")
    leaving.stop()
    send(bench, sender, "a3", "b3")
    assert endpoint(leaving).bodies() == [b"a1", b"a2"]
    leaving.acknowledge(bench.now, 0, endpoint(leaving).message_ids[0], True, 0)
    leaving.close(bench.now, False)
    bench.settle()
    assert endpoint(staying).bodies() == [b"b1", b"b2", b"b3", b"a2", b"a3"]
    send(bench, sender, "a4")
    assert endpoint(staying).bodies()[-1] == b"a4"


def test_order_is_kept_when_a_group_is_rolled_back(bench: Bench) -> None:
    bench.queue("q")
    first = bench.session(transacted=True)
    consume(first, bench, "q")
    second = bench.session(transacted=True)
    consume(second, bench, "q")
    sender = bench.session()
    send(bench, sender, "a1", "b1", "a2", "a3")
    first.acknowledge(bench.now, 0, endpoint(first).message_ids[1], False, 0)
    first.rollback(bench.now, False, 0)
    bench.settle()
    assert endpoint(first).bodies() == [b"a1", b"a2", b"a3", b"a1", b"a2", b"a3"]
    assert endpoint(second).bodies() == [b"b1"]


def test_sequence_minus_one_ends_a_group(bench: Bench) -> None:
    bench.queue("q")
    first, second = readers(bench, 2, credits=0)
    first.add_credits(0, -1)
    sender = bench.session()
    send(bench, sender, "a1")
    last = bench.message("q", b"a2", _AMQ_GROUP_ID="a", _AMQ_GROUP_SEQUENCE=-1)
    sender.send(bench.now, last, 0)
    bench.settle()
    first.stop()
    second.add_credits(0, -1)
    send(bench, sender, "a3")
    assert endpoint(first).bodies() == [b"a1", b"a2"]
    assert endpoint(second).bodies() == [b"a3"]


def test_what_others_passed_over_is_theirs_when_the_group_ends(bench: Bench) -> None:
    queue = bench.queue("q")
    first, second = readers(bench, 2, credits=0)
    first.add_credits(0, 1)
    sender = bench.session()
    send(bench, sender, "a1")
    last = bench.message("q", b"a2", _AMQ_GROUP_ID="a", _AMQ_GROUP_SEQUENCE=-1)
    sender.send(bench.now, last, 0)
    second.add_credits(0, -1)
    send(bench, sender, "a3")
    assert endpoint(second).bodies() == []
    first.add_credits(0, queue.references[0].size)  # room for one
    bench.settle()
    assert endpoint(first).bodies() == [b"a1", b"a2"]
    assert endpoint(second).bodies() == [b"a3"]


def test_rebalance_shares_groups_anew_when_a_consumer_comes() -> None:
    for rebalance in (False, True):
        bench = Bench()
        bench.queue("q", group_rebalance=rebalance)
        (first,) = readers(bench, 1)
        sender = bench.session()
        send(bench, sender, "a1", "b1")
        (second,) = readers(bench, 1)
        send(bench, sender, "a2", "b2")
        moved = len(endpoint(second).bodies())
        assert moved == (1 if rebalance else 0)


def test_a_rebalance_with_a_pause_waits_for_what_is_in_flight(bench: Bench) -> None:
    bench.queue("q", group_rebalance=True, group_rebalance_pause_dispatch=True)
    (first,) = readers(bench, 1)
    sender = bench.session()
    send(bench, sender, "a1", "b1")
    (second,) = readers(bench, 1)
    send(bench, sender, "a2", "b2", "-x")
    assert len(endpoint(first).bodies()) == 2 and endpoint(second).bodies() == []
    for message_id in list(endpoint(first).message_ids):
        first.acknowledge(bench.now, 0, message_id, True, 0)
    bench.settle()
    assert sorted(endpoint(first).bodies() + endpoint(second).bodies()) == [
        b"-x", b"a1", b"a2", b"b1", b"b2",
    ]  # fmt: skip
    assert endpoint(second).bodies() != []


def test_buckets_share_consumers_and_zero_means_no_groups() -> None:
    for buckets, together in ((1, True), (0, False)):
        bench = Bench()
        bench.queue("q", group_buckets=buckets)
        first, second = readers(bench, 2)
        send(bench, bench.session(), "a1", "b1", "c1", "a2")
        counts = sorted([len(endpoint(first).bodies()), len(endpoint(second).bodies())])
        assert counts == ([0, 4] if together else [2, 2])


def test_buckets_are_those_of_artemis(bench: Bench) -> None:
    """SimpleString.hashCode, over signed bytes; for ASCII its parity is that of String.hashCode (GroupingTest)."""
    queue = bench.queue("q", group_buckets=2)
    first, second = readers(bench, 2)
    groups = ["groupA", "groupB", "groupC"]
    for number, group in enumerate(groups):
        message = bench.message("q", str(number).encode(), _AMQ_GROUP_ID=group)
        bench.session().send(bench.now, message, 0)
    bench.settle()
    assert endpoint(first).bodies() == [b"0", b"2"] and endpoint(second).bodies() == [b"1"]
    assert queue.groups is not None
    queue.groups.buckets = 1000
    keys = [queue.groups.key_of(name) for name in ("groupA", "\u00e9t\u00e9", BUCKET_KEY + "7", "")]
    assert keys == [BUCKET_KEY + number for number in ("570", "218", "7", "0")]


def test_after_a_rebalance_the_first_group_begins_at_the_first_consumer() -> None:
    """GroupingTest.testGroupRebalance and testGroupRebalancePauseDispatch of Artemis."""
    for pause in (False, True):
        bench = Bench()
        bench.queue("q", group_rebalance=True, group_rebalance_pause_dispatch=pause)
        first, second = readers(bench, 2)
        sender = bench.session(transacted=True)
        for turn in range(3):
            send(bench, sender, *(f"{group}{turn}{n}" for group in "abc" for n in range(3)))
            sender.commit(bench.now, 0)
            bench.settle()
            if turn == 0:
                (third,) = readers(bench, 1)
            for session in (first, second, third):
                for message_id in endpoint(session).message_ids:
                    session.acknowledge(bench.now, 0, message_id, True, 0)
                endpoint(session).message_ids.clear()
            bench.settle()
        bodies = [[body[:2] for body in endpoint(each).bodies()] for each in (first, second, third)]
        assert bodies == [
            [b"a0"] * 3 + [b"c0"] * 3 + [b"a1"] * 3 + [b"a2"] * 3,
            [b"b0"] * 3 + [b"b1"] * 3 + [b"b2"] * 3,
            [b"c1"] * 3 + [b"c2"] * 3,
        ]


def test_the_messages_of_a_pinned_group_take_no_turn(bench: Bench) -> None:
    """QueueImpl.handleMessageGroup: a new group goes to the consumer that is next without them."""
    bench.queue("q")
    sessions = readers(bench, 3)
    sender = bench.session()
    send(bench, sender, "a1", "b1", "a2", "b2", "c1", "d1", "b3", "-x")
    assert [groups_of(session) for session in sessions] == [{"a", "d"}, {"b", "-"}, {"c"}]
    last = bench.message("q", b"b4", _AMQ_GROUP_ID="b", _AMQ_GROUP_SEQUENCE=-1)
    sender.send(bench.now, last, 0)
    send(bench, sender, "e1")
    assert groups_of(sessions[2]) == {"c", "e"}


def test_groups_and_selectors_and_priorities(bench: Bench) -> None:
    bench.queue("q")
    reader = bench.session()
    consume(reader, bench, "q", selector="colour = 'red'")
    other = bench.session()
    consume(other, bench, "q")
    sender = bench.session()
    for n in range(6):
        message = bench.message("q", f"a{n}".encode(), colour="red" if n < 3 else "blue")
        message.put_property("_AMQ_GROUP_ID", "a")
        message.priority = 4 + n % 2
        sender.send(bench.now, message, 0)
    bench.settle()
    got = endpoint(reader).bodies()
    # The group belongs to whoever got its first message; the red reader never takes the blue ones (as in Artemis).
    assert got in ([], [b"a1", b"a0", b"a2"])
    if got:
        reader.close(bench.now, False)
        bench.settle()
    assert sorted(endpoint(other).bodies()) == [b"a0", b"a1", b"a2", b"a3", b"a4", b"a5"]


def test_without_groups_nothing_is_kept_and_an_empty_queue_forgets_them(bench: Bench) -> None:
    queue = bench.queue("q")
    (reader,) = readers(bench, 1)
    send(bench, bench.session(), "-1", "-2")
    assert queue.alike
    send(bench, bench.session(), "a1")
    assert queue.groups is not None
    for message_id in list(endpoint(reader).message_ids):
        reader.acknowledge(bench.now, 0, message_id, True, 0)
    reader.close(bench.now, False)
    (reader,) = readers(bench, 1)
    assert queue.alike, "the short way of dispatching again"


def test_groups_without_messages_are_forgotten_when_there_are_too_many(bench: Bench) -> None:
    queue = bench.queue("q")
    (reader,) = readers(bench, 1)
    send(bench, bench.session(), "a1")
    groups = queue.groups
    assert groups is not None
    groups.pins_limit = groups.pins_least = 3
    for name in "bcdefgh":
        send(bench, bench.session(), f"{name}1")
        reader.acknowledge(bench.now, 0, endpoint(reader).message_ids[-1], True, 0)
    assert len(groups.pins) <= 4
    assert "a" in groups.pins


def test_the_first_of_a_group_is_marked_on_the_wire_only(bench: Bench) -> None:
    queue = bench.queue("q", group_first_key="first")
    (reader,) = readers(bench, 1)
    marks = endpoint(reader).marks
    send(bench, bench.session(), "a1", "a2", "b1", "-x")
    assert [mark and mark.property_value("first") for mark in marks] == [True, None, True, None]
    assert not queue.references[0].message.has_property("first")


def test_grouped_messages_survive_a_restart_in_their_order(bench: Bench) -> None:
    bench.queue("q", group_buckets=64, group_first_key="first", group_rebalance=True)
    send(bench, bench.session(), "a1", "b1", "a2", "b2")
    bench.restart()
    spec = bench.broker.queues["q"].spec
    assert (spec.group_buckets, spec.group_first_key, spec.group_rebalance) == (64, "first", True)
    first, second = readers(bench, 2)
    bench.settle()
    assert endpoint(first).bodies() == [b"a1", b"a2"]
    assert endpoint(second).bodies() == [b"b1", b"b2"]


def test_groups_that_come_back_from_pages() -> None:
    settings = AddressSettingsRepository()
    settings.add("#", {"max_size_bytes": 4_000, "page_size_bytes": 2_000})
    bench = Bench(settings=settings, paging=True)
    queue = bench.queue("q")
    sender = bench.session()
    for n in range(40):
        send(bench, sender, f"-{n:02}", f"a{n:02}", f"b{n:02}")
    assert queue.paged is not None
    bench.restart()
    first, second = readers(bench, 2)
    for _ in range(200):
        bench.settle()
        for session in (first, second):
            held = session.consumers[0].unacknowledged.values()
            if held:
                last = int(held[-1].message.id)
                session.acknowledge(bench.now, 0, last, False, 0)
    got = [endpoint(session).bodies() for session in (first, second)]
    assert len(got[0]) + len(got[1]) == 120
    for group in (b"a", b"b"):
        having = [bodies for bodies in got if any(body[:1] == group for body in bodies)]
        assert len(having) == 1, "one consumer has the whole group"
        mine = [body for body in having[0] if body[:1] == group]
        assert mine == sorted(mine) and len(mine) == 40
    validate(bench.broker)
