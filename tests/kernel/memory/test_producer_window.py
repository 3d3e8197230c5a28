"""Clients with the usual producer window get a larger one while there is room, and theirs again when there is not."""

from __future__ import annotations

from collections import deque

import pytest

from atalanta.kernel.memory.producer_window import ADDRESSES_MAX, LIMIT_PART
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from tests.kernel.broker_rig import Bench, endpoint

USUAL = 64 * 1024
WINDOW = 1 << 20
MORE = (WINDOW - USUAL) // 2
MESSAGE = 1_200


class Producer:
    """The arithmetic of Artemis' own client (AbstractProducerCreditsImpl): it asks for half of its window at a time."""

    def __init__(self, session: Session, window: int = USUAL, address: str = "orders") -> None:
        self.session = session
        self.address = address
        self.half = window // 2
        self.balance = 0
        self.arriving = 0
        self.requests = 0
        self.most = 0
        self.unanswered: deque[int] = deque()
        self.seen = len(endpoint(session).granted)
        self._check(self.half)

    def _check(self, cost: int) -> None:
        needed = max(cost, self.half)
        if self.balance + self.arriving <= needed:
            amount = needed - self.arriving
            if amount > 0:
                self.arriving += amount
                self.requests += 1
                self.session.request_credits(self.address, amount)

    def hear(self) -> None:
        granted = endpoint(self.session).granted
        for address, amount in granted[self.seen :]:
            if address == self.address:
                self.balance += amount
                self.arriving -= amount
        self.seen = len(granted)
        self.most = max(self.most, self.balance)

    def pay(self, cost: int = MESSAGE) -> bool:
        """Whether it may send so much now."""
        self.hear()
        self._check(cost)
        self.hear()
        if self.balance < cost:
            return False
        self.balance -= cost
        return True

    def burst(self, at_most: int = 10_000_000) -> int:
        """Sends until it has to wait; returns the bytes."""
        sent = 0
        while sent < at_most and self.pay():
            sent += MESSAGE
        return sent


def bench_with(
    values: dict[str, SettingValue] | None = None, config: BrokerConfig | None = None
) -> Bench:
    settings = AddressSettingsRepository()
    settings.add("#", {"address_full_policy": "BLOCK", **(values or {})})
    bench = Bench(config, settings)
    bench.queue("orders")
    bench.broker.memory.windows.choose(WINDOW)
    return bench


def in_flight(producer: Producer) -> int:
    """The most it may send before it needs an answer, from here on."""
    producer.most = 0
    producer.burst(4 * WINDOW)
    return producer.most


def fill(bench: Bench, size: int) -> None:
    session = bench.session()
    session.send(bench.now, bench.message("orders", bytes(size), durable=False), -2)
    bench.settle()


def test_the_usual_window_becomes_the_nodes_own() -> None:
    bench = bench_with()
    producer = Producer(bench.session())
    for _ in range(10_000):
        assert producer.pay()
    assert producer.requests < 10_000 * MESSAGE / (WINDOW / 2) + 3
    assert WINDOW - 2 * MESSAGE <= in_flight(producer) <= WINDOW


