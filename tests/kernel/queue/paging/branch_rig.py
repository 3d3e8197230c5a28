"""Branches of distributed transactions."""

from __future__ import annotations

from atalanta.kernel.sessions.session import Session
from atalanta.kernel.transactions import xa_session
from tests.kernel.broker_rig import Bench

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
