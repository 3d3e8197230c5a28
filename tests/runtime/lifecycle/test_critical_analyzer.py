"""The analyzer watches the loop and the disk: what is told, and what is done when they hang."""

from __future__ import annotations

import asyncio
import io
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from atalanta.runtime.lifecycle import critical_analyzer
from atalanta.runtime.lifecycle.critical_analyzer import CriticalAnalyzer
from atalanta.runtime.process import exit_codes
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.ports import free_port


class Bench:
    """An analyzer of 0.2 s, looked after for as long as `run` runs."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.busy_since = 0.0
        self.stops: list[str] = []
        self.ends: list[int] = []

    def run(self, seconds: float, meanwhile: Callable[[], None]) -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            analyzer = CriticalAnalyzer(
                loop, lambda: self.busy_since, 0.2, 0.05, self.policy, self.stops.append, self.ends.append
            )
            analyzer.start()
            meanwhile()
            await asyncio.sleep(seconds)
            analyzer.stop()

        asyncio.run(main())

    def disk_hangs(self) -> None:
        self.busy_since = time.monotonic()


def names(log: pytest.LogCaptureFixture) -> list[str]:
    return [getattr(record, "event", "") for record in log.records]


def test_a_loop_that_is_held_is_told_of_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench = Bench("LOG")

    def hold() -> None:
        time.sleep(0.5)

    bench.run(0.2, hold)
    told = names(caplog)
    assert told[:2] == ["critical_component_slow", "critical_component_hangs"]
    assert told[-1] == "critical_component_resumed"
    assert "component=loop" in caplog.text and " hold" in caplog.text
    assert bench.ends == [] and bench.stops == []


def test_nothing_is_told_of_a_node_that_works_or_rests(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    Bench("HALT").run(0.6, lambda: None)
    assert names(caplog) == []


def test_a_disk_that_hangs_halts_the_node(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench("HALT")
    bench.run(0.5, bench.disk_hangs)
    assert bench.ends[0] == exit_codes.BUG and bench.stops == []
    assert "component=disk" in caplog.text


def test_shutdown_asks_first_and_then_ends() -> None:
    bench = Bench("SHUTDOWN")
    bench.run(0.7, bench.disk_hangs)
    assert bench.stops[0].startswith("the disk hangs") and bench.ends[0] == exit_codes.BUG


def test_after_a_standstill_all_have_their_time_again() -> None:
    """As after SIGSTOP, or a machine that was suspended: what the disk was doing then is not done a second later."""
    loop = asyncio.new_event_loop()
    ends: list[int] = []
    stops: list[str] = []
    analyzer = CriticalAnalyzer(loop, lambda: 100.0, 120.0, -1, "HALT", stops.append, ends.append)
    analyzer._check(101.0, False)
    analyzer._check(1_000.0, True)
    analyzer._check(1_001.0, False)
    analyzer._check(1_119.0, False)
    assert ends == []
    analyzer._check(1_121.0, False)
    assert ends == [exit_codes.BUG, exit_codes.BUG]
    loop.close()


def test_a_log_that_hangs_keeps_nobody_from_ending_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop may hang in the middle of a line of the log, with the handler's lock."""
    monkeypatch.setattr(critical_analyzer, "LOG_TIMEOUT_S", 0.1)
    handler = logging.StreamHandler(io.StringIO())
    logging.getLogger("atalanta.runtime").addHandler(handler)
    bench = Bench("HALT")
    handler.acquire()
    try:
        bench.run(1.0, bench.disk_hangs)
        assert bench.ends[:1] == [exit_codes.BUG]
    finally:
        handler.release()
        logging.getLogger("atalanta.runtime").removeHandler(handler)


HUNG = """
import os, sys, time
from pathlib import Path
from atalanta.app.run import run_broker
from atalanta.runtime.disk import commit_file
real = commit_file.write_synced
def hang(*arguments):
    if Path(sys.argv[2]).exists():
        time.sleep(60)
    real(*arguments)
commit_file.write_synced = hang
def ready(words):
    print("ready", *words, flush=True)
sys.exit(run_broker(Path(sys.argv[1]), ready))
"""


@pytest.mark.process
@pytest.mark.parametrize("in_loop", [True, False])
def test_a_real_node_whose_disk_hangs(tmp_path: Path, in_loop: bool) -> None:
    """With HALT it ends after the timeout, whoever does the commit; on the worker others are served meanwhile."""
    from atalanta.client import Message
    from atalanta.client.blocking import connect

    port = free_port()
    more = "<critical-analyzer-timeout>1500</critical-analyzer-timeout>"
    more += "<critical-analyzer-policy>HALT</critical-analyzer-policy>"
    broker_xml = write_broker_xml(tmp_path, port, more=more)
    if not in_loop:
        (broker_xml.parent / "atalanta.toml").write_text("commits-in-loop = false\n")
    mark = tmp_path / "hang"
    command = [sys.executable, "-c", HUNG, str(broker_xml), str(mark)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        assert node.stdout.readline().startswith("ready")
        url = f"tcp://127.0.0.1:{port}"
        with connect(url) as connection:
            producer = connection.producer("q", routing="anycast")
            for _ in range(300):
                producer.send(Message(b"x"))
            mark.touch()
            producer.send_soon(Message(b"hangs"))
            if not in_loop:
                with connect(url) as other:
                    light = other.producer("q", routing="anycast")
                    light.send(Message(b"light", durable=False))
            assert node.wait(20) == exit_codes.BUG
        assert node.stderr is not None
        assert "critical_component_hangs" in node.stderr.read()
    mark.unlink()
    with BrokerProcess(broker_xml) as broker, connect(url) as connection:
        assert connection.query_queue("q").message_count >= 300
        assert broker.end(signal.SIGTERM) == 0
