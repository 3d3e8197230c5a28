"""Simulation of one seed. A seed with a violation runs again to record the message's history."""

from __future__ import annotations

from typing import Final

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.scenario import Scenario, ScenarioOutcome, history_of
from atalanta.sim.subject import Load
from atalanta.store import JournalDamaged

ERRORS: Final = (
    AssertionError, ValueError, LookupError, TypeError, RuntimeError, OSError, JournalDamaged,
)  # fmt: skip


class Failure:
    """A seed with a violation: `report` is the text for the developer."""

    def __init__(self, seed: int, report: str) -> None:
        self.seed = seed
        self.report = report


def run_seed(
    seed: int,
    nodes: int,
    seconds: float,
    faults: bool = True,
    load: Load | None = None,
    grouped: bool = False,
    networked: bool = False,
) -> ScenarioOutcome | Failure:
    """Runs a seed. Returns the outcome, or the violation with the history of the message."""
    try:
        return Scenario(seed, nodes, seconds, faults, load=load, grouped=grouped, networked=networked).run()
    except ERRORS as error:
        return Failure(seed, _report(seed, nodes, seconds, faults, load, grouped, networked, error))


def _report(
    seed: int,
    nodes: int,
    seconds: float,
    faults: bool,
    load: Load | None,
    grouped: bool,
    networked: bool,
    error: Exception,
) -> str:
    about = error.key if isinstance(error, Violation) else ""
    scenario = Scenario(seed, nodes, seconds, faults, True, about, load, grouped, networked)
    again: Exception | None = None
    try:
        scenario.run()
    except ERRORS as repeated:
        again = repeated
    key = again.key if isinstance(again, Violation) else ""
    program = "atalanta.sim" if load is None else load.__module__
    lines = [
        f"seed {seed}: {'BROKEN PROMISE' if isinstance(error, Violation) else type(error).__name__}: {error}",
        f"replay: python -m {program} --seed {seed} --nodes {nodes} --seconds {seconds:g}"
        + ("" if faults else " --calm")
        + (" --grouped" if grouped else "")
        + (" --networked" if networked else ""),
    ]
    if str(again) != str(error):
        lines.append(f"the second run differs: {again!r}: the world is not deterministic")
    return "\n".join([*lines, *history_of(scenario, key)])
