"""What a scenario gets: settings, brokers, load generators."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.brokers import Broker, Brokers
from bench.figures import Figure
from bench.generators import (
    Generator,
    JmsGenerator,
    RawGenerator,
    StompGenerator,
    java_class_path,
    openwire_class_path,
)
from bench.measure import BadRun, Sample, counted
from bench.settings import Settings

KNOWN_LOAD_SHARE = 0.25  # of the JVM's warm-up
PEER_ATTEMPTS = 3

Scenario = Callable[["Context", str], list[Figure]]


class Context:
    """One run of the bench. At most one load runs at a time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.brokers = Brokers(settings.peer_build)
        self.jms = JmsGenerator(java_class_path)
        self.openwire = JmsGenerator(openwire_class_path)
        self.raw = RawGenerator()
        self.stomp = StompGenerator()
        self._warm: set[tuple[int, str]] = set()

    def measure(
        self,
        scenario: str,
        generator: Generator,
        options: dict[str, object],
        nodes: list[Broker],
        seconds: float = 0.0,
        at_first: bool = False,
    ) -> Sample:
        """One counted window of at most `seconds`: produced at the first node, consumed at the last.

        `at_first`: consumed at the first, too; the others are its replicas.
        """
        first, last = nodes[0], nodes[-1]
        counting = min(seconds or self.settings.seconds, self.settings.seconds)
        warm_up = self.settings.warm_up_seconds
        if first.runs_java:
            warm_up = max(warm_up, self._jvm_warm_up(first.pid, scenario))
        other_port = 0 if at_first or last is first else last.port
        for attempt in range(PEER_ATTEMPTS):
            try:
                generator.start(first.port, options, other_port)
                sample = counted(generator, [pid for n in nodes for pid in n.pids], warm_up, counting)
                generator.stop()
            except BadRun:
                generator.close()
                # Ours must not do that; a peer, which now and then delivers out of order, is asked again.
                if first.kind == "atalanta" or attempt == PEER_ATTEMPTS - 1:
                    raise
            except Exception:
                generator.close()
                raise
            else:
                return sample
        raise AssertionError("the last attempt returns or raises")

    def _jvm_warm_up(self, pid: int, scenario: str) -> float:
        """Long for a load that this JVM has never had, short for a variant of one that it knows."""
        family = scenario.rsplit("-", 1)[0]
        known = (pid, family) in self._warm
        again = (pid, scenario) in self._warm
        self._warm |= {(pid, family), (pid, scenario)}
        seconds = self.settings.jvm_warm_up_seconds
        return 0 if again else seconds * KNOWN_LOAD_SHARE if known else seconds

    def load(
        self, port: int, options: dict[str, object], limit_seconds: float = 120.0
    ) -> tuple[float, float]:
        """A raw load that ends by itself: seconds from the start, and from being connected, to its end."""
        begin = time.monotonic_ns()
        try:
            self.raw.start(port, options)
            connected = time.monotonic_ns()
            done = self.raw.wait_until_done(limit_seconds)
        finally:
            self.raw.close()
        return (done - begin) / 1e9, (done - connected) / 1e9

    def close(self) -> None:
        self.jms.close()
        self.openwire.close()
        self.raw.close()
        self.stomp.close()
        self.brokers.close()


def order(run: int) -> tuple[str, str]:
    """Which kind goes first: they take turns."""
    return ("artemis", "atalanta") if run % 2 == 0 else ("atalanta", "artemis")
