"""The command line of a load of Spark."""

from __future__ import annotations

import argparse

from atalanta.sim.seed_run import Failure, run_seed
from atalanta.sim.subject import Load


def main(load: Load) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12.0)
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.count):
        outcome = run_seed(seed, options.nodes, options.seconds, load=load)
        if isinstance(outcome, Failure):
            print(outcome.report, flush=True)
        else:
            print(f"seed {seed}: {outcome.steps} steps, {outcome.crashes} crashes, {outcome.digest[:16]}", flush=True)
