"""Senders at a full address, a full node and a full disk."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.broker.disk_limit import DiskLimit
from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ADDRESS_FULL, DUPLICATE_ID, BrokerError
from atalanta.kernel.memory.full_address import AWAITED_MAX
from atalanta.kernel.memory.memory import MESSAGE_MEMORY_BYTES, SENDERS_TIMER, WAITING_ADDRESSES_MAX
from atalanta.kernel.security.security import Identity
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from tests.kernel.broker_rig import Bench, consume, endpoint


def bench_with(values: dict[str, SettingValue], config: BrokerConfig | None = None) -> Bench:
    settings = AddressSettingsRepository()
    settings.add("#", values)
    bench = Bench(config, settings)
    bench.queue("orders")
    return bench


def fill(bench: Bench, count: int, size: int = 1_000) -> None:
    session = bench.session()
    for number in range(count):
        session.send(bench.now, bench.message("orders", bytes(size)), number)
    bench.settle()


def drain(bench: Bench) -> int:
    session = bench.session()
    consume(session, bench, "orders")
    bench.settle()
    ids = endpoint(session).message_ids
    if ids:
        session.acknowledge(bench.now, 0, ids[-1], False, 99)
    session.close_consumer(bench.now, 0)
    bench.settle()
    return len(ids)


@pytest.mark.parametrize("limit", ["max_size_bytes", "max_size_messages"])
def test_block_withholds_the_credits_of_its_own_address_only(limit: str) -> None:
    value = 2_000 if limit == "max_size_bytes" else 2
    bench = bench_with({"address_full_policy": "BLOCK", limit: value})
    bench.queue("other")
    fill(bench, 2)
    session = bench.session()
    session.request_credits("orders", 10)
    session.request_credits("orders", 20)
    session.request_credits("other", 30)
    bench.settle()
    assert endpoint(session).granted == [("other", 30)]
    assert [name for name, _ in bench.trace.events if name == "address_blocked"]
    assert drain(bench) == 2
    assert endpoint(session).granted == [("other", 30), ("orders", 30)]


def test_the_log_tells_when_an_address_blocks_and_when_it_does_not_any_more() -> None:
    """Also if whoever waited is gone before: the next time is told of again."""
    bench = bench_with({"address_full_policy": "BLOCK", "max_size_messages": 2})
    for round_ in range(2):
        fill(bench, 2)
        leaving = bench.session()
        leaving.request_credits("orders", 10)
        bench.broker.memory.forget(endpoint(leaving))
        other = bench.session()
        other.request_credits("orders", 10)
        bench.broker.memory.forget(endpoint(other))
        assert drain(bench) == 2
        told = [fields for name, fields in bench.trace.events if name.endswith("blocked")]
        assert [fields["address"] for fields in told] == ["orders"] * 2 * (round_ + 1)
        assert [fields.get("why") for fields in told[-2:]] == ["the address is full", None]


def test_what_is_remembered_of_blocked_addresses_has_an_end() -> None:
    bench = bench_with({})
    memory = bench.broker.memory
    memory.set_disk_full(True)
    for number in range(3_000):
        session = bench.session()
        session.request_credits(f"a{number}", 10)
        memory.forget(endpoint(session))
    assert len(memory.waiting) <= 1_001


def test_fail_refuses_credits_and_messages_and_takes_them_again_later() -> None:
    bench = bench_with({"address_full_policy": "FAIL", "max_size_messages": 2})
    fill(bench, 2)
    session = bench.session()
    session.request_credits("orders", 10)
    assert endpoint(session).granted == [("orders", -10)]
    with pytest.raises(BrokerError) as caught:
        session.send(bench.now, bench.message("orders"), 5)
    assert caught.value.code == ADDRESS_FULL
    transacted = bench.session(transacted=True)
    with pytest.raises(BrokerError):
        transacted.send(bench.now, bench.message("orders"), 6)
    with pytest.raises(BrokerError):
        transacted.commit(bench.now, 7)
    assert drain(bench) == 2
    assert endpoint(session).granted == [("orders", -10), ("orders", 10)]
    session.send(bench.now, bench.message("orders"), 8)
    bench.settle()
    assert endpoint(session).answers == [8]


@pytest.mark.parametrize("why", ["FAIL", "DROP", "disk"])
def test_a_repeat_of_what_was_taken_is_not_refused(why: str) -> None:
    """Its sender had no answer, and would take the refusal for the outcome of the first one, too."""
    bench = bench_with({"address_full_policy": why, "max_size_messages": 3} if why != "disk" else {})
    fill(bench, 2)
    session = bench.session()
    session.send(bench.now, bench.message("orders", _AMQ_DUPL_ID="x"), 1)
    if why == "disk":
        DiskLimit(bench.config, bench.broker.memory, bench.trace).set_exhausted(True)
    session.send(bench.now, bench.message("orders", _AMQ_DUPL_ID="x"), 2)
    bench.settle()
    assert endpoint(session).answers == [1, 2]
    if why != "DROP":
        with pytest.raises(BrokerError):
            session.send(bench.now, bench.message("orders", _AMQ_DUPL_ID="y"), 3)
    transacted = bench.session(transacted=True)
    transacted.send(bench.now, bench.message("orders", _AMQ_DUPL_ID="x"), 4)
    transacted.commit(bench.now, 5)
    bench.settle()
    assert endpoint(transacted).errors == [(5, DUPLICATE_ID)]
    assert bench.broker.queues["orders"].message_count == 3


@pytest.mark.parametrize("limit", ["max_size_bytes", "max_size_messages"])
@pytest.mark.parametrize("target", ["orders", "orders::orders"])
def test_one_transaction_sends_no_more_than_fits(limit: str, target: str) -> None:
    """PagingStoreImpl counts what is sent before it is committed."""
    room = 3 * (1_000 + MESSAGE_MEMORY_BYTES) if limit == "max_size_bytes" else 3
    for policy in ("FAIL", "DROP"):
        bench = bench_with({"address_full_policy": policy, limit: room})
        fill(bench, 1)
        session = bench.session(transacted=True)
        for _ in range(2):
            session.send(bench.now, bench.message(target, bytes(1_000)), 1)
        if policy == "FAIL":
            with pytest.raises(BrokerError) as caught:
                session.send(bench.now, bench.message(target, bytes(1_000)), 2)
            assert caught.value.code == ADDRESS_FULL
            with pytest.raises(BrokerError):
                session.commit(bench.now, 3)
            session.send(bench.now, bench.message(target, bytes(1_000)), 4)
        else:
            for _ in range(20):
                session.send(bench.now, bench.message(target, bytes(1_000)), 2)
            assert bench.trace.counters["messages_dropped_address_full"] == 20
        session.commit(bench.now, 5)
        bench.settle()
        assert bench.broker.queues["orders"].message_count == (2 if policy == "FAIL" else 3)


def test_drop_answers_the_sender_and_counts() -> None:
    bench = bench_with({"address_full_policy": "DROP", "max_size_messages": 2})
    fill(bench, 5)
    assert bench.broker.queues["orders"].message_count == 2
    assert bench.trace.counters["messages_dropped_address_full"] == 3
    assert drain(bench) == 2
    fill(bench, 1)
    assert bench.broker.queues["orders"].message_count == 1


@pytest.mark.parametrize(
    "config",
    [BrokerConfig(global_max_messages=2), BrokerConfig(global_max_size_bytes=2_000)],
)
def test_the_nodes_own_limit_blocks_every_address(config: BrokerConfig) -> None:
    bench = bench_with({"address_full_policy": "BLOCK"}, config)
    fill(bench, 2)
    session = bench.session()
    session.request_credits("elsewhere", 10)
    bench.settle()
    assert endpoint(session).granted == []
    drain(bench)
    assert endpoint(session).granted == [("elsewhere", 10)]


def test_a_full_disk_blocks_everybody_but_management() -> None:
    bench = bench_with({})
    bench.broker.resources.create(bench.now)
    bench.broker.memory.set_disk_full(True)
    session = bench.session()
    session.request_credits("orders", 10)
    session.request_credits(bench.config.management_address, 20)
    bench.settle()
    assert endpoint(session).granted == [(bench.config.management_address, 20)]
    bench.broker.memory.set_disk_full(False)
    bench.settle()
    assert endpoint(session).granted[1:] == [("orders", 10)]


@pytest.mark.parametrize("policy", ["FAIL", "DROP"])
def test_a_full_disk_does_what_the_address_says(policy: str) -> None:
    bench = bench_with({"disk_full_policy": policy})
    bench.broker.memory.set_disk_full(True)
    session = bench.session()
    if policy == "FAIL":
        with pytest.raises(BrokerError, match="full"):
            session.send(bench.now, bench.message("orders"), 1)
    else:
        session.send(bench.now, bench.message("orders"), 1)
    assert bench.broker.queues["orders"].pending == 0
    bench.broker.memory.set_disk_full(False)
    session.send(bench.now, bench.message("orders"), 2)
    bench.settle()
    assert bench.broker.queues["orders"].message_count == 1


def test_one_session_cannot_have_endless_requests_wait() -> None:
    bench = bench_with({})
    bench.broker.memory.set_disk_full(True)
    session = bench.session()
    for _ in range(3):
        session.request_credits("orders", 10)
    for number in range(WAITING_ADDRESSES_MAX - 1):
        session.request_credits(f"a{number}", 10)
    with pytest.raises(BrokerError, match="waiting"):
        session.request_credits("one more", 10)
    session.close(bench.now, False)
    assert not bench.broker.memory.waits
    bench.broker.memory.set_disk_full(False)
    bench.settle()
    assert not bench.broker.memory.waiting


def test_a_topics_message_is_charged_once_and_stays_charged_for_the_slowest(bench: Bench) -> None:
    for number in range(3):
        bench.queue(f"s{number}", "topic", 0)
    session = bench.session()
    message = bench.message("topic", bytes(1_000))
    session.send(bench.now, message, 1)
    bench.settle()
    memory = bench.broker.memory
    whole = message.size + MESSAGE_MEMORY_BYTES
    assert whole < memory.used_bytes < 2 * whole
    assert memory.used_messages == 1
    for number in range(2):
        bench.broker.queue_registry.delete(bench.now, f"s{number}", "gone")
        invariants.validate(bench.broker)
    assert memory.used_bytes == whole == bench.broker.addresses["topic"].account.bytes
    bench.broker.queue_registry.delete(bench.now, "s2", "gone")
    assert memory.used_bytes == memory.used_messages == 0


def overrun(bench: Bench, session: Session, target: str = "orders") -> int:
    """Sends 64 KiB messages without waiting until the node refuses one; returns the bytes it took, at most 200 MiB."""
    taken = 0
    while not endpoint(session).cuts and taken < 200 << 20:
        try:
            session.send(bench.now, bench.message(target, bytes(1 << 16)), SILENT)
            taken += 1 << 16
        except BrokerError as error:
            assert error.code == ADDRESS_FULL and "without credits" in error.text
        bench.settle()
    return taken


@pytest.mark.parametrize("transacted", [False, True])
@pytest.mark.parametrize("case", ["address", "node", "disk", "operator"])
def test_a_sender_that_ignores_credits_is_cut_off(case: str, transacted: bool) -> None:
    config = BrokerConfig(global_max_size_bytes=10 << 20) if case == "node" else None
    limit = 10 << 20 if case == "address" else -1
    bench = bench_with({"address_full_policy": "BLOCK", "max_size_bytes": limit}, config)
    account = bench.broker.addresses["orders"].account
    if case == "disk":
        bench.broker.memory.set_disk_full(True)
    if case == "operator":
        account.blocked_by_operator = True
        bench.broker.memory.refuse(account)
    if transacted and case in ("address", "node"):
        fill(bench, 10, 1 << 20)
    session = bench.session(transacted)
    taken = overrun(bench, session)
    assert len(endpoint(session).cuts) == 1
    assert taken <= (12 << 20)
    assert account.bytes <= 13 << 20
    session.close(bench.now, True)
    bench.broker.memory.set_disk_full(False)
    account.blocked_by_operator = False
    drain(bench)
    fresh = bench.session()
    fresh.send(bench.now, bench.message("orders", bytes(1 << 16)), 1)
    bench.settle()
    assert endpoint(fresh).answers == [1] and bench.broker.memory.refusing == 0


@pytest.mark.parametrize("window_bytes", [64 << 10, 1 << 20, 30 << 20])
def test_a_sender_may_use_up_its_credits_after_the_address_is_full(window_bytes: int) -> None:
    """The client asks for half a window and then, before it has used that up, for what it lacks."""
    bench = bench_with({"address_full_policy": "BLOCK", "max_size_bytes": 10 << 20})
    session = bench.session()
    session.request_credits("orders", window_bytes // 2)
    session.request_credits("orders", window_bytes // 2)
    fill(bench, 10, 1 << 20)
    for number in range(window_bytes // (32 << 10)):
        session.send(bench.now, bench.message("orders", bytes(30 << 10)), number)
    bench.settle()
    assert not endpoint(session).cuts
    assert endpoint(session).answers == list(range(window_bytes // (32 << 10)))


def test_a_sender_may_use_up_its_credits_for_each_queue_of_the_full_address() -> None:
    """The client counts the credits of `orders::q1` and `orders::q2` apart; the node has one address."""
    bench = bench_with({"address_full_policy": "BLOCK", "max_size_bytes": 10 << 20})
    session = bench.session()
    names = [f"orders::q{number}" for number in range(20)]
    for name in names:
        session.request_credits(name, 32 << 10)
        session.request_credits(name, 32 << 10)
    fill(bench, 10, 1 << 20)
    for name in names:
        session.send(bench.now, bench.message(name, bytes(30 << 10)), 1)
        session.send(bench.now, bench.message(name, bytes(30 << 10)), 1)
    bench.settle()
    assert not endpoint(session).cuts and len(endpoint(session).answers) == 40


def test_a_sender_that_gets_credits_again_and_again_is_never_cut_off() -> None:
    bench = bench_with({"address_full_policy": "BLOCK", "max_size_messages": 2})
    session = bench.session()
    for _ in range(10):
        session.request_credits("orders", 300_000)
        fill(bench, 2)
        for number in range(9):
            session.send(bench.now, bench.message("orders", bytes(30_000)), number)
        bench.settle()
        drain(bench)
    assert not endpoint(session).cuts


def test_a_member_of_the_cluster_is_not_cut_off() -> None:
    """A real Artemis' cluster connection has no producer window (producer-window-size -1)."""
    bench = bench_with({"address_full_policy": "BLOCK", "max_size_bytes": 1 << 20})
    session = bench.session()
    session.identity = Identity("cluster", (), True)
    for number in range(64):
        session.send(bench.now, bench.message("orders", bytes(1 << 16)), number)
    bench.settle()
    assert not endpoint(session).cuts and bench.broker.queues["orders"].message_count == 64


