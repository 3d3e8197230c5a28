"""The ways a primary ends, and for how long nothing is confirmed then: `python -m bench.failover_kills --count 20`.

Replicated pairs of each kind, with a lock manager and without one. A real JMS client sends, and waits for each
confirmation. Each time one process of the active primary is killed or stopped, or all of them at once. The figures are
the seconds until the backup says that it serves, and the longest time between two confirmations. A client may dial the
host of a stopped process for long: the system accepts its connection. What takes more than --limit seconds has no
figure, and a row ends early if its first ends have none. Then all processes of the primary are killed, it comes back as
the follower of the other one, and gets the service back.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from bench.brokers import KINDS, Broker
from bench.context import Context
from bench.failover import LOAD_SECONDS, OPTIONS, Sender
from bench.measure import BadRun
from bench.pairs import PLAIN_REPLICATION, REPLICATION, RETURN_SECONDS, pair, wait_passive
from bench.settings import Settings
from tests.interop.harness.node import BrokerFailed

FORMS: Final = {"manager": REPLICATION, "plain": PLAIN_REPLICATION}
STARTED: Final = "started"
GUARD: Final = "guard"
BROKER: Final = "broker"
ALL: Final = "all"
# What an Artemis has: one process.
TARGETS: Final = {"atalanta": (STARTED, GUARD, BROKER, ALL), "artemis": (ALL,)}
SIGNALS: Final = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}
# By its defaults a client needs half a minute to see that a broker stands still, and waits 2 s between two attempts.
CLIENT_OPTIONS: Final = "retryInterval=50&callTimeout=5000&connectionTTL=2000&clientFailureCheckPeriod=1000"
SHARES: Final = (0.5, 0.9)
SETTLED_SECONDS: Final = 4.0  # more than a lease and what a client waits
SILENCE_SECONDS: Final = 0.5
RING_SIZE: Final = 1_000  # nobody consumes: otherwise the last takeovers would read a million messages
NEVER_COUNT: Final = 5  # ends without a figure, and none with one: then more of them say nothing new


@dataclass(frozen=True)
class Row:
    """One kind of end, and its figures. None: the backup did not serve, or the client was not confirmed anything."""

    kind: str
    form: str
    target: str
    verb: str
    serves_seconds: list[float | None] = field(default_factory=list)
    silent_seconds: list[float | None] = field(default_factory=list)

    def cells(self) -> list[str]:
        """The cells of its line."""
        count = str(len(self.serves_seconds))
        what = f"{self.target} {self.verb}"
        return [self.kind, self.form, what, count, *quantiles(self.serves_seconds), *quantiles(self.silent_seconds)]


HEADS: Final = (
    "kind", "pair", "what ends", "n", "backup serves p50 s", "p90 s", "never", "client waits p50 s", "p90 s", "never",
)  # fmt: skip


def quantiles(figures: list[float | None]) -> list[str]:
    """The cells for the figures that there are, and for the number of the others."""
    found = sorted(each for each in figures if each is not None)
    cells = [f"{found[math.ceil(len(found) * share) - 1]:.3f}" if found else "–" for share in SHARES]
    return [*cells, str(len(figures) - len(found))]


def processes(broker: Broker, target: str) -> list[int]:
    """The processes of a broker that the target names."""
    pids = broker.pids
    return {STARTED: pids[:1], GUARD: pids[1:2], BROKER: pids[-1:], ALL: pids[::-1]}[target]


def watch(row: Row, backup: Broker, sender: Sender, at_ns: int, limit_seconds: float) -> None:
    """Adds the figures of an end at `at_ns` to the row."""
    served: float | None = None
    silent: float | None = None
    end_ns = at_ns + int(limit_seconds * 1e9)
    while silent is None and (now_ns := time.monotonic_ns()) < end_ns:
        if served is None and serves(backup):
            served = (now_ns - at_ns) / 1e9
        if now_ns - at_ns > SETTLED_SECONDS * 1e9 and now_ns - sender.confirmed_ns[-1] < SILENCE_SECONDS * 1e9:
            silent = max(late - early for early, late in pairwise(sender.confirmed_ns[:]) if late > at_ns) / 1e9
        time.sleep(0.005)
    row.serves_seconds.append(served)
    row.silent_seconds.append(silent)


def end_all(broker: Broker) -> None:
    """Kills every process of a broker that is left."""
    with suppress(BrokerFailed, FileNotFoundError):
        for pid in processes(broker, ALL):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    with suppress(BrokerFailed):  # it had ended by itself, and is known as such now
        broker.process.kill()


def measure(context: Context, row: Row, count: int, limit_seconds: float) -> None:
    """Ends the primary of a pair `count` times, always in the same way."""
    form = FORMS[row.form]
    with pair(context, row.kind, form, ring_size=RING_SIZE) as brokers:
        primary, backup = brokers
        servers = ",".join(f"tcp://127.0.0.1:{each.port}" for each in brokers)
        sender = Sender(f"({servers})?{OPTIONS}&{CLIENT_OPTIONS}")
        try:
            for number in range(count):
                sender.past(time.monotonic_ns(), RETURN_SECONDS)
                time.sleep(LOAD_SECONDS)
                at_ns = time.monotonic_ns()
                for pid in processes(primary, row.target):
                    os.kill(pid, SIGNALS[row.verb])
                watch(row, backup, sender, at_ns, limit_seconds)
                if row.silent_seconds == [None] * NEVER_COUNT:
                    return
                if number + 1 < count:
                    come_back(primary, backup, form, sender)
        finally:
            sender.close()
            end_all(primary)


def come_back(primary: Broker, backup: Broker, form: str, sender: Sender) -> None:
    """Starts the primary again and lets it serve, with the backup behind it."""
    end_all(primary)
    time.sleep(3)  # the lease of one that was stopped, or that served on
    primary.process.launch()
    sender.past(time.monotonic_ns(), RETURN_SECONDS)
    if serves(backup):
        wait_passive(primary, backup, form)
        backup.kill()
        sender.past(time.monotonic_ns(), RETURN_SECONDS)
    else:
        end_all(backup)
    backup.process.launch()
    wait_passive(backup, primary, form)


def serves(broker: Broker) -> bool:
    """Whether the log of this start says that the broker became active."""
    text = broker.process.log.read_text(errors="replace")
    words = ("role=active", "role=passive") if broker.kind == "atalanta" else ("AMQ221007", "AMQ221024")
    return text.rfind(words[0]) > text.rfind(words[1])


def main() -> int:
    """Prints a table, and with --out writes every figure. The exit status: 1 if a row failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds that are never")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--targets", default=",".join((STARTED, GUARD, BROKER, ALL)))
    parser.add_argument("--verbs", default=",".join(SIGNALS))
    parser.add_argument("--out", type=Path, help="a JSON file")
    given = parser.parse_args()
    rows = [
        Row(kind, form, target, verb)
        for form in given.forms.split(",")
        for verb in given.verbs.split(",")
        for kind in given.kinds.split(",")
        for target in TARGETS[kind]
        if target in given.targets.split(",")
    ]
    failed = 0
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}", flush=True)
    context = Context(Settings())
    try:
        for row in rows:
            try:
                measure(context, row, given.count, given.limit)
            except (BadRun, BrokerFailed) as problem:
                failed = 1
                print(f"{row.kind} {row.form} {row.target} {row.verb}: {problem}", file=sys.stderr, flush=True)
            print(f"| {' | '.join(row.cells())} |", flush=True)
    finally:
        context.close()
    if given.out is not None:
        given.out.write_text(json.dumps([vars(row) for row in rows], indent=1))
    return failed


if __name__ == "__main__":
    sys.exit(main())
