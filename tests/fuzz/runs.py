"""What was fuzzed so far: a line of JSON for every run, and the table made of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fuzz.engine import Outcome

FILE = "runs.jsonl"
HEAD = (
    "| target | build | inputs | runs (seeds) | inputs a second | branches | kept | slowest | findings |\n"
    "|---|---|--:|---|--:|--:|--:|--:|--:|\n"
)


@dataclass
class Run:
    """`build`: "interpreted, guided", or without guidance "interpreted" or "compiled"."""

    target: str
    build: str
    seed: int
    inputs: int
    seconds: float
    branches: int
    kept: int
    slowest_ms: float
    findings: int

    @classmethod
    def of(cls, outcome: Outcome, seed: int) -> Run:
        build = "interpreted, guided" if outcome.edges else "interpreted"
        if compiled():
            build = "compiled"
        return cls(
            outcome.target, build, seed, outcome.inputs, round(outcome.seconds, 1), outcome.edges, outcome.kept,
            round(outcome.slowest_seconds * 1000, 1), len(outcome.findings),
        )  # fmt: skip


def compiled() -> bool:
    from atalanta.message.encoding import buffer

    return not str(buffer.__file__).endswith(".py")


def append(folder: Path, run: Run) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def table(folder: Path) -> str:
    """Runs of one target and build in one row, in the order of their first run."""
    rows: dict[tuple[str, str], list[Run]] = {}
    for line in (folder / FILE).read_text(encoding="utf-8").splitlines():
        run = Run(**json.loads(line))
        rows.setdefault((run.target, run.build), []).append(run)
    lines = []
    for (target, build), runs in sorted(rows.items()):
        inputs = sum(run.inputs for run in runs)
        seconds = sum(run.seconds for run in runs)
        seeds = sorted({run.seed for run in runs})
        lines.append(
            f"| {target} | {build} | {inputs:,} | {len(runs)} ({', '.join(map(str, seeds))}) |"
            f" {inputs / max(seconds, 0.1):,.0f} | {max(run.branches for run in runs) or ''} |"
            f" {max(run.kept for run in runs)} | {max(run.slowest_ms for run in runs):.0f} ms |"
            f" {sum(run.findings for run in runs)} |\n"
        )
    return HEAD + "".join(lines)
