"""`make demo-network`: environment MESSAGES (about how many, default 4000), OUT (demo-network-out)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Final

from rich.console import Console

from examples.flights.out_folder import empty_folder
from examples.flights.processes import ProcessFailed, kill_all
from examples.flights.screen import Screen
from examples.network.clients import ClientsFailed, ToolMissing
from examples.network.demo import Demo, Stalled
from examples.network.picture import draw
from examples.network.summary import is_fine, print_summary, write_report

FAILED, DIFFERENT, INTERRUPTED = 1, 2, 130
MESSAGES: Final = "4000"
# Of the table, where there is no terminal.
PLAIN_WIDTH: Final = 120
# Their text says it all.
EXPECTED: Final = (ProcessFailed, ClientsFailed, Stalled, ToolMissing, FileNotFoundError, ValueError)


def main() -> int:
    """The exit status: 0 nothing lost or doubled and everybody home, 2 something is, 1 the run failed."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    out = Path(os.environ.get("OUT", "demo-network-out")).absolute()
    messages = os.environ.get("MESSAGES") or MESSAGES
    if not messages.isdigit():
        console.print(f"MESSAGES={messages} is not a number", style="red")
        return FAILED
    try:
        demo = asyncio.run(run(console, out, int(messages)))
    except (KeyboardInterrupt, asyncio.CancelledError):
        kill_all()
        console.print("interrupted; no process is left", style="red")
        return INTERRUPTED
    except Exception as failure:
        kill_all()
        if not isinstance(failure, EXPECTED):
            traceback.print_exception(failure)
        console.print(f"the demo failed: {failure}", style="red", markup=False, soft_wrap=True)
        return FAILED
    timeline = demo.timeline
    for name in ("network.png", "network.svg"):
        draw(timeline, out / name)
    write_report(timeline, out)
    print_summary(console, timeline, out)
    return 0 if is_fine(timeline) else DIFFERENT


async def run(console: Console, out: Path, messages: int) -> Demo:
    """One run; Ctrl-C, SIGTERM and SIGHUP cancel it."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    empty_folder(out)
    with Screen(console) as screen:
        demo = Demo(out, messages, screen)
        await demo.run()
    return demo


if __name__ == "__main__":
    sys.exit(main())
