"""A broker with small page files, a sender and a consumer."""

from __future__ import annotations

from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from tests.kernel.broker_rig import Bench, RecordingEndpoint, consume, endpoint

LIMIT = 40_000
PAGE = 16_000
SMALL: dict[str, SettingValue] = {"max_size_bytes": LIMIT, "page_size_bytes": PAGE}


def bench_with(values: dict[str, SettingValue], config: BrokerConfig | None = None) -> Bench:
    settings = AddressSettingsRepository()
    settings.add("#", values)
    bench = Bench(config, settings, paging=True)
    bench.trace.on = False
    bench.queue("orders")
    return bench


def send(bench: Bench, numbers: range, durable: bool = True, address: str = "orders") -> None:
    session = bench.session()
    for number in numbers:
        body = number.to_bytes(4, "big") + bytes(400)
        session.send(bench.now, bench.message(address, body, durable), number)
        if number % 10 == 9:
            bench.settle()
    bench.settle()
    assert endpoint(session).answers == list(numbers)


def numbers_of(bodies: list[bytes]) -> list[int]:
    return [int.from_bytes(body[:4], "big") for body in bodies]


def held(bench: Bench, queue: str = "orders") -> list[int]:
    found = [reference.message.body for reference in everything(bench.broker.queues[queue])]
    return numbers_of(found)


class Taker:
    """A consumer that acknowledges in batches."""

    def __init__(self, bench: Bench, queue: str = "orders", selector: str | None = None) -> None:
        self.bench = bench
        self.session: Session = bench.session()
        consume(self.session, bench, queue, selector, credits=0)
        self.taken: list[int] = []

    def take(self, count: int, size: int = 20_000) -> list[int]:
        """Up to `count` messages, acknowledged one batch of credits at a time."""
        seen: RecordingEndpoint = endpoint(self.session)
        got: list[int] = []
        while len(got) < count:
            before = len(seen.delivered)
            self.session.add_credits(0, min(size, 600 * (count - len(got))))
            self.bench.settle()
            new = seen.delivered[before:]
            if not new:
                break
            got.extend(numbers_of([body for _, _, body in new]))
            self.session.acknowledge(self.bench.now, 0, seen.message_ids[-1], False, 0)
            self.bench.settle()
        self.taken.extend(got)
        return got


def files(bench: Bench) -> int:
    assert bench.pages is not None
    return len(bench.pages.files)