def test_messages_that_fail_for_ever_leave_the_reserve_of_an_exhausted_disk_alone() -> None:
    bench = bench_with({"max_delivery_attempts": -1})
    fill(bench, 2)
    limit = DiskLimit(bench.config, bench.broker.memory, bench.trace)
    limit.set_exhausted(True)
    taker = bench.session(transacted=True)
    consume(taker, bench, "orders")
    bench.settle()
    before = bench.broker.journal.last
    for _ in range(50):
        taker.acknowledge(bench.now, 0, endpoint(taker).message_ids[-1], False, 0)
        taker.rollback(bench.now, False, 0)
        bench.settle()
    assert len(endpoint(taker).delivered) > 50
    assert bench.broker.journal.last == before
    limit.set_exhausted(False)
    taker.acknowledge(bench.now, 0, endpoint(taker).message_ids[-1], False, 0)
    taker.rollback(bench.now, False, 0)
    bench.settle()
    bench.restart()
    again = bench.session()
    consume(again, bench, "orders")
    bench.settle()
    assert max(count for _, count, _ in endpoint(again).delivered) > 50


def test_an_exhausted_disk_takes_acknowledgements_and_no_message() -> None:
    bench = bench_with({})
    fill(bench, 2)
    open_transaction = bench.session(transacted=True)
    open_transaction.send(bench.now, bench.message("orders"), 1)
    limit = DiskLimit(bench.config, bench.broker.memory, bench.trace)
    limit.set_exhausted(True)
    session = bench.session()
    with pytest.raises(BrokerError, match="disk of the node is full"):
        session.send(bench.now, bench.message("orders"), 1)
    with pytest.raises(BrokerError, match="disk of the node is full"):
        open_transaction.commit(bench.now, 2)
    taker = bench.session(transacted=True)
    consume(taker, bench, "orders")
    bench.settle()
    taker.acknowledge(bench.now, 0, endpoint(taker).message_ids[0], True, 3)
    taker.commit(bench.now, 4)
    taker.close(bench.now, False)
    bench.settle()
    assert drain(bench) == 1
    limit.update(0.1, 1 << 30)
    with pytest.raises(BrokerError):
        session.send(bench.now, bench.message("orders"), 5)
    limit.set_exhausted(False)
    limit.update(0.1, 1 << 30)
    session.send(bench.now, bench.message("orders"), 6)
    bench.settle()
    assert endpoint(session).answers == [6] and bench.broker.memory.refusing == 0


