"""`make bench`: runs the scenarios and writes RESULTS.md and results.json."""

from __future__ import annotations

import sys
import time

from atalanta.runtime.process.build import build_name
from bench import (
    catch_up,
    console,
    failover,
    moving,
    openwire,
    openwire_balance,
    pauses,
    replication,
    scaling,
    spark_source,
    spark_wal,
    throughput,
)
from bench.brokers import KINDS
from bench.context import Context, Scenario
from bench.generators import GeneratorFailed
from bench.measure import BadRun
from bench.results import Results
from bench.settings import BadSetting, Settings, read_settings
from tests.interop.harness.node import BrokerFailed
from tests.interop.harness.tools import ToolMissing

# What starts brokers of its own comes last, so that the shared ones run as long as they are needed.
SCENARIOS: dict[str, Scenario] = {
    **throughput.scenarios(),
    **openwire.scenarios(),
    **moving.scenarios(),
    **scaling.scenarios(),
    **pauses.scenarios(),
    **replication.scenarios(),
    **catch_up.scenarios(),
    **failover.scenarios(),
    **openwire_balance.scenarios(),
    **console.scenarios(),
    **spark_source.scenarios(),
    **spark_wal.scenarios(),
}


def main() -> int:
    """The exit status: 2 for settings that make no sense, 1 if a scenario gave no figures."""
    try:
        settings = read_settings()
        unknown = [name for name in settings.only if name not in SCENARIOS]
        if unknown:
            raise BadSetting(f"BENCH_ONLY: no {unknown[0]}; there are {', '.join(SCENARIOS)}")
    except BadSetting as problem:
        print(problem, file=sys.stderr)
        return 2
    print(f"Atalanta is {build_name()}; {' and '.join(KINDS)}; {settings.describe()}", flush=True)
    results = Results(settings, list(SCENARIOS))
    begin = time.monotonic()
    context = Context(settings)
    try:
        run(context, results, settings)
    finally:
        context.close()
    results.write(time.monotonic() - begin)
    print(f"written to {settings.out}/RESULTS.md")
    return 1 if results.failed else 0


def run(context: Context, results: Results, settings: Settings) -> None:
    """A scenario that fails leaves the others alone."""
    for name, scenario in SCENARIOS.items():
        if settings.only and name not in settings.only:
            continue
        begin = time.monotonic()
        try:
            results.add(scenario(context, name))
        except ToolMissing:
            raise
        except (BadRun, BrokerFailed, GeneratorFailed) as problem:
            results.fail(name, str(problem))
        except OSError as problem:
            results.fail(name, f"{type(problem).__name__}: {problem}")
        print(f"# {name}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
