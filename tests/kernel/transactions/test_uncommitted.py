"""Transactions hold messages before they are committed: each has a limit, and all of them together."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.transactions import xa_session
from atalanta.kernel.transactions.transaction import TRANSACTION_BYTES_MAX
from tests.kernel.broker_rig import Bench

MIB = 1 << 20


def bench_with(limit_bytes: int) -> Bench:
    config = BrokerConfig()
    config.global_max_size_bytes = limit_bytes
    bench = Bench(config)
    bench.queue("orders")
    return bench


def send(bench: Bench, session: Session, mebibytes: int) -> None:
    message = bench.message("orders", bytes(mebibytes * MIB - 1_000))
    session.send(bench.now, message, 0)


def test_one_is_as_large_as_it_may_be_and_not_larger() -> None:
    bench = bench_with(-1)
    fits, beyond = bench.session(True), bench.session(True)
    send(bench, fits, TRANSACTION_BYTES_MAX // MIB)
    send(bench, beyond, TRANSACTION_BYTES_MAX // MIB)
    send(bench, beyond, 1)
    assert not beyond.transaction.messages
    with pytest.raises(BrokerError, match="transaction is larger"):
        beyond.commit(bench.now, 0)
    assert len(fits.transaction.messages) == 1


def test_all_together_hold_no_more_than_all_messages_may() -> None:
    bench = bench_with(1_000 * MIB)
    sessions = [bench.session(True) for _ in range(5)]
    for session in sessions:
        send(bench, session, 199)
    send(bench, sessions[0], 6)
    assert [len(session.transaction.messages) for session in sessions] == [0, 1, 1, 1, 1]
    assert any(name == "uncommitted_refused" for name, _ in bench.trace.events)
    with pytest.raises(BrokerError, match="transactions hold more than"):
        sessions[0].commit(bench.now, 0)
    send(bench, sessions[0], 200)
    assert len(sessions[0].transaction.messages) == 1
    for session in sessions:
        session.rollback(bench.now, False, 0)


def test_what_has_ended_counts_no_more() -> None:
    bench = bench_with(300 * MIB)
    for number in range(20):
        session = bench.session(True)
        send(bench, session, 200)
        assert len(session.transaction.messages) == 1
        if number % 2:
            session.rollback(bench.now, False, 0)
        else:
            session.close(bench.now, False)
    invariants.validate(bench.broker)


def test_branches_count_once_whoever_works_in_them() -> None:
    bench = bench_with(300 * MIB)
    xid = b"\0\0\0\x01" + b"\0\0\0\x01b" + b"\0\0\0\x01g"
    first, second = bench.session(), bench.session()
    first.xa = second.xa = True
    xa_session.start(first, bench.now, xid)
    send(bench, first, 150)
    xa_session.join(second, xid)
    send(bench, second, 100)
    other = bench.session(True)
    send(bench, other, 40)
    assert len(other.transaction.messages) == 1
    assert len(first.transaction.messages) == 2
    send(bench, other, 20)
    assert not other.transaction.messages and len(first.transaction.messages) == 2
