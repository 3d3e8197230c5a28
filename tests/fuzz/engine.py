"""The loop: change an input, run it, keep it if it went where none did before, report what it broke."""

from __future__ import annotations

import hashlib
import random
import signal
import threading
import time
import traceback
import tracemalloc
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz.coverage import Edges
from tests.fuzz.target import Target

WATCHED_SHARE = 0.06  # of the inputs: their way through the code is looked at
# Watching an input costs ten of them: once so many in a row went no new way, fewer are watched until one does.
WATCHED_IN_VAIN = 2000
WATCHED_LATER_SHARE = 0.01
MEASURED_EVERY = 97  # inputs: the memory one takes is measured
TICK_SECONDS = 10.0  # of CPU; an input that sees two ticks is stalled
CORPUS_MAX = 4000
FINDINGS_MAX = 5
HISTORY_MAX = 2000
MIB = 1 << 20


class Stalled(BaseException):
    """An input is not done after more than TICK_SECONDS of CPU; no `except Exception` keeps it."""


@dataclass
class Finding:
    """`history`: the inputs since the last `fresh`, if the last of them alone does not do it."""

    target: str
    why: str
    data: bytes
    history: list[bytes] = field(default_factory=list)

    def save(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{self.target}-{hashlib.sha256(self.data).hexdigest()[:12]}"
        (folder / f"{name}.txt").write_text(self.why, encoding="utf-8", errors="replace")
        for number, data in enumerate(self.history[:-1]):
            (folder / f"{name}.{number:04}").write_bytes(data)
        path = folder / f"{name}.input"
        path.write_bytes(self.data)
        return path


@dataclass
class Outcome:
    target: str
    inputs: int = 0
    refused: int = 0
    edges: int = 0
    kept: int = 0
    seconds: float = 0.0
    slowest_seconds: float = 0.0
    most_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.inputs / self.seconds if self.seconds else 0
        return (
            f"{self.target}: {self.inputs} inputs ({rate:.0f}/s), {self.refused} refused,"
            f" {self.edges} edges, {self.kept} kept, slowest {self.slowest_seconds * 1000:.0f} ms,"
            f" most {self.most_bytes >> 10} KiB, {len(self.findings)} findings"
        )


class Fuzzer:
    """`corpus` begins with the target's seeds and `more`; `guided` False leaves the edges alone."""

    def __init__(
        self, target: Target, seed: int, guided: bool = True, more: list[bytes] | None = None
    ) -> None:
        self.target = target
        self.source = random.Random(f"{target.name} {seed}")
        self.guided = guided
        self.edges = Edges()
        self.outcome = Outcome(target.name)
        self.corpus: list[bytes] = target.seeds() + (more or [])
        self.kept: list[bytes] = []
        self._mutator = target.mutator()
        self._history: list[bytes] = []
        self._whys: set[str] = set()
        self._watchdog = Watchdog()
        self._in_vain = 0

    def run(self, count: int) -> Outcome:
        """The corpus as it is, then `count` changed inputs, or fewer once FINDINGS_MAX were made."""
        begin = time.monotonic()
        with self._watchdog:
            self._run(count)
        self.outcome.edges = len(self.edges.seen)
        self.outcome.kept = len(self.kept)
        self.outcome.seconds = time.monotonic() - begin
        return self.outcome

    def _run(self, count: int) -> None:
        self.target.fresh()
        for data in list(self.corpus):
            self._one(data, self.guided, False)
        for number in range(count):
            if len(self.outcome.findings) >= FINDINGS_MAX:
                break
            data = self._mutator.change(self.source, self._chosen(), self.corpus)
            measured = number % MEASURED_EVERY == 0
            share = WATCHED_SHARE if self._in_vain < WATCHED_IN_VAIN else WATCHED_LATER_SHARE
            watched = self.guided and not measured and self.source.random() < share
            self._one(data, watched, measured)

    def _chosen(self) -> bytes:
        """What was kept last is tried more often."""
        if self.kept and self.source.random() < 0.5:
            recent = self.kept[-50:]
            return self.source.choice(recent)
        return self.source.choice(self.corpus)

    def _one(self, data: bytes, watched: bool, measured: bool) -> None:
        target = self.target
        if target.stale():
            target.fresh()
            self._history.clear()
        if len(self._history) < HISTORY_MAX:
            self._history.append(data)
        self.outcome.inputs += 1
        if watched:
            why = ""

            def call() -> None:
                nonlocal why
                why = self.judged(data, False)

            fresh = self.edges.watch(call)
            self._in_vain = 0 if fresh else self._in_vain + 1
            if fresh and len(self.corpus) < CORPUS_MAX:
                self.corpus.append(data)
                self.kept.append(data)
            if why.startswith(SLOW):
                why = ""  # watching is slow
        else:
            why = self.judged(data, measured)
        if why:
            self._found(data, why)

    def _found(self, data: bytes, why: str) -> None:
        self.target.fresh()
        again = self.judged(data, False, True) or self.judged(data, True)
        history = [] if again else list(self._history)
        self._history.clear()
        self.target.fresh()
        if not again and why.startswith(SLOW):
            return  # the machine was busy
        why = again or why
        # One finding for each place, not for each input.
        place = why.strip().splitlines()[-1].partition(":")[0] + "".join(
            line for line in why.splitlines() if "File" in line
        )
        if place not in self._whys:
            self._whys.add(place)
            self.outcome.findings.append(Finding(self.target.name, why, data, history))

    def judged(self, data: bytes, measured: bool, exact: bool = False) -> str:
        """Why the target did not do well; empty if it did. `exact`: by CPU time, which costs two system calls."""
        target = self.target
        if measured:
            tracemalloc.start()
        self._watchdog.inputs += 1
        clock = time.thread_time if exact else time.perf_counter
        begin = clock()
        why = ""
        try:
            target.run(data)
        except target.refusals:
            self.outcome.refused += 1
        except Stalled:
            why = "stalled:\n" + traceback.format_exc()
        except Exception:
            why = traceback.format_exc()
        finally:
            took = clock() - begin
            if measured:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
        if measured:
            self.outcome.most_bytes = max(self.outcome.most_bytes, peak)
            if not why and peak > target.base_bytes + target.bytes_per_byte * len(data):
                why = f"{LARGE}: {peak} bytes at once for an input of {len(data)}"
        else:
            self.outcome.slowest_seconds = max(self.outcome.slowest_seconds, took)
            if not why and took > target.seconds * (1 + len(data) / MIB):
                why = f"{SLOW}: {took:.2f} s of CPU for an input of {len(data)} bytes"
        return why


SLOW = "slow"
LARGE = "large"


class Watchdog:
    """One timer for a whole run: at its second tick within an input Stalled is raised. In the main thread only."""

    def __init__(self) -> None:
        self.inputs = 0
        self._seen = -1
        self._main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self._main:
            signal.signal(signal.SIGVTALRM, self._tick)
            signal.setitimer(signal.ITIMER_VIRTUAL, TICK_SECONDS, TICK_SECONDS)

    def __exit__(self, *error: object) -> None:
        if self._main:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, signal.SIG_DFL)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        if self._seen == self.inputs:
            raise Stalled(f"not done after {TICK_SECONDS} s of CPU")
        self._seen = self.inputs
