"""QueueSender connections: success, refusal, no answer in time."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import pytest

from atalanta.runtime.net.dialer import BURST, DIALS_BEYOND, RATE, DialRate
from atalanta.runtime.net.limits import Limits
from atalanta.runtime.process.event_loop import run
from tests.runtime.net.echo import Running, with_echo

both_loops = pytest.mark.parametrize("plain", [False, True], ids=["uvloop", "asyncio"])


@both_loops
def test_dialed_connections_carry_data_both_ways(plain: bool) -> None:
    async def use(running: Running) -> None:
        received = bytearray()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"welcome")
            received.extend(await reader.readexactly(7))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        running.shell.links.dial("peer-a", "127.0.0.1", port)
        await running.until(lambda: running.node.words("closed"))
        server.close()
        assert running.node.words("dialed") == [("dialed", 1, "peer-a")]
        assert bytes(received) == b"welcome", "the echo node answers what it was sent"

    run(with_echo(use), plain)


def test_attempts_to_one_host_are_limited_and_other_hosts_do_not_wait() -> None:
    rate = DialRate()
    waits = [rate.wait_s("victim", 1, 1000.0) for _ in range(2_500)]
    assert waits[:BURST] == [0.0] * BURST
    for second in range(1, 10):
        assert sum(second - 1 < wait <= second for wait in waits) in (RATE - 1, RATE, RATE + 1)
    assert rate.wait_s("other", 1, 1000.0) == 0.0
    assert rate.wait_s("victim", 1, 1000.0 + waits[-1] + 10) == 0.0


def test_a_member_does_not_wait_behind_forged_ports_of_its_host() -> None:
    rate = DialRate()
    rate.answered("host", 61616)
    for port in range(1, 5_000):
        rate.wait_s("host", port, 1000.0)
    assert rate.wait_s("host", 9, 1000.0) > 200
    assert [rate.wait_s("host", 61616, 1000.0) for _ in range(BURST)] == [0.0] * BURST
    assert rate.wait_s("host", 61616, 1000.0) > 0


@both_loops
def test_a_port_that_answered_is_dialled_at_once_while_others_of_its_host_wait(plain: bool) -> None:
    async def use(running: Running) -> None:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen(10)
            port = listening.getsockname()[1]
            running.shell.links.dial("member", "127.0.0.1", port)
            await running.until(lambda: running.node.words("dialed"))
            for number in range(3 * BURST):
                running.shell.links.dial(f"forged-{number}", "127.0.0.1", 1)
            running.shell.links.dial("again", "127.0.0.1", port)
            await running.until(lambda: len(running.node.words("dialed")) == 2)
            assert len(running.node.words("dial_failed")) < 2 * BURST

    run(with_echo(use), plain)


@both_loops
def test_a_refused_dial_says_where_and_why(plain: bool) -> None:
    async def use(running: Running) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
            running.shell.links.dial("peer-b", "127.0.0.1", port)
            await running.until(lambda: running.node.words("dial_failed"))
        ((_, key, why),) = running.node.words("dial_failed")
        assert key == "peer-b"
        assert f"127.0.0.1:{port}" in str(why)

    run(with_echo(use), plain)


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """One with a full backlog: the system drops further connection requests without a word."""
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.socket())
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        port = silent.getsockname()[1]
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port


@pytest.mark.parametrize("asked", [False, True], ids=["the shell's", "the connector's"])
@both_loops
def test_a_dial_without_answer_ends_in_time(plain: bool, asked: bool) -> None:
    async def use(running: Running) -> None:
        with silent_port() as port:
            running.shell.links.dial_within("peer-c", "127.0.0.1", port, 200 if asked else -1)
            await running.until(lambda: running.node.words("dial_failed"))
        ((_, key, why),) = running.node.words("dial_failed")
        assert key == "peer-c"
        assert "within 0.2 s" in str(why)

    run(with_echo(use, Limits(dial_timeout_s=30 if asked else 0.2)), plain)


@pytest.mark.parametrize("host", ["a\0b", "x" * 300, "\ud800"], ids=["null", "long", "surrogate"])
@both_loops
def test_a_host_that_cannot_be_one_is_a_failed_dial(plain: bool, host: str) -> None:
    """Peers and datagrams name hosts; whatever they say, the node must hear that it failed."""

    async def use(running: Running) -> None:
        running.shell.links.dial("peer-d", host, 1)
        await running.until(lambda: running.node.words("dial_failed"))
        assert [word[1] for word in running.node.words("dial_failed")] == ["peer-d"]

    run(with_echo(use), plain)


@both_loops
def test_dials_without_answer_leave_the_node_files_for_its_work(plain: bool) -> None:
    """Strangers may announce thousands of places; a journal that cannot open a file ends the node."""

    async def use(running: Running) -> None:
        with silent_port() as port:
            for number in range(DIALS_BEYOND + 10):
                running.shell.links.dial(f"peer-{number}", "127.0.0.1", port)
            await running.until(lambda: len(running.node.words("dial_failed")) >= 10)
            failed = running.node.words("dial_failed")
            assert [key for _, key, _ in failed] == [
                f"peer-{number}" for number in range(DIALS_BEYOND, DIALS_BEYOND + 10)
            ]
            assert "above the limit" in str(failed[0][2])
            await running.until(lambda: len(running.node.words("dial_failed")) == DIALS_BEYOND + 10)
            running.shell.links.dial("again", "127.0.0.1", port)
            await running.until(lambda: len(running.node.words("dial_failed")) == DIALS_BEYOND + 11)
            assert "within" in str(running.node.words("dial_failed")[-1][2])

    run(with_echo(use, Limits(dial_timeout_s=0.3, connections_max=0)), plain)
