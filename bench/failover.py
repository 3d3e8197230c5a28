"""Failover of a pair: from the kill of the active process to the next confirmed send."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time

from bench.broker_xml import QUEUE_PREFIX
from bench.brokers import KINDS
from bench.context import Context, Scenario, order
from bench.figures import Figure, Goal
from bench.generators import GeneratorFailed, java_class_path
from bench.measure import BadRun
from bench.pairs import REPLICATION, RETURN_SECONDS, SHARED_STORE, pair, wait_passive
from tests.interop.harness.tools import java

QUEUE = f"{QUEUE_PREFIX}0"
KILLS = 10  # of one pair: 30 in the usual three repetitions
LOAD_SECONDS = 1.0
URLS = {"": "the JMS client's defaults", "&callTimeout=5000": "callTimeout=5000"}
FORMS = {"failover-shared-store": SHARED_STORE, "failover-replicated": REPLICATION}
OPTIONS = "ha=true&reconnectAttempts=-1&useTopologyForLoadBalancing=false"


def scenarios() -> dict[str, Scenario]:
    """By name, in the order of the report."""
    return dict.fromkeys(FORMS, failover)


class Sender:
    """The real JMS client in a process of its own: when each of its messages was confirmed."""

    def __init__(self, url: str) -> None:
        self.confirmed_ns: list[int] = []
        command = [java(), "-Xmx256M", "-cp", java_class_path(), "atalanta.bench.Failover", url, QUEUE]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.confirmed_ns.append(int(json.loads(line)["at_ns"]))

    def past(self, at_ns: int, seconds: float) -> int:
        """The first confirmation of a send that began after `at_ns`, or was repeated after it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            after = [each for each in self.confirmed_ns[-5000:] if each > at_ns]
            # The first one may be the answer that had left before the kill.
            if len(after) > 1:
                before = max((each for each in self.confirmed_ns if each <= at_ns), default=at_ns)
                times = [before, *after]
                gaps = [late - early for early, late in zip(times, times[1:], strict=False)]
                return times[gaps.index(max(gaps)) + 1]
            if self._process.poll() is not None:
                raise GeneratorFailed("the sender ended; its reason stands above")
            time.sleep(0.002)
        raise BadRun(f"no send was confirmed within {seconds:g} s")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._reader.join(10)


def failover(context: Context, name: str) -> list[Figure]:
    """One pair of each kind, in turns; the killed process comes back as the backup of the other one."""
    figures = []
    for more, what in URLS.items():
        seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for run in range(context.settings.repeats):
            for kind in order(run):
                seconds[kind] += kills(context, kind, FORMS[name], more)
        ours = sorted(seconds["atalanta"])
        figures.append(
            Figure(
                name,
                f"kill to confirmed send, {what}",
                "s",
                Goal.AT_MOST_AND_BETTER,
                0.2,
                lower_is_better=True,
                ours=seconds["atalanta"],
                theirs=seconds["artemis"],
                note=f"{len(ours)} kills, p99 {ours[min(len(ours) - 1, len(ours) * 99 // 100)]:.3f} s",
            )
        )
    return figures


def kills(context: Context, kind: str, form: str, more: str) -> list[float]:
    """The seconds of KILLS failovers of a new pair."""
    assert kind in KINDS
    found = []
    with pair(context, kind, form) as brokers:
        active, passive = brokers
        servers = ",".join(f"tcp://127.0.0.1:{each.port}" for each in brokers)
        sender = Sender(f"({servers})?{OPTIONS}{more}")
        try:
            for _ in range(KILLS):
                now_ns = time.monotonic_ns()
                sender.past(now_ns, RETURN_SECONDS)
                time.sleep(LOAD_SECONDS)
                at_ns = time.monotonic_ns()
                active.kill()
                found.append((sender.past(at_ns, RETURN_SECONDS) - at_ns) / 1e9)
                active, passive = passive, active
                passive.process.launch()
                wait_passive(passive, active, form)
        finally:
            sender.close()
    return found
