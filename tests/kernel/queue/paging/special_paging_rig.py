"""A broker with page files and queues of special kinds."""

from __future__ import annotations

from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import Bench, consume, endpoint
from tests.kernel.queue.paging.paging_rig import SMALL, numbers_of


def bench_with(**attributes: object) -> Bench:
    settings = AddressSettingsRepository()
    settings.add("#", SMALL)
    bench = Bench(None, settings, paging=True)
    bench.queue("orders", **attributes)  # type: ignore[arg-type]
    return bench


def reader(bench: Bench, selector: str | None = None, credits: int = -1) -> Session:
    session = bench.session()
    consume(session, bench, "orders", selector, credits)
    bench.settle()
    return session


def seen(session: Session) -> list[int]:
    return numbers_of(endpoint(session).bodies())
