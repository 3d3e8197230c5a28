"""Branches of distributed transactions."""

from __future__ import annotations

from atalanta.kernel.sessions.session import Session
from atalanta.kernel.transactions import xa_session
from tests.kernel.broker_rig import Bench, consume, endpoint
from tests.kernel.queue.paging.paging_rig import files, send

XID = b"xid"


def branch_of(bench: Bench) -> Session:
    session = bench.session()
    session.xa = True
    return session


def ended(bench: Bench, commit: bool) -> None:
    session = branch_of(bench)
    if commit:
        xa_session.commit(session, bench.now, XID, False, session.endpoint, 0)
    else:
        xa_session.roll_back(session, bench.now, XID, session.endpoint, 0)
    bench.settle()


def prepared_behind_a_page(bench: Bench) -> None:
    """The queue is in memory: 60 came from a page, whose file is still there; 100 is acknowledged by the branch."""
    send(bench, range(100))
    early = bench.session()
    consume(early, bench, "orders")
    seen = endpoint(early)
    acknowledged = 0
    while acknowledged < 100:
        bench.settle()
        for place in range(acknowledged, len(seen.message_ids)):
            if place != 60:
                early.acknowledge(bench.now, 0, seen.message_ids[place], True, 0)
        acknowledged = len(seen.message_ids)
    bench.settle()
    early.stop()
    send(bench, range(100, 110))
    queue = bench.broker.queues["orders"]
    assert queue.paged is None and files(bench) == 1 and queue.message_count == 11
    session = branch_of(bench)
    xa_session.start(session, bench.now, XID)
    consume(session, bench, "orders")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], True, 0)
    xa_session.end(session, bench.now, XID)
    xa_session.prepare(session, bench.now, XID, session.endpoint, 0)
    session.close(bench.now, False)
    bench.settle()
