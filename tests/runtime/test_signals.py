"""Stop signals while the loop cannot handle them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, time
from atalanta.runtime.process.signals import StopSignals, deadly_signals

async def main():
    stopped = asyncio.Event()
    with StopSignals(asyncio.get_running_loop(), lambda why: stopped.set(), lambda why: None):
        with deadly_signals():
            print("recovers", flush=True)
            time.sleep({recovery_s})
        print("serves", flush=True)
        await stopped.wait()
    print("stops", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize(("recovery_s", "ends", "last"), [(60, -signal.SIGTERM, "recovers"), (0, 0, "stops")])
def test_a_long_recovery_ends_at_once_and_a_node_that_serves_stops(recovery_s: int, ends: int, last: str) -> None:
    words = [sys.executable, "-c", PROGRAM.format(recovery_s=recovery_s)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = [process.stdout.readline()]
    if not recovery_s:
        told.append(process.stdout.readline())
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(20) == ends
    told += process.stdout.readlines()
    assert told[-1].strip() == last
