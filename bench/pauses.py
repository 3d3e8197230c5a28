"""How long a broker does not answer: the longest answer to the PING of another client while much happens at once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import ConsumerId
from bench.broker_xml import Plan
from bench.brokers import KINDS, Broker
from bench.context import Context, Scenario
from bench.figures import Figure, Goal
from bench.measure import BadRun
from bench.openwire_clients import OpenWireClient, TemporaryQueues
from bench.settings import CHECKOUT
from bench.stomp_client import StompClient, frame

USER = "admin"
PASSWORD = "admin"
LONGEST_MS = 200.0
PROTOCOLS = "CORE,STOMP,OPENWIRE"
MEMORY = "8G"  # for messages: nothing is to be paged
SETTLE_SECONDS = 1.5
QUIET_MS = 50.0  # a broker that answers so fast has done its work
BATCH = 1_000  # frames in one write

SLOW_SUBSCRIBERS = 50
SLOW_MESSAGES = 60_000  # for each
TOPIC_PREFETCH = 32_766
COMMITTED = 200_000
EXPIRED = 200_000
DURABLE_SUBSCRIBERS = 5_000
DURABLE_CONNECTIONS = 50
TEMPORARY_QUEUES = 2_000
WATCHERS = 100
UNACKNOWLEDGED = 200_000


class PingProcess:
    """The other client (bench/ping_process.py)."""

    def __init__(self, port: int) -> None:
        words = [sys.executable, "-m", "bench.ping_process", str(port), USER, PASSWORD]
        self._process = subprocess.Popen(
            words, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._line()

    def longest_ms(self) -> float:
        """The longest answer since the last call; one that is still awaited counts."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._line())

    def longest_until_quiet_ms(self) -> float:
        """The longest answer since the last call, until the broker has been quick for a while."""
        longest = latest = self.longest_ms()
        while True:
            time.sleep(SETTLE_SECONDS)
            latest = self.longest_ms()
            longest = max(longest, latest)
            if latest < QUIET_MS:
                return longest

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BadRun("the ping process has ended")
        return line.strip()


Doing = Callable[[int, PingProcess], Iterator[tuple[str, float]]]


def scenarios() -> dict[str, Scenario]:
    """One scenario with a figure for each doing."""
    return {"worst-pause": worst_pause}


def worst_pause(context: Context, name: str) -> list[Figure]:
    """Each doing at a new broker, ours and the peer's in turns; an Artemis has no such figure here."""
    context.brokers.close_shared()
    figures: dict[str, Figure] = {}
    kinds = ("atalanta",) if context.settings.peer_build is None else KINDS
    for run in range(context.settings.repeats):
        for doing in DOINGS:
            for kind in kinds if run % 2 == 0 else kinds[::-1]:
                for what, longest_ms in _measured(context, kind, doing):
                    figure = figures.setdefault(
                        what, Figure(name, what, "ms", Goal.AT_MOST, LONGEST_MS, lower_is_better=True)
                    )
                    (figure.ours if kind == "atalanta" else figure.theirs).append(longest_ms)
    return list(figures.values())


def _measured(context: Context, kind: str, doing: Doing) -> list[tuple[str, float]]:
    broker: Broker = context.brokers.new(kind, Plan(queues=2, protocols=PROTOCOLS, memory=MEMORY))
    broker.start()
    try:
        with pinged(broker.port) as ping:
            return list(doing(broker.port, ping))
    finally:
        broker.close()


@contextmanager
def pinged(port: int) -> Iterator[PingProcess]:
    """A ping process that has got used to the broker."""
    process = PingProcess(port)
    try:
        time.sleep(SETTLE_SECONDS)
        process.longest_ms()
        yield process
    finally:
        process.close()


# -- what is done -------------------------------------------------------------------------------------
def slow_subscribers(port: int, ping: PingProcess) -> Iterator[tuple[str, float]]:
    """Subscribers with the prefetch of JMS clients, which read nothing, leave at once, each with a long backlog."""
    slow = [OpenWireClient(port, USER, PASSWORD, f"slow-{number}") for number in range(SLOW_SUBSCRIBERS)]
    for client in slow:
        consumer = ConsumerId(client.id, 1, 1)
        client.call(ConsumerInfo(consumer, destination=ActiveMQTopic("pauses"), prefetch_size=TOPIC_PREFETCH))
    _send(_client(port), "/topic/pauses", SLOW_MESSAGES, {})
    ping.longest_until_quiet_ms()
    for client in slow:
        client.socket.close()
    yield f"{SLOW_SUBSCRIBERS} slow subscribers leave", ping.longest_until_quiet_ms()


