"""A lease that a user ends: its owner is told by whom, the messages stay, and others may have the queue."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import FENCED, ILLEGAL_STATE, LEASE_ENDED, BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.log.lease import ReaderLease
from atalanta.kernel.queue.queue import Queue
from atalanta.message.encoding.buffer import Writer
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint, consume

TTL = 60 * SECOND
ADMIN = "user admin from 192.0.2.7:5012"


def filled(bench: Bench, count: int) -> Queue:
    queue = bench.queue("archive", "flights", 0)
    session = bench.session()
    for number in range(count):
        session.send(bench.now, bench.message("flights", str(number).encode()), number)
    bench.settle()
    return queue


def lease(bench: Bench, epoch: int = 0, group: str = "spark", ttl_ns: int = TTL) -> ReaderLease:
    views = bench.broker.log_views
    held = views.lease(bench.now, "archive", group, "driver", ttl_ns, epoch, RecordingEndpoint(), 1)
    bench.settle()
    return held


def end(bench: Bench, epoch: int = -1) -> None:
    queue = bench.broker.queues["archive"]
    bench.broker.log_views.end_lease(bench.now, queue, ADMIN, epoch)
    bench.settle()


def acknowledge(bench: Bench, epoch: int, through: int) -> None:
    bench.broker.log_views.ack_through("archive", "", "spark", epoch, through, RecordingEndpoint(), 1)
    bench.settle()


def refusal(bench: Bench, epoch: int) -> BrokerError:
    """The error of an acknowledgement with that epoch; that of a renewal is the same."""
    found = []
    for action in (lambda: acknowledge(bench, epoch, 1), lambda: lease(bench, epoch)):
        with pytest.raises(BrokerError) as refused:
            action()
        found.append((refused.value.code, refused.value.text))
    assert found[0] == found[1]
    return refused.value


@pytest.mark.parametrize("then", ["", "restart", "compaction"])
def test_the_owner_is_told_who_ended_its_lease_and_its_messages_stay(bench: Bench, then: str) -> None:
    filled(bench, 3)
    held = lease(bench)
    bench.broker.log_views.plan("archive", "", 0, 2, -1)  # a batch under way
    end(bench)
    if then == "compaction":
        bench.compact(bench.journal.last)
    if then:
        bench.restart()
    told = refusal(bench, held.epoch)
    assert told.code == LEASE_ENDED
    assert told.text == f"the lease of group spark of queue archive was ended by {ADMIN} (epoch 2, yours is 1)"
    assert refusal(bench, 2).code == LEASE_ENDED, "the epoch of the end is nobody's"
    queue = bench.broker.queues["archive"]
    assert (queue.message_count, queue.active_lease(), queue.log.acked_through) == (3, None, 0)
    session = bench.session()
    session.start()
    consume(session, bench, "archive")
    bench.settle()
    assert isinstance(session.endpoint, RecordingEndpoint)
    assert session.endpoint.bodies() == [b"0", b"1", b"2"]


def test_the_same_group_goes_on_where_it_was(bench: Bench) -> None:
    filled(bench, 3)
    held = lease(bench)
    acknowledge(bench, held.epoch, 1)
    end(bench)
    again = lease(bench)
    assert (again.epoch, again.ended_by) == (3, "")
    assert bench.broker.log_views.position("archive").acked_through == 1
    acknowledge(bench, again.epoch, 3)
    assert bench.broker.queues["archive"].message_count == 0
    with pytest.raises(BrokerError, match="was taken over by driver") as refused:
        acknowledge(bench, held.epoch, 2)
    assert refused.value.code == FENCED


def test_another_group_may_have_the_queue(bench: Bench) -> None:
    filled(bench, 1)
    lease(bench)
    with pytest.raises(BrokerError, match="is leased to the log-view group spark of driver for 60 s more"):
        lease(bench, group="other")
    end(bench)
    assert lease(bench, group="other").epoch == 1


def test_only_the_lease_that_is_meant_is_ended(bench: Bench) -> None:
    filled(bench, 1)
    for why in ("never leased", "released"):
        with pytest.raises(BrokerError, match="queue archive has no lease that could be ended") as refused:
            end(bench)
        assert refused.value.code == ILLEGAL_STATE, why
        lease(bench, lease(bench).epoch, ttl_ns=0)
    first = lease(bench)
    second = lease(bench)
    with pytest.raises(BrokerError, match=f"has epoch {second.epoch} of driver"):
        end(bench, first.epoch)
    assert bench.broker.queues["archive"].active_lease() is second
    end(bench, second.epoch)
    assert bench.broker.queues["archive"].active_lease() is None


def test_a_lease_that_is_over_by_itself_cannot_be_ended(bench: Bench) -> None:
    filled(bench, 1)
    held = lease(bench)
    bench.now += 2 * TTL
    bench.broker.log_views.end_leases(bench.now)
    with pytest.raises(BrokerError, match="has no lease"):
        end(bench)
    acknowledge(bench, held.epoch, 1)  # its owner is fenced by nobody
    assert bench.broker.queues["archive"].message_count == 0


def test_the_age_survives_a_restart_and_the_lease_begins_again(bench: Bench) -> None:
    filled(bench, 1)
    held = lease(bench)
    begun_at = bench.now
    bench.now += 20 * SECOND
    lease(bench, held.epoch)
    bench.now += 10 * SECOND
    bench.restart()
    found = bench.broker.queues["archive"].active_lease()
    assert found is not None
    assert (found.begun_at, found.rest_ns(bench.now)) == (begun_at, TTL)
    end(bench, held.epoch)
    assert refusal(bench, held.epoch).code == LEASE_ENDED


def test_an_end_that_was_not_durable_has_not_happened(bench: Bench) -> None:
    filled(bench, 1)
    held = lease(bench)
    bench.broker.log_views.end_lease(bench.now, bench.broker.queues["archive"], ADMIN, -1)
    bench.restart()
    acknowledge(bench, held.epoch, 1)
    assert bench.broker.queues["archive"].message_count == 0


def test_refused_consumers_and_groups_are_counted(bench: Bench) -> None:
    filled(bench, 1)
    held = lease(bench)
    for _ in range(2):
        bench.now += SECOND
        with pytest.raises(BrokerError) as refused:
            consume(bench.session(), bench, "archive")
    assert refused.value.code == FENCED
    assert refused.value.text == (
        "queue archive is leased to the log-view group spark of driver for 58 s more, longer if it is renewed. "
        "`atalanta queue stat archive` shows the lease, `atalanta queue end-lease archive` ends it and removes no "
        "message"
    )
    with pytest.raises(BrokerError):
        lease(bench, group="other")
    assert (held.refusals, held.refused_at) == (3, bench.now)


def test_a_lease_of_an_earlier_version_is_read(bench: Bench) -> None:
    queue = filled(bench, 1)
    writer = Writer()
    writer.int64(queue.id)
    ReaderLease("spark", 7, "driver", TTL).encode(writer)
    bench.journal.append(records.LEASE, writer.getvalue())
    bench.settle()
    bench.restart()
    found = bench.broker.queues["archive"].active_lease()
    assert found is not None and (found.epoch, found.begun_at, found.ended_by) == (7, bench.now, "")
    acknowledge(bench, 7, 1)


def test_the_end_is_an_event_that_names_owner_and_user(bench: Bench) -> None:
    filled(bench, 1)
    lease(bench)
    end(bench)
    fields = {"queue": "archive", "group": "spark", "owner": "driver", "epoch": 2, "by": ADMIN}
    assert ("lease_ended_by_operator", fields) in bench.trace.events


def test_a_first_lease_that_is_ended_before_it_is_granted(bench: Bench) -> None:
    """The owner is answered all the same, and refused with its next request."""
    bench.queue("archive", "flights", 0)
    session = bench.session()
    for number in range(3):
        session.send(bench.now, bench.message("flights", str(number).encode(), durable=False), number)
    bench.settle()
    owner = RecordingEndpoint()
    views = bench.broker.log_views
    held = views.lease(bench.now, "archive", "spark", "driver", TTL, 0, owner, 7)
    end(bench)
    bench.settle()
    assert owner.answers == [7]
    assert refusal(bench, held.epoch).code == LEASE_ENDED
    bench.restart()
    assert bench.broker.queues["archive"].message_count == 3, "they had become durable"
