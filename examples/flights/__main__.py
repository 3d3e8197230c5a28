"""`make demo`: environment FLIGHTS (how many, default all), MASTER (Spark's, default local[2]), OUT (demo-out)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from pathlib import Path

from rich.console import Console

from examples.flights import data, oracle
from examples.flights.cluster import check_ports
from examples.flights.demo import Demo, Stalled
from examples.flights.out_folder import empty_folder
from examples.flights.plan import check_count, plan_for
from examples.flights.processes import ProcessFailed, kill_all
from examples.flights.report import Report
from examples.flights.screen import Screen
from examples.flights.summary import print_summary

FAILED, DIFFERENT, INTERRUPTED = 1, 2, 130
# Of the table, where there is no terminal.
PLAIN_WIDTH = 120
# Their text says it all.
EXPECTED = (ProcessFailed, Stalled, FileNotFoundError, ValueError)


def main() -> int:
    """The exit status: 0 everything agrees, 2 something does not, 1 the run failed."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    out = Path(os.environ.get("OUT", "demo-out")).absolute()
    count = os.environ.get("FLIGHTS", "")
    if count and not count.isdigit():
        console.print(f"FLIGHTS={count} is not a number", style="red")
        return FAILED
    master = os.environ.get("MASTER") or "local[2]"
    try:
        report = asyncio.run(run(console, out, int(count) if count else None, master))
    except (KeyboardInterrupt, asyncio.CancelledError):
        kill_all()
        console.print("interrupted; no process is left", style="red")
        return INTERRUPTED
    except Exception as failure:
        kill_all()
        for cause in causes(failure):
            if not isinstance(cause, EXPECTED):
                traceback.print_exception(cause)
            console.print(f"the demo failed: {cause}", style="red", markup=False, soft_wrap=True)
        return FAILED
    print_summary(console, report, out)
    return 0 if report.ok else DIFFERENT


def causes(failure: BaseException) -> list[BaseException]:
    """The failures of all tasks that ran side by side."""
    if isinstance(failure, BaseExceptionGroup):
        return [cause for part in failure.exceptions for cause in causes(part)]
    return [failure]


async def run(console: Console, out: Path, count: int | None, master: str) -> Report:
    """One run; Ctrl-C, SIGTERM and SIGHUP cancel it."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    check_ports()
    empty_folder(out)
    with Screen(console) as screen:
        screen.status("reading the flights")
        if count is not None:
            check_count(count)
        flights = await asyncio.to_thread(data.load, count)
        plan = plan_for(flights, out, master)
        demo = Demo(plan, flights, oracle.expected(flights), screen)
        await demo.run()
        return await asyncio.to_thread(demo.conclude)


if __name__ == "__main__":
    sys.exit(main())
