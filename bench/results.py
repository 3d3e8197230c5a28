"""RESULTS.md and results.json."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from atalanta import __version__
from atalanta.runtime.process.build import build_name
from bench.figures import Figure, spread
from bench.settings import Settings
from tests.interop.harness.tools import ARTEMIS_VERSION

HEAD = "| scenario | figure | Atalanta | Artemis | ratio | wanted | reached | measured | command |"
NOTES = """
Every figure is the median of the runs, in brackets the lowest and the highest. A ratio says how many times better
Atalanta was in the run beside, whichever direction is better. "Per broker CPU-second" counts user and system time of
the broker's process, or of both nodes' where there are two, over the counted window. On few cores the generator
shares them with the broker, so messages a second say less than messages per CPU-second.
"""


class Results:
    """Figures as they come, and the scenarios that failed, with the reason."""

    def __init__(self, settings: Settings, names: list[str]) -> None:
        """`names`: all scenarios there are, in their order."""
        self._settings = settings
        self._names = names
        self._figures: list[Figure] = []
        self._failures: dict[str, str] = {}

    def add(self, figures: list[Figure]) -> None:
        self._figures += figures
        for figure in figures:
            print(row(figure, self._settings), flush=True)
            if figure.note:
                print(f"- {figure.note}", flush=True)

    def fail(self, scenario: str, why: str) -> None:
        self._failures[scenario] = why
        print(f"{scenario}: FAILED: {why}", flush=True)

    @property
    def failed(self) -> bool:
        return bool(self._failures)

    def write(self, duration_s: float) -> None:
        """A run with BENCH_ONLY replaces only its own rows of an earlier results.json."""
        out = self._settings.out
        out.mkdir(parents=True, exist_ok=True)
        when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        for figure in self._figures:
            figure.when = when
        if self._settings.only:
            self._figures += self._earlier(out / "results.json")
            self._figures.sort(key=lambda figure: self._names.index(figure.scenario))
        run = {
            "when": when,
            "atalanta": f"{__version__}, {build_name()}",
            "artemis": ARTEMIS_VERSION,
            "machine": machine(),
            "method": self._settings.describe(),
            "only": list(self._settings.only),
            "duration_s": round(duration_s),
        }
        self._write_json(out / "results.json", run)
        self._write_markdown(out / "RESULTS.md", run)

    def _earlier(self, path: Path) -> list[Figure]:
        """Figures of the scenarios that this run left out."""
        if not path.exists():
            return []
        found = map(Figure.from_json, json.loads(path.read_text())["figures"])
        kept = set(self._names) - set(self._settings.only)
        return [figure for figure in found if figure.scenario in kept]

    def _write_json(self, path: Path, run: dict[str, object]) -> None:
        rows = [figure.as_json() for figure in self._figures]
        text = json.dumps({"run": run, "figures": rows, "failed": self._failures}, indent=1)
        path.write_text(text + "\n")

    def _write_markdown(self, path: Path, run: dict[str, object]) -> None:
        lines = [
            "# Atalanta beside Artemis",
            "",
            "Written by `make bench`; results.json has every run.",
        ]
        lines += ["", f"- {run['when']}, {run['duration_s']} s in all"]
        if self._settings.only:
            lines[-1] += (
                f", only {', '.join(self._settings.only)}: the next lines are of that run; rows of another time had"
                " settings of their own"
            )
        lines += [f"- Atalanta {run['atalanta']}; Apache Artemis {run['artemis']}"]
        lines += [f"- {run['machine']}", f"- {run['method']}"]
        lines += [NOTES, HEAD, "|---" * (HEAD.count("|") - 1) + "|"]
        lines += [row(figure, self._settings) for figure in self._figures]
        notes = [f"- {figure.scenario}: {figure.note}" for figure in self._figures if figure.note]
        if notes:
            lines += ["", *dict.fromkeys(notes)]
        if self._failures:
            lines += ["", "Not measured:", ""]
            lines += [f"- {name}: {why}" for name, why in self._failures.items()]
        path.write_text("\n".join(lines) + "\n")


def row(figure: Figure, settings: Settings) -> str:
    """One line of the table."""
    reached = {True: "yes", False: "**no**", None: "–"}[figure.reached()]
    cells = [
        figure.scenario,
        f"{figure.name}, {figure.unit}" if figure.unit else figure.name,
        spread(figure.ours),
        spread(figure.theirs),
        spread(figure.ratios()),
        figure.wanted(),
        reached,
        figure.when,
        f"`{settings.command(figure.scenario)}`",
    ]
    return f"| {' | '.join(cells)} |"


def machine() -> str:
    """Processor, cores, kernel, Python."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cores = os.cpu_count() or 1
    return f"{model}, {cores} cores, Linux {platform.release()}, Python {platform.python_version()}"
