"""`python -m atalanta.sim --seed 42 [--count 200] [--nodes 3] [--seconds 12] [--hours 1]`: simulates a cluster.

The command prints one line per run. For a violation it prints the command that replays it and the history of the
message.
"""

from __future__ import annotations

import argparse
import gc
import sys

from atalanta.sim.seed_run import Failure, run_seed


def main(arguments: list[str] | None = None) -> int:
    """Runs the seeds. Returns exit status 1 after a violation."""
    parser = argparse.ArgumentParser(prog="python -m atalanta.sim", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12.0, help="virtual seconds under load")
    parser.add_argument("--hours", type=float, default=0.0, help="the same in hours")
    parser.add_argument("--calm", action="store_true", help="without faults")
    parser.add_argument("--grouped", action="store_true", help="one node or several are replicated groups")
    parser.add_argument("--networked", action="store_true", help="the nodes are a network of brokers")
    options = parser.parse_args(arguments)
    seconds = options.hours * 3600 or options.seconds
    # Nodes and clients refer to each other, so their garbage is in circles. To look for it seldom saves a tenth.
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    failed = 0
    for seed in range(options.seed, options.seed + options.count):
        outcome = run_seed(
            seed, options.nodes, seconds, not options.calm, grouped=options.grouped, networked=options.networked
        )
        if isinstance(outcome, Failure):
            failed += 1
            print(outcome.report, flush=True)
            continue
        print(
            f"seed {seed}: {outcome.virtual_seconds:.0f} virtual s, {outcome.steps} steps,"
            f" {outcome.confirmed} confirmed, {outcome.moved} moved, {outcome.forwarded} forwarded,"
            f" {outcome.crashes} crashes, {outcome.failovers} failovers, {outcome.lost_epochs} lost epochs,"
            f" {outcome.departures} departures, {outcome.failed_disks} failed disks,"
            f" {outcome.followed} followed, {outcome.reattached} reattached, {outcome.redeliveries} redeliveries,"
            + (f" {outcome.doubled} doubled," if options.networked else "")
            + f" {outcome.segments_cleaned} segments cleaned, digest {outcome.digest[:16]}",
            flush=True,
        )
    print(f"{options.count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