# -- blocked-send-timeout ---------------------------------------------------------------------------
def test_a_request_for_credits_is_refused_after_the_time_of_its_address() -> None:
    """As with FAIL: a client of Artemis throws ADDRESS_FULL, and asks again for its next message."""
    bench = bench_with({"address_full_policy": "BLOCK", "max_size_messages": 2, "blocked_send_timeout_ms": 5_000})
    fill(bench, 2)
    session = bench.session()
    for number in range(1, 3):
        session.request_credits("orders", 10, bench.now)
        wait(bench, 4_900)
        assert len(endpoint(session).granted) == number - 1
        wait(bench, 200)
        assert endpoint(session).granted == [("orders", -10)] * number
    session.request_credits("orders", 10, bench.now)
    wait(bench, 4_900)
    assert drain(bench) == 2
    wait(bench, 10_000)
    assert endpoint(session).granted == [("orders", -10)] * 2 + [("orders", 10)]


def test_peers_and_addresses_without_such_a_time_wait_for_ever() -> None:
    bench = bench_with({"address_full_policy": "BLOCK", "max_size_messages": 2})
    fill(bench, 2)
    session = bench.session()
    session.request_credits("orders", 10, bench.now)
    assert SENDERS_TIMER not in bench.timers.due
    bench.broker.address_registry.by_name["orders"].account.wait_ns = 5_000_000_000
    peer = bench.session()
    peer.identity = Identity("cluster", (), True)
    peer.request_credits("orders", 10, bench.now)
    assert SENDERS_TIMER not in bench.timers.due


