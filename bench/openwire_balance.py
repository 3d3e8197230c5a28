"""60 failover clients over three nodes: how even they are 30 s after a rolling restart."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.broker_xml import Plan
from bench.brokers import CLASSIC, CLASSIC_VERSION, Broker
from bench.context import Context, Scenario
from bench.figures import Figure, Goal
from bench.generators import Program, openwire_class_path
from bench.measure import BadRun
from tests.interop.harness.tools import java
from tests.ports import free_port

CLIENTS = 60
SENDERS = 6
PERIOD_MS = 200
NODES = 3
MOST_TO_MEAN = 1.2
SETTLE_SECONDS = 10.0  # before the restart
BALANCE_SECONDS = 30.0  # after it
FAILOVER_SECONDS = 60.0
LAST_SECONDS = 30.0  # for what is still on its way
PROTOCOLS = "CORE,OPENWIRE;updateClusterClients=true;rebalanceClusterClients=true"


def scenarios() -> dict[str, Scenario]:
    """By name, in the order of the report."""
    return {"openwire-balance-60": balance}


@dataclass(frozen=True)
class Outcome:
    """What one rolling restart came to. `places`: the counts of clients by node, in words."""

    most_to_mean: float
    places: str
    reconnects: int
    messages: dict[str, int]


class FailoverClients(Program):
    """The clients of one group of brokers, with activemq-client's defaults."""

    def __init__(self, brokers: list[Broker]) -> None:
        super().__init__()
        self._brokers = brokers
        url = f"failover:({','.join(f'tcp://127.0.0.1:{each.port}' for each in brokers)})"
        main = ["-cp", openwire_class_path(), "atalanta.bench.FailoverClients"]
        words = [url, "bench.balance", str(CLIENTS), str(SENDERS), str(PERIOD_MS)]
        self._launch([java(), "-Xmx256M", *main, *words])

    def places(self) -> list[int]:
        """How many clients each broker has."""
        found = self._ask("where")
        return [_whole(found.get(str(each.port), 0)) for each in self._brokers]

    def counts(self) -> dict[str, int]:
        """Messages sent, lost and doubled; connections that were there again; failures told to the application."""
        return {name: _whole(count) for name, count in self._ask("counts").items()}

    def quiet(self) -> None:
        """Nobody sends any more."""
        self._ask("quiet")


def balance(context: Context, name: str) -> list[Figure]:
    """New brokers of each kind, in turns; ours with the defaults of client balancing."""
    peer = CLASSIC if context.settings.peer_build is None else "artemis"
    found: dict[str, list[Outcome]] = {"atalanta": [], peer: []}
    for run in range(context.settings.repeats):
        for kind in (peer, "atalanta") if run % 2 == 0 else ("atalanta", peer):
            outcome = _restarted(context, kind)
            print(f"{kind}: {outcome.places}; {outcome.reconnects} reconnects; {outcome.messages}", flush=True)
            found[kind].append(outcome)
    beside = "" if peer == "artemis" else f" beside a network of Classic {CLASSIC_VERSION}"

    def figure(what: str, unit: str, goal: Goal, target: float, value: Callable[[Outcome], float]) -> Figure:
        made = Figure(name, what + beside, unit, goal, target, lower_is_better=True)
        made.ours = [value(each) for each in found["atalanta"]]
        made.theirs = [value(each) for each in found[peer]]
        return made

    figures = [
        figure(
            f"most clients of a node to the mean {BALANCE_SECONDS:g} s after a rolling restart", "×",
            Goal.AT_MOST, MOST_TO_MEAN, lambda each: each.most_to_mean,
        ),
        figure("messages lost", "", Goal.AT_MOST, 0, lambda each: each.messages["lost"]),
        figure("messages doubled", "", Goal.NONE, 0, lambda each: each.messages["doubled"]),
        figure(f"reconnects of {CLIENTS} clients", "", Goal.NONE, 0, lambda each: each.reconnects),
    ]  # fmt: skip
    shown = "; ".join(f"{kind} {', '.join(each.places for each in runs)}" for kind, runs in found.items())
    figures[0].note = f"clients by node before, at the end of the restart, and {BALANCE_SECONDS:g} s later: {shown}"
    return figures


def _restarted(context: Context, kind: str) -> Outcome:
    """Starts new brokers and their clients, and restarts one broker after the other."""
    context.brokers.close_shared()
    ports = [free_port() for _ in range(NODES)]
    brokers = []
    for port in ports:
        peers = tuple(each for each in ports if each != port)
        brokers.append(context.brokers.new(kind, Plan(queues=0, peer_ports=peers, protocols=PROTOCOLS), port))
    clients = None
    try:
        for broker in brokers:
            broker.start()
        clients = FailoverClients(brokers)
        clients.line()
        time.sleep(SETTLE_SECONDS)
        before, resumed = clients.places(), clients.counts()["resumed"]
        for broker in brokers:
            broker.stop()
            _await_all(clients)
            broker.start()
        return _outcome(clients, before, resumed)
    finally:
        if clients is not None:
            clients.close()
        for broker in brokers:
            broker.close()


def _await_all(clients: FailoverClients) -> None:
    """Waits until every client is connected."""
    end = time.monotonic() + FAILOVER_SECONDS
    while sum(clients.places()) < CLIENTS:
        if time.monotonic() > end:
            raise BadRun(f"only {sum(clients.places())} of {CLIENTS} clients are connected")
        time.sleep(0.1)


def _outcome(clients: FailoverClients, before: list[int], resumed: int) -> Outcome:
    """Returns the outcome, from the start of the last broker on.

    `before` are the places, and `resumed` the connects, before the restart.
    """
    begin = time.monotonic()
    restarted = clients.places()
    even_after = ""
    while (passed := time.monotonic() - begin) < BALANCE_SECONDS:
        if not even_after and _even(clients.places()):
            even_after = f" (even after {passed:.0f} s)"
        time.sleep(0.5)
    _await_all(clients)
    places = clients.places()
    clients.quiet()
    time.sleep(1)  # what was being sent is counted
    while clients.counts()["lost"] and time.monotonic() - begin < BALANCE_SECONDS + LAST_SECONDS:
        time.sleep(0.5)
    counts = clients.counts()
    if counts["failures"]:
        raise BadRun(f"{counts['failures']} failures were told to the application; they stand above")
    shown = " → ".join("/".join(map(str, each)) for each in (before, restarted, places))
    return Outcome(max(places) * NODES / CLIENTS, shown + even_after, counts["resumed"] - resumed, counts)


def _even(places: list[int]) -> bool:
    return sum(places) == CLIENTS and max(places) * NODES <= MOST_TO_MEAN * CLIENTS


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value
