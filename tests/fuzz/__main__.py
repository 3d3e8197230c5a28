"""`python -m tests.fuzz [--count 1000000] [--target NAME …] [--seed 1] [--blind] [--out DIR]`: fuzz decoders.

Prints one line a target; what breaks is saved with its traceback. Inputs worth keeping are saved too, and are where the
next run begins. `--input FILE …` runs inputs again, in order.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from tests.fuzz import coverage
from tests.fuzz.engine import Fuzzer


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="inputs for each target")
    parser.add_argument("--target", action="append", default=[], help="all, or if --blind the compiled ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blind", action="store_true", help="without looking at branches (compiled build)")
    parser.add_argument("--out", type=Path, default=Path(".cache/fuzz"), help="corpus, findings")
    parser.add_argument("--input", type=Path, nargs="+", default=[], help="run these instead")
    options = parser.parse_args(arguments)
    if not options.blind:
        coverage.install()
    # Only now: modules are marked while they are imported.
    from tests.fuzz.targets import COMPILED, TARGETS

    names: list[str] = options.target or [*(COMPILED if options.blind else TARGETS)]
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    if options.input:
        return again(names[0], options.input)
    branches = None if options.blind else coverage.BRANCHES
    findings = 0
    for name in names:
        folder: Path = options.out / name
        more = [path.read_bytes() for path in sorted(folder.glob("*"))]
        if branches is not None:
            branches.forget()
        fuzzer = Fuzzer(TARGETS[name](), options.seed, branches, more)
        outcome = fuzzer.run(options.count)
        print(outcome, flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        for data in fuzzer.kept:
            (folder / hashlib.sha256(data).hexdigest()[:20]).write_bytes(data)
        for finding in outcome.findings:
            findings += 1
            print(finding.why, finding.save(options.out / "findings"), flush=True)
    return 1 if findings else 0


def again(name: str, paths: list[Path]) -> int:
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]()
    target.fresh()
    for path in paths:
        try:
            target.run(path.read_bytes())
        except target.refusals as error:
            print(f"{path}: refused: {error}")
        else:
            print(f"{path}: taken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