@pytest.mark.parametrize(("changed_ms", "refused_after_ms"), [(2_000, 2_000), (9_000, 9_000), (-1, -1)])
def test_a_changed_time_counts_for_those_who_wait(changed_ms: int, refused_after_ms: int) -> None:
    values: dict[str, SettingValue] = {"address_full_policy": "BLOCK", "max_size_messages": 2}
    bench = bench_with({**values, "blocked_send_timeout_ms": 5_000})
    fill(bench, 2)
    session = bench.session()
    session.request_credits("orders", 10, bench.now)
    wait(bench, 1_000)
    bench.settings.add("orders", {**values, "blocked_send_timeout_ms": changed_ms})
    registry = bench.broker.address_registry
    registry.apply_settings(registry.by_name["orders"])
    waited_ms = 1_000
    while waited_ms < 20_000 and not endpoint(session).granted:
        wait(bench, 1_000)
        waited_ms += 1_000
    assert endpoint(session).granted == ([] if refused_after_ms < 0 else [("orders", -10)])
    assert refused_after_ms < 0 or waited_ms == refused_after_ms


def test_a_sender_to_addresses_that_do_not_exist_leaves_nothing_behind() -> None:
    bench = bench_with({"blocked_send_timeout_ms": 1_000})
    bench.settings.add("#", {"blocked_send_timeout_ms": 1_000})
    memory = bench.broker.memory
    memory.set_disk_full(True)
    session = bench.session()
    for number in range(2_000):
        session.request_credits("new" if number % 2 else f"new.{number}", 10, bench.now)
        wait(bench, 1_000)
    assert len(endpoint(session).granted) == 2_000
    assert len(memory.waiting) <= WAITING_ADDRESSES_MAX and not memory.waits
    assert len(bench.broker.session_services.full_addresses.awaited) <= AWAITED_MAX


def wait(bench: Bench, time_ms: int) -> None:
    bench.now += time_ms * 1_000_000
    bench.broker.set_now(bench.now)
    if bench.timers.due.get(SENDERS_TIMER, bench.now + 1) <= bench.now:
        bench.timers.cancel(SENDERS_TIMER)
        bench.broker.on_timer(bench.now, SENDERS_TIMER)
    bench.settle()


def test_each_request_to_an_address_that_fails_its_senders_is_refused() -> None:
    bench = bench_with({"address_full_policy": "FAIL", "max_size_messages": 2})
    fill(bench, 2)
    session = bench.session()
    session.request_credits("orders", 10)
    session.request_credits("orders", 20)
    assert endpoint(session).granted == [("orders", -10), ("orders", -20)]