def commit(port: int, ping: PingProcess) -> Iterator[tuple[str, float]]:
    """A large transaction of durable messages."""
    sender = _client(port)
    sender.send(frame("BEGIN", {"transaction": "t"}))
    _send(sender, "/queue/bench.q0", COMMITTED, {"persistent": "true", "transaction": "t"})
    yield f"a transaction of {COMMITTED:,} is sent", ping.longest_until_quiet_ms()
    sender.receipt("COMMIT", {"transaction": "t"})
    yield f"commit of {COMMITTED:,}", ping.longest_until_quiet_ms()


def expiry(port: int, ping: PingProcess) -> Iterator[tuple[str, float]]:
    """Durable messages that have expired when a consumer comes."""
    at_ms = int(time.time() * 1000) + 20_000
    _send(_client(port), "/queue/bench.q0", EXPIRED, {"persistent": "true", "expires": str(at_ms)})
    ping.longest_until_quiet_ms()
    time.sleep(max(0.0, at_ms / 1000 - time.time()))
    consumer = _client(port)
    consumer.send(frame("SUBSCRIBE", {"id": "1", "destination": "/queue/bench.q0", "ack": "auto"}))
    yield f"{EXPIRED:,} messages expire", ping.longest_until_quiet_ms()


def durable_subscribers(port: int, ping: PingProcess) -> Iterator[tuple[str, float]]:
    """They subscribe, get one message each, and leave at once."""
    each = DURABLE_SUBSCRIBERS // DURABLE_CONNECTIONS
    clients = [_client(port, f"c{number}") for number in range(DURABLE_CONNECTIONS)]
    for client in clients:
        client.send(
            b"".join(
                frame(
                    "SUBSCRIBE",
                    {
                        "id": str(number),
                        "destination": "/topic/pauses",
                        "ack": "client",
                        "durable-subscription-name": f"s{number}",
                    },
                )
                for number in range(each)
            )
        )
    for client in clients:
        client.receipt("SEND", {"destination": "/queue/bench.q1"})
    yield f"{DURABLE_SUBSCRIBERS:,} durable subscribers come", ping.longest_until_quiet_ms()
    _client(port).receipt("SEND", {"destination": "/topic/pauses", "persistent": "true"}, b"news")
    for client in clients:
        client.await_frames(each, "MESSAGE")
    yield f"a message for {DURABLE_SUBSCRIBERS:,} durable subscribers", ping.longest_until_quiet_ms()
    for client in clients:
        client.close()
    yield f"{DURABLE_SUBSCRIBERS:,} durable subscribers leave", ping.longest_until_quiet_ms()


def temporary_queues(port: int, ping: PingProcess) -> Iterator[tuple[str, float]]:
    """One connection creates temporary queues in one batch, and leaves; others watch them, as JMS clients do."""
    clients = TemporaryQueues(port, USER, PASSWORD, WATCHERS)
    ping.longest_until_quiet_ms()
    clients.create(TEMPORARY_QUEUES)
    yield f"{TEMPORARY_QUEUES:,} temporary queues come", ping.longest_until_quiet_ms()
    clients.leave()
    yield f"{TEMPORARY_QUEUES:,} temporary queues leave", ping.longest_until_quiet_ms()
    clients.close()


def unacknowledged(port: int, ping: PingProcess) -> Iterator[tuple[str, float]]:
    """A consumer with a long list of unacknowledged messages leaves."""
    _send(_client(port), "/queue/bench.q0", UNACKNOWLEDGED, {"persistent": "true"})
    consumer = _client(port)
    consumer.send(
        frame("SUBSCRIBE", {"id": "1", "destination": "/queue/bench.q0", "ack": "client", "consumer-window-size": "-1"})
    )
    consumer.await_frames(UNACKNOWLEDGED, "MESSAGE")
    ping.longest_until_quiet_ms()
    consumer.close()
    yield f"a consumer with {UNACKNOWLEDGED:,} unacknowledged messages leaves", ping.longest_until_quiet_ms()


DOINGS: tuple[Doing, ...] = (
    slow_subscribers,
    commit,
    expiry,
    durable_subscribers,
    temporary_queues,
    unacknowledged,
)


def _client(port: int, client_id: str = "") -> StompClient:
    return StompClient(port, USER, PASSWORD, client_id)


def _send(client: StompClient, destination: str, messages: int, headers: dict[str, str]) -> None:
    """Sends small messages, until the broker has taken all."""
    one = frame("SEND", {"destination": destination, **headers}, b"x" * 20)
    for begin in range(0, messages, BATCH):
        client.send(one * min(BATCH, messages - begin))
    client.receipt("SEND", {"destination": "/queue/bench.q1"})