def test_without_it_a_client_gets_what_it_asks_for() -> None:
    bench = bench_with()
    bench.broker.memory.windows.choose(USUAL)
    session = bench.session()
    producer = Producer(session)
    assert producer.burst(WINDOW) >= WINDOW
    assert {amount for _, amount in endpoint(session).granted} == {USUAL // 2}
    assert in_flight(producer) <= USUAL


@pytest.mark.parametrize("window", [10_000, 100_000, 4 * WINDOW])
def test_a_window_that_somebody_chose_is_kept(window: int) -> None:
    bench = bench_with()
    producer = Producer(bench.session(), window)
    producer.burst(4 * WINDOW)
    assert in_flight(producer) <= window


def test_it_is_taken_back_when_the_address_fills_up() -> None:
    bench = bench_with({"max_size_bytes": 10 << 20})
    session = bench.session()
    producer = Producer(session)
    producer.burst(4 * WINDOW)
    fill(bench, 6 << 20)
    producer.burst(2 * WINDOW)
    assert in_flight(producer) <= USUAL
    assert bench.broker.memory.windows.given_bytes == 0


def test_who_had_to_wait_is_back_at_its_own_window() -> None:
    bench = bench_with({"max_size_bytes": 10 << 20})
    producer = Producer(bench.session())
    producer.burst(4 * WINDOW)
    bench.broker.memory.set_disk_full(True)
    assert producer.burst() <= WINDOW
    bench.broker.memory.set_disk_full(False)
    bench.settle()
    producer.burst(2 * WINDOW)
    assert in_flight(producer) <= USUAL


@pytest.mark.parametrize(
    ("values", "config"),
    [
        ({"max_size_bytes": 1 << 20}, None),
        ({"max_size_messages": 1_000_000}, None),
        ({"address_full_policy": "FAIL"}, None),
        ({"address_full_policy": "DROP"}, None),
        ({}, BrokerConfig(global_max_size_bytes=1 << 20)),
        ({}, BrokerConfig(global_max_messages=1_000_000)),
    ],
)
def test_near_a_limit_nobody_gets_more(
    values: dict[str, SettingValue], config: BrokerConfig | None
) -> None:
    bench = bench_with(values, config)
    session = bench.session()
    producer = Producer(session)
    producer.burst(4 * WINDOW)
    assert {amount for _, amount in endpoint(session).granted} == {USUAL // 2}


@pytest.mark.parametrize("whose", ["address", "node"])
def test_all_together_get_a_part_of_the_limit_at_most(whose: str) -> None:
    limit = 100 << 20
    if whose == "address":
        bench = bench_with({"max_size_bytes": limit})
    else:
        bench = bench_with(config=BrokerConfig(global_max_size_bytes=limit))
    sessions = [bench.session() for _ in range(100)]
    for session in sessions:
        Producer(session).burst(WINDOW)
    windows = bench.broker.memory.windows
    assert limit // LIMIT_PART - 2 * MORE < windows.given_bytes <= limit // LIMIT_PART
    for session in sessions:
        session.close(bench.now, False)
    assert windows.given_bytes == 0
    assert endpoint(bench.session()).granted == []


def test_what_they_may_send_once_the_limit_is_reached_is_a_part_of_it() -> None:
    limit = 40 << 20
    bench = bench_with({"max_size_bytes": limit})
    producers = [Producer(bench.session()) for _ in range(30)]
    beyond = sum(max(0, in_flight(producer) - USUAL) for producer in producers)
    assert 0 < beyond <= limit // LIMIT_PART


@pytest.mark.parametrize("window", [96 * 1024, WINDOW])
@pytest.mark.parametrize("cost", [MESSAGE, 40_000, 700_000])
def test_a_client_that_forgot_its_credits_gets_what_it_asks_for(window: int, cost: int) -> None:
    """A client keeps credits of 1,000 addresses without producers (ClientProducerCreditManagerImpl)."""
    bench = bench_with({"max_size_bytes": 10 << 20})
    bench.broker.memory.windows.choose(window)
    session = bench.session()
    Producer(session).burst(4 * WINDOW)
    fill(bench, 6 << 20)
    anew = Producer(session)
    assert anew.pay(cost)
    anew.hear()
    assert anew.arriving == 0


def test_full_names_of_queues_share_the_part_of_their_address() -> None:
    limit = 40 << 20
    bench = bench_with({"max_size_bytes": limit})
    session = bench.session()
    for number in range(50):
        session.request_credits(f"orders::q{number}", USUAL // 2)
    windows = bench.broker.memory.windows
    assert 0 < windows.given_bytes <= limit // LIMIT_PART
    session.close(bench.now, False)
    assert windows.given_bytes == 0


def test_a_small_request_of_a_client_with_more_takes_nothing_back() -> None:
    """A client asks for the rest of what a large message needs while another request is on its way."""
    bench = bench_with({"max_size_bytes": 10 << 20})
    session = bench.session()
    session.request_credits("orders", USUAL // 2)
    fill(bench, 6 << 20)
    session.request_credits("orders", 70_000)
    session.request_credits("orders", USUAL // 2 + MORE)
    amounts = [amount for _, amount in endpoint(session).granted]
    assert amounts == [USUAL // 2 + MORE, 70_000, USUAL // 2]
    assert bench.broker.memory.windows.given_bytes == 0


def test_a_session_with_very_many_addresses_gets_more_for_some_of_them() -> None:
    bench = bench_with()
    bench.broker.memory.windows.choose(2 * USUAL)
    session = bench.session()
    for number in range(ADDRESSES_MAX + 50):
        session.request_credits(f"a{number}", USUAL // 2)
    amounts = [amount for _, amount in endpoint(session).granted]
    assert amounts == [USUAL] * ADDRESSES_MAX + [USUAL // 2] * 50


def test_messages_beyond_the_window_do_not_make_it_grow() -> None:
    bench = bench_with()
    producer = Producer(bench.session())
    for number in range(300):
        cost = (MESSAGE, 90_000, USUAL // 2, 700_000)[number % 4]
        while not producer.pay(cost):
            bench.settle()
    assert bench.broker.memory.windows.given_bytes == 2 * MORE
    assert in_flight(producer) <= WINDOW + 700_000
