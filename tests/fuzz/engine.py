"""The loop: change an input, run it, keep it if it went where none did before, report what it broke."""

from __future__ import annotations

import gc
import hashlib
import random
import signal
import threading
import time
import traceback
import tracemalloc
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz.coverage import Branches
from tests.fuzz.memory import PAGE_BYTES, Fence, pages_taken, show_large_blocks
from tests.fuzz.target import Target

MEASURED_EVERY = 97  # inputs: the memory one takes is measured exactly
FENCE_EVERY = 50  # inputs
MEASURING_ROOM = 8  # times as much room while that is done
FENCE_SLACK_BYTES = 4 << 20  # beyond what an input may take
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
    seconds: float = 0.0  # of CPU, so that what else the machine does is left out
    slowest_seconds: float = 0.0
    most_bytes: int = 0
    looked_at: int = 0
    summary: str = ""
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.inputs / self.seconds if self.seconds else 0
        return (
            f"{self.target}: {self.inputs} inputs ({rate:.0f}/s), {self.refused} refused,"
            f" {self.edges} branches, {self.kept} kept, slowest {self.slowest_seconds * 1000:.0f} ms,"
            f" most {self.most_bytes >> 10} KiB, {self.looked_at} looked at, {len(self.findings)} findings"
            f"{', ' if self.summary else ''}{self.summary}"
        )


class Fuzzer:
    """The corpus begins with the target's seeds and what of `more` reaches anything new. `branches` None: blind."""

    def __init__(
        self, target: Target, seed: int, branches: Branches | None = None, more: list[bytes] | None = None
    ) -> None:
        self.target = target
        self.source = random.Random(f"{target.name} {seed}")
        self.branches = branches
        self.outcome = Outcome(target.name)
        self.corpus: list[bytes] = []
        self.kept: list[bytes] = []
        self._seeds = target.seeds()
        self._more = sorted(more or [], key=lambda data: (len(data), data))
        self._mutator = target.mutator()
        self._history: list[bytes] = []
        self._whys: set[str] = set()
        self._watchdog = Watchdog()
        self._beside: Target | None = None
        room = target.base_bytes + target.bytes_per_byte * target.size_max
        self._fence = Fence(room + FENCE_SLACK_BYTES)

    def run(self, count: int) -> Outcome:
        """The seeds, then `count` changed inputs, or fewer once FINDINGS_MAX were made."""
        begin = time.process_time()
        show_large_blocks()
        frozen = gc.get_freeze_count() > 0  # in the suite (tests/conftest.py)
        if not frozen:
            gc.collect()
            gc.freeze()  # what was imported is looked at no more
        try:
            with self._watchdog, self._fence:
                self._run(count)
        finally:
            if not frozen:
                gc.unfreeze()
        self.outcome.edges = self.branches.reached if self.branches else 0
        self.outcome.kept = len(self.kept)
        self.outcome.summary = self.target.summary()
        self.outcome.seconds = time.process_time() - begin
        return self.outcome

    def _run(self, count: int) -> None:
        self.target.fresh()
        for data in self._seeds:
            self._one(data, False)
        self.corpus += self._seeds
        for data in self._more:
            if self._one(data, False) or self.branches is None:
                self._keep(data)
        for number in range(count):
            if len(self.outcome.findings) >= FINDINGS_MAX:
                break
            if number % FENCE_EVERY == 0:
                self._fence.renew()
            data = self._mutator.change(self.source, self._chosen(), self.corpus)
            if self._one(data, number % MEASURED_EVERY == 0):
                self._keep(data)

    def _keep(self, data: bytes) -> None:
        if len(self.corpus) < CORPUS_MAX:
            self.corpus.append(data)
            self.kept.append(data)

    def _chosen(self) -> bytes:
        """Returns an input: one that was kept last more often, and of two the smaller one."""
        source = self.source
        among = self.kept[-50:] if self.kept and source.random() < 0.5 else self.corpus
        one, other = source.choice(among), source.choice(among)
        return one if len(one) <= len(other) else other

    def _one(self, data: bytes, measured: bool) -> bool:
        """Whether it reached anything new."""
        target = self.target
        if target.stale():
            target.fresh()
            self._history.clear()
            gc.collect()  # worlds that have ended are circles: some of them would fill the room of the next input
            self._fence.renew()
        if len(self._history) < HISTORY_MAX:
            self._history.append(data)
        self.outcome.inputs += 1
        pages = pages_taken()
        why = self.judged(target, data, measured)
        pages = pages_taken() - pages
        fresh = self.branches is not None and self.branches.news()
        if why:
            self._found(data, why)
        elif not measured and pages * PAGE_BYTES > target.allowed_bytes(len(data)) // 2:
            why = self._looked_at(data)
            if why:
                self._found(data, why)
        return fresh

    def _looked_at(self, data: bytes) -> str:
        """Once more with exact figures. Beside the run, which must not depend on what the kernel has in store."""
        self.outcome.looked_at += 1
        with self.branches.aside() if self.branches else nullcontext():
            if self._beside is None:
                self._beside = type(self.target)()
            self._beside.fresh()
            return self.judged(self._beside, data, True)

    def _found(self, data: bytes, why: str) -> None:
        target = self.target
        target.fresh()
        self._fence.renew()
        again = self.judged(target, data, False)
        if not again:
            target.fresh()
            again = self.judged(target, data, True)
        history = [] if again else list(self._history)
        self._history.clear()
        target.fresh()
        why = again or why
        # One finding for each place, not for each input.
        place = why.strip().splitlines()[-1].partition(":")[0] + "".join(
            line for line in why.splitlines() if "File" in line
        )
        if place not in self._whys:
            self._whys.add(place)
            self.outcome.findings.append(Finding(target.name, why, data, history))

    def judged(self, target: Target, data: bytes, measured: bool) -> str:
        """Why the target did not do well; empty if it did."""
        if measured:
            # Its own memory lies within the fence: at the edge every malloc asks the kernel in vain, for minutes.
            self._fence.renew(MEASURING_ROOM)
            tracemalloc.start()
        self._watchdog.inputs += 1
        begin = time.thread_time()
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
            took = time.thread_time() - begin
            if measured:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                self._fence.renew()
        if measured:
            self.outcome.most_bytes = max(self.outcome.most_bytes, peak)
            if not why and peak > target.allowed_bytes(len(data)):
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
