"""`python -m tests.sim.mutants [COUNT [NAME...]]` says for each mutant which of the first COUNT seeds find it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from types import ModuleType

import pytest

from atalanta.sim.seed_run import Failure, run_seed
from tests.sim import mutants
from tests.sim.mutants.patching import Mutant

NO_MUTANTS = ("__main__", "patching")


def modules() -> list[ModuleType]:
    """All of this package with mutants in them."""
    names = [each.name for each in pkgutil.iter_modules(mutants.__path__)]
    return [
        importlib.import_module(f"{mutants.__name__}.{name}")
        for name in names
        if name not in NO_MUTANTS
    ]


def mutants_of(module: ModuleType) -> list[Mutant]:
    return [
        each
        for name, each in vars(module).items()
        if inspect.isfunction(each) and each.__module__ == module.__name__ and name[0] != "_"
    ]


def nothing(patch: pytest.MonkeyPatch) -> None:
    """Prepares nothing: most worlds need no patch of their own."""


def survey(count: int, names: list[str]) -> None:
    planted = [(each, module) for module in modules() for each in mutants_of(module)]
    for mutant, module in planted:
        if names and mutant.__name__ not in names:
            continue
        grouped = getattr(module, "GROUPED", False)
        networked = getattr(module, "NETWORKED", False)
        load = getattr(module, "LOAD", None)  # the only load of the worlds in which it is looked for
        found = []
        first = ""
        for seed in range(1, count + 1):
            with pytest.MonkeyPatch.context() as patch:
                getattr(module, "prepare", nothing)(patch)
                mutant(patch)
                nodes = 1 if grouped else 2 if networked else 3
                outcome = run_seed(seed, nodes, 12.0, load=load, grouped=grouped, networked=networked)
            if isinstance(outcome, Failure):
                found.append(seed)
                first = first or outcome.report.split("\n")[0][:150]
        print(f"{mutant.__name__}: {len(found)} of {count}: {found[:12]} {first}", flush=True)


if __name__ == "__main__":
    survey(int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2:])
