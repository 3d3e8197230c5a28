"""A guard and its child as real processes: what is proven to a backup, when, and what never is."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from atalanta.runtime.ha.guard.frames import (
    ENDED,
    HELLO_SIZE,
    NONCE_SIZE,
    PROOF_SIZE,
    WATCH_SIZE,
    WATCHED,
    decode_hello,
    encode_answer,
    encode_hello,
)
from atalanta.runtime.ha.guard.line import GuardLine
from atalanta.runtime.ha.guard.start import start_guard
from atalanta.runtime.ha.guard.started_process import PASSED_SIGNALS
from atalanta.runtime.ha.guard.watch import GuardWatch
from atalanta.runtime.ha.guard.watchers import CONNECTIONS_MAX
from tests.runtime.ha.guard.guarded_process import (
    EPOCH,
    SECRET,
    GuardedProcess,
    alive,
    guarded_process,
    stop,
)
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process
HOST = "127.0.0.1"
# Long enough to see that nothing comes.
QUIET_S = 0.3


class Watch(GuardWatch):
    """A watch that keeps what it was told."""

    def __init__(self) -> None:
        self.proofs: asyncio.Queue[int] = asyncio.Queue()
        super().__init__(self.proofs.put_nowait)

    async def proof(self) -> int:
        return await asyncio.wait_for(self.proofs.get(), DEADLINE_S)

    async def assert_no_proof(self) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(self.proofs.get(), QUIET_S)


@asynccontextmanager
async def watching(guarded: GuardedProcess, secret: bytes = SECRET, epoch: int = EPOCH) -> AsyncIterator[Watch]:
    """A watch with its first attempt behind it."""
    watch = Watch()
    try:
        assert await watch.connect(HOST, guarded.port, secret, epoch) == (secret == SECRET and epoch == EPOCH)
        yield watch
    finally:
        watch.close()


def test_a_killed_broker_is_proven_at_once() -> None:
    async def run() -> None:
        with guarded_process() as guarded:
            async with watching(guarded) as first, watching(guarded) as second:
                await first.assert_no_proof()
                began = time.monotonic()
                os.kill(guarded.child, signal.SIGKILL)
                assert await first.proof() == EPOCH
                assert await second.proof() == EPOCH
                assert time.monotonic() - began < 1
                status, log = await asyncio.to_thread(guarded.wait)
                assert status == 128 + signal.SIGKILL
                assert f"broker_killed signal=9 pid={guarded.child} epoch={EPOCH} backups=2" in log

    asyncio.run(run())


def test_the_status_is_the_one_of_the_broker() -> None:
    async def run() -> None:
        with guarded_process() as guarded:
            async with watching(guarded) as watch:
                guarded.tell("sys.exit(69)")
                assert await watch.proof() == EPOCH
                status, log = await asyncio.to_thread(guarded.wait)
                assert status == 69
                assert "broker_ended status=69" in log

    asyncio.run(run())


@pytest.mark.parametrize("secret, epoch", [(b"x" * 32, EPOCH), (SECRET, EPOCH - 1), (SECRET, EPOCH + 1)])
def test_nothing_is_proven_to_who_has_another_secret_or_epoch(secret: bytes, epoch: int) -> None:
    async def run() -> None:
        with guarded_process() as guarded:
            async with watching(guarded, secret, epoch) as watch:
                os.kill(guarded.child, signal.SIGKILL)
                await asyncio.to_thread(guarded.wait)
                await watch.assert_no_proof()

    asyncio.run(run())


def test_nothing_is_proven_before_the_broker_was_active() -> None:
    async def run() -> None:
        with guarded_process(active=False) as guarded:
            watch = Watch()
            assert not await watch.connect(HOST, guarded.port, SECRET, EPOCH)
            assert not await watch.connect(HOST, guarded.port, b"", 0)
            guarded.activate()
            assert await watch.connect(HOST, guarded.port, SECRET, EPOCH), "now it is"
            watch.close()

    asyncio.run(run())


def test_the_end_of_an_epoch_is_not_that_of_a_later_one() -> None:
    """Who watched the earlier epoch hears nothing more, and whoever watches the later one is told about that."""

    async def run() -> None:
        with guarded_process() as guarded:
            async with watching(guarded) as watch:
                guarded.activate(EPOCH + 2, b"t" * 32)
                later = Watch()
                assert await later.connect(HOST, guarded.port, b"t" * 32, EPOCH + 2)
                assert watch.epoch == 0, "it has lost its guard"
                os.kill(guarded.child, signal.SIGKILL)
                assert await later.proof() == EPOCH + 2
                await watch.assert_no_proof()

    asyncio.run(run())


def test_a_report_of_the_last_moment_counts() -> None:
    """The guard stands still while its broker becomes active, and ends: the proof is for the later epoch."""

    async def run() -> None:
        with guarded_process() as guarded:
            stop(guarded.guard)
            guarded.tell(f"line.report({EPOCH + 1}, {SECRET!r}); os._exit(3)")
            watch = Watch()
            attempt = watch.connect(HOST, guarded.port, SECRET, EPOCH + 1)
            await asyncio.sleep(QUIET_S)
            os.kill(guarded.guard, signal.SIGCONT)
            assert await watch.proof() == EPOCH + 1
            await attempt
            assert (await asyncio.to_thread(guarded.wait))[0] == 3

    asyncio.run(run())


def test_a_broker_that_stands_still_has_not_ended() -> None:
    async def run() -> None:
        with guarded_process() as guarded:
            async with watching(guarded) as watch:
                stop(guarded.child)
                await watch.assert_no_proof()
                os.kill(guarded.child, signal.SIGCONT)
                await watch.assert_no_proof()
                assert guarded.process.poll() is None

    asyncio.run(run())


@pytest.mark.parametrize("stopped", [(), ("child",), ("guard",), ("child", "guard")], ids=str)
def test_the_end_of_what_was_started_ends_the_broker_and_is_proven(stopped: tuple[str, ...]) -> None:
    """`kill -9` of the process that somebody has started, also while others stand still."""

    async def run() -> None:
        with guarded_process() as guarded:
            async with watching(guarded) as watch:
                for name in stopped:
                    stop(getattr(guarded, name))
                guarded.process.kill()
                assert await watch.proof() == EPOCH
                assert not alive(guarded.child), "its end is proven, and nothing else"
                status, log = await asyncio.to_thread(guarded.wait)
                assert status == -signal.SIGKILL
                assert f"started_process_lost pid={guarded.child} epoch={EPOCH} backups=1" in log
                assert "broker_killed" not in log
            until(lambda: not alive(guarded.guard), "the guard stays")

    asyncio.run(run())


def test_a_stopped_process_that_was_started_changes_nothing() -> None:
    async def run() -> None:
        with guarded_process() as guarded:
            async with watching(guarded) as watch:
                stop(guarded.process.pid)
                await watch.assert_no_proof()
                assert alive(guarded.child)
                os.kill(guarded.child, signal.SIGKILL)
                assert await watch.proof() == EPOCH
                guarded.process.send_signal(signal.SIGCONT)
                assert guarded.process.wait(DEADLINE_S) == 128 + signal.SIGKILL

    asyncio.run(run())


def test_the_end_of_the_guard_ends_the_broker_and_proves_nothing() -> None:
    async def run() -> None:
        with guarded_process() as guarded:
            async with watching(guarded) as watch:
                os.kill(guarded.guard, signal.SIGKILL)
                status, log = await asyncio.to_thread(guarded.wait)
                assert status == 128 + signal.SIGKILL
                assert f"guard_killed signal=9 pid={guarded.guard}" in log
                await watch.assert_no_proof()
                assert watch.epoch == 0

    asyncio.run(run())


def test_a_process_that_the_broker_has_started_delays_no_proof(tmp_path: Path) -> None:
    async def run() -> None:
        with guarded_process() as guarded:
            note = tmp_path / "sleeper"
            guarded.do(f"sleeper = subprocess.Popen(['sleep', '60']); open({str(note)!r}, 'w').write(str(sleeper.pid))")
            sleeper = int(note.read_text())
            try:
                async with watching(guarded) as watch:
                    began = time.monotonic()
                    os.kill(guarded.child, signal.SIGKILL)
                    assert await watch.proof() == EPOCH
                    assert guarded.process.wait(DEADLINE_S) == 128 + signal.SIGKILL
                    assert time.monotonic() - began < 1
                    assert alive(sleeper)
            finally:
                os.kill(sleeper, signal.SIGKILL)

    asyncio.run(run())


@pytest.mark.parametrize("number", PASSED_SIGNALS)
def test_signals_are_passed_on(number: signal.Signals) -> None:
    with guarded_process() as guarded:
        guarded.do(f"signal.signal({int(number)}, lambda number, frame: os._exit(number))")
        guarded.process.send_signal(number)
        assert guarded.wait()[0] == number


def test_the_second_request_to_stop_ends_the_broker() -> None:
    """A service manager signals all processes at once: this is one request, and the broker takes its time."""
    with guarded_process() as guarded:
        guarded.do("signal.signal(signal.SIGTERM, lambda number, frame: print('asked', flush=True))")
        for process in (guarded.child, guarded.guard, guarded.process.pid):
            os.kill(process, signal.SIGTERM)
        assert guarded.process.stdout is not None
        assert guarded.process.stdout.readline() == "asked\n"
        time.sleep(QUIET_S)
        assert guarded.process.poll() is None
        guarded.process.send_signal(signal.SIGTERM)
        assert guarded.wait()[0] == 128 + signal.SIGTERM


def test_strangers_are_sent_away_and_lock_nobody_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def run() -> None:
        with guarded_process() as guarded:
            with socket.create_connection((HOST, guarded.port), DEADLINE_S) as stranger:
                decode_hello(stranger.recv(HELLO_SIZE, socket.MSG_WAITALL))
                stranger.sendall(b"GET / HTTP/1.1\r\nHost: somebody.example\r\nUser-Agent: a name that is long enough"
                                 b" for one frame\r\n\r\n")  # fmt: skip
                with contextlib.suppress(ConnectionResetError):
                    assert stranger.recv(100) == b""
            async with watching(guarded) as watch:
                idle = [
                    await asyncio.open_connection(HOST, guarded.port) for _ in range(CONNECTIONS_MAX + 8)
                ]
                await idle[-1][0].readexactly(HELLO_SIZE)
                assert len(await idle[0][0].read(2 * HELLO_SIZE)) == HELLO_SIZE
                assert await idle[0][0].read() == b"", "the oldest stranger makes room"
                for _, writer in idle:
                    writer.close()
                os.kill(guarded.child, signal.SIGKILL)
                assert await watch.proof() == EPOCH

    asyncio.run(run())
    assert "guard_lost" not in caplog.text, "a backup does not"


def test_a_wrong_proof_is_none_and_a_later_right_one_is() -> None:
    """A guard answers first with a wrong secret, then with another answer, and at last with the proof."""
    answers = [(ENDED, b"x" * 32), (WATCHED, SECRET), (ENDED, SECRET)]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        guard_nonce = os.urandom(32)
        writer.write(encode_hello(guard_nonce))
        watch = await reader.readexactly(WATCH_SIZE)
        nonce = watch[-PROOF_SIZE - NONCE_SIZE : -PROOF_SIZE]
        writer.write(encode_answer(WATCHED, SECRET, EPOCH, guard_nonce, nonce))
        kind, secret = answers.pop(0)
        writer.write(encode_answer(kind, secret, EPOCH, guard_nonce, nonce))
        await reader.read()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, HOST, 0)
        watch = Watch()
        async with server:
            assert await watch.connect(HOST, server.sockets[0].getsockname()[1], SECRET, EPOCH)
            assert await watch.proof() == EPOCH
            assert answers == [], "the first two proved nothing"
            await watch.assert_no_proof()

    asyncio.run(run())


def test_a_guard_that_answers_later_is_found() -> None:
    """Nobody listens when the backup looks first. It goes on looking, and is told of an end that comes after."""

    async def run() -> None:
        with guarded_process() as guarded, socket.create_server((HOST, 0)) as taken:
            port = taken.getsockname()[1]
            taken.close()
            watch = Watch()
            assert not await watch.connect(HOST, port, SECRET, EPOCH)
            guarded.do(f"line.listen('{HOST}', {port})")
            while not watch.epoch:
                await asyncio.sleep(0.02)
            os.kill(guarded.child, signal.SIGKILL)
            assert await watch.proof() == EPOCH

    asyncio.run(run())


def test_a_port_of_an_earlier_guard_is_waited_for() -> None:
    line, other = socket.socketpair()
    taken = socket.create_server((HOST, 0))
    port = taken.getsockname()[1]
    with line, other:
        with pytest.raises(OSError, match="in use"):
            GuardLine(line).listen(HOST, port)
        leaves = threading.Timer(0.1, taken.close)
        leaves.start()
        assert GuardLine(line).listen(HOST, port, wait_s=DEADLINE_S) == port
        leaves.join()


def test_without_a_second_process_there_is_no_guard(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    assert start_guard() is None
    assert "guard_not_started" in caplog.text
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_guard_without_a_child_is_none_either() -> None:
    """The second of two new processes is refused: the program goes on as the only one."""
    program = (
        "import os; fork = os.fork; started = os.getpid()\n"
        "def once():\n"
        "    if os.getpid() != started: raise BlockingIOError(11, 'too many')\n"
        "    return fork()\n"
        "os.fork = once\n"
        "from atalanta.runtime.ha.guard.start import start_guard\n"
        "print(start_guard(), os.getpid() == started)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.stdout, done.returncode) == ("None True\n", 0)
    assert "Resource temporarily unavailable" in done.stderr


def test_a_guard_that_cannot_become_small_does_the_same() -> None:
    """A program that has Python inside has no path of an interpreter."""
    program = (
        "import os, sys; sys.executable = ''\n"
        "from atalanta.runtime.ha.guard.start import start_guard\n"
        "started = os.getpid(); start_guard()\n"
        "print(started not in (os.getppid(), os.getpid()), flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.stdout, done.returncode) == ("True\n", 128 + signal.SIGKILL)
    assert "broker_killed signal=9" in done.stderr


def test_a_guard_that_cannot_load_its_log_keeps_the_status() -> None:
    """An upgrade moves the sources while the node runs, and a guard loads its log when there is something to say."""
    program = (
        "import os, sys; sys.executable = ''\n"
        "from atalanta.runtime.ha.guard.start import start_guard\n"
        "sys.modules['atalanta.runtime.process.logs'] = None\n"
        "start_guard(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 128 + signal.SIGKILL
    assert "broker_killed {'signal': 9," in done.stderr and "Traceback" not in done.stderr


def test_a_guard_and_what_was_started_are_small() -> None:
    """Imports of the broker would cost them tens of megabytes."""
    with guarded_process() as guarded:
        for process in (guarded.guard, guarded.process.pid):
            until(partial(is_small, process), f"process {process} is large")
    assert loaded("parent") == ["frames", "guard_log", "line", "parent", "started_process", "watchers"]
    assert loaded("started_process") == ["guard_log", "started_process"]


def is_small(process: int) -> bool:
    """Returns whether the process has one thread and little memory. It is large before its exec."""
    with open(f"/proc/{process}/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["Threads"]) == 1 and int(fields["VmRSS"].split()[0]) < 16 * 1024


def loaded(module: str) -> list[str]:
    """The modules of the guard that one of them loads; it loads no others of the product."""
    head = "atalanta.runtime.ha.guard"
    program = f"import sys, {head}.{module}; print(*[one for one in sys.modules if 'atalanta' in one])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names = [name for name in done.stdout.split() if not head.startswith(name)]
    assert all(name.startswith(f"{head}.") for name in names)
    return sorted(name.removeprefix(f"{head}.") for name in names)
