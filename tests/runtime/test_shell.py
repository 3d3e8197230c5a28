"""The shell around an echo node: turns, order of writing and closing, limits, ends, bugs."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from dataclasses import replace

import pytest

from atalanta.runtime.net.limits import Limits
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.event_loop import run
from tests.runtime.net.echo import EchoNode, Running, with_echo

both_loops = pytest.mark.parametrize("plain", [False, True], ids=["uvloop", "asyncio"])


@both_loops
def test_data_is_answered_and_an_accept_names_acceptor_and_peer(plain: bool) -> None:
    async def use(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        host, port = writer.get_extra_info("sockname")[:2]
        assert running.node.words("accept") == [("accept", 1, "artemis", f"{host}:{port}")]
        writer.close()
        await running.until(lambda: running.node.words("closed"))

    status, node = run(with_echo(use), plain)
    assert status == exit_codes.STOPPED
    assert node.words("closed") == [("closed", 1, "closed by the peer")]
    assert [entry[0] for entry in node.log[:2]] == ["recover", "start"]


@both_loops
def test_close_comes_after_what_was_written_and_is_told_once(plain: bool) -> None:
    async def use(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(b"bye")
        assert await reader.read() == b"bye"
        writer.close()
        await running.until(lambda: running.node.words("closed"))

    _, node = run(with_echo(use), plain)
    assert node.words("closed") == [("closed", 1, "said bye")]


@both_loops
def test_everything_of_one_turn_shares_a_flush(plain: bool) -> None:
    async def use(running: Running) -> None:
        before = running.node.flushes
        for key in range(100):
            running.shell.timers.set(f"key-{key}", 0)
        await running.until(lambda: len(running.node.words("timer")) == 100)
        await asyncio.sleep(0)
        await running.until(lambda: running.node.flushes > before)
        assert running.node.flushes - before <= 2

    run(with_echo(use), plain)


@both_loops
def test_graceful_stop_says_goodbye_to_every_peer(plain: bool) -> None:
    writers: list[asyncio.StreamWriter] = []
    answers: list[asyncio.Task[bytes]] = []

    async def use(running: Running) -> None:
        for _ in range(3):
            reader, writer = await running.connect()
            writer.write(b"x")
            assert await reader.readexactly(1) == b"x"
            writers.append(writer)
            answers.append(asyncio.ensure_future(reader.read()))

    async def whole() -> None:
        await with_echo(use)
        assert [await answer for answer in answers] == [b"goodbye"] * 3
        for writer in writers:
            writer.close()

    run(whole(), plain)


@both_loops
def test_a_stop_waits_for_clients_that_come_just_then_but_not_for_long(plain: bool) -> None:
    looks = [True, True, False]

    async def use(running: Running) -> None:
        running.node.clients_arrive = lambda: looks.pop(0)

    run(with_echo(use), plain)
    assert not looks

    async def use_for_ever(running: Running) -> None:
        running.shell.limits = replace(running.shell.limits, stop_arrivals_s=0.05)
        running.node.clients_arrive = lambda: True

    status, _ = run(with_echo(use_for_ever), plain)
    assert status == exit_codes.STOPPED


@both_loops
def test_a_peer_that_is_paused_as_it_comes_is_not_read_from(
    plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = EchoNode.on_accept

    def pause_first(node: EchoNode, now: int, conn: int, *others: str) -> None:
        accepted(node, now, conn, *others)
        if conn == 1:
            node.shell.connections.pause(conn)

    monkeypatch.setattr(EchoNode, "on_accept", pause_first)

    async def use(running: Running) -> None:
        paused_reader, paused = await running.connect()
        reader, writer = await running.connect()
        for word in (b"first", b"second"):
            paused.write(word)
            for _ in range(3):  # the loop has looked at all connections
                writer.write(b"hello")
                assert await reader.readexactly(5) == b"hello"
        assert ("data", 1, b"second") not in running.node.log
        running.node.shell.connections.resume(1)
        assert (await paused_reader.readexactly(11)) == b"firstsecond"

    run(with_echo(use), plain)


@both_loops
def test_a_peer_that_hangs_up_while_it_is_paused_is_told_once(plain: bool) -> None:
    async def use(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        running.node.shell.connections.pause(1)
        writer.write(b"unread")
        writer.close()
        await running.until(lambda: running.node.words("hung_up"))
        assert ("data", 1, b"unread") not in running.node.log
        running.node.shell.connections.resume(1)
        await running.until(lambda: running.node.words("closed"))

    _, node = run(with_echo(use), plain)
    assert ("data", 1, b"unread") in node.log
    assert node.words("hung_up") == [("hung_up", 1)]


@both_loops
def test_a_peer_that_does_not_read_is_not_read_from(plain: bool) -> None:
    limits = Limits(
        write_high_bytes=64 * 1024,
        write_low_bytes=16 * 1024,
        read_stop_bytes=256 * 1024,
        close_linger_s=0.2,
    )
    chunk = bytes(64 * 1024)

    async def use(running: Running) -> None:
        reader, writer = await running.connect()
        sent = 0
        # The peer sends without reading: echoes fill its receive buffers, then ours, then we stop.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                while True:
                    writer.write(chunk)
                    sent += len(chunk)
                    async with asyncio.timeout(0.5):
                        await writer.drain()
        taken = running.node.bytes_taken
        assert taken < sent
        assert running.node.words("blocked") == [("blocked", 1)]
        assert running.node.words("unblocked") == []
        # It reads again: everything flows again, to the last byte.
        read = 0
        while read < sent:
            read += len(await reader.read(1 << 20))
        assert read == sent
        await running.until(lambda: running.node.words("unblocked"))
        writer.close()

    # asyncio's stream reader would take bytes in the background up to its limit; that is fine.
    run(with_echo(use, limits), plain)


@both_loops
def test_a_peer_that_reads_slowly_is_still_read_from(plain: bool) -> None:
    """Its acknowledgements may be what lets its reader go on."""
    limits = Limits(write_high_bytes=64 * 1024, write_low_bytes=16 * 1024, close_linger_s=0.2)

    async def use(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        running.shell.connections.write(1, bytes(6 << 20))
        running.shell.connections.write_out()
        await running.until(lambda: running.node.words("blocked"))
        writer.write(b"ack")
        await running.until(lambda: running.node.bytes_taken == 4)
        assert running.node.words("unblocked") == []
        assert len(await reader.readexactly((6 << 20) + 3)) == (6 << 20) + 3
        await running.until(lambda: running.node.words("unblocked"))
        writer.close()

    run(with_echo(use, limits), plain)


@both_loops
def test_what_a_peer_does_not_take_at_once_comes_later_in_order(plain: bool) -> None:
    first = b"".join(number.to_bytes(4, "big") for number in range(2_000_000))

    async def use(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        for data in (first, b"second", b"third"):
            running.shell.connections.write(1, data)
            running.shell.connections.write_out()
        assert await reader.readexactly(len(first) + 11) == first + b"secondthird"
        writer.close()

    run(with_echo(use), plain)


@both_loops
def test_output_that_may_not_leave_is_held_and_leaves_later_in_order(plain: bool) -> None:
    """A node without its lease sends nothing to clients; other members of its group get theirs all the same."""

    async def use(running: Running) -> None:
        connections = running.shell.connections
        allowed = False
        connections.gate(lambda: allowed)
        client_reader, client = await running.connect()
        member_reader, member = await running.connect()
        await running.until(lambda: len(connections) == 2)
        connections.exempt(2)
        client.write(b"first")
        await running.until(lambda: running.node.bytes_taken == 5)
        client.write(b"bye")
        await running.until(lambda: running.node.bytes_taken == 8)
        member.write(b"member")
        assert await member_reader.readexactly(6) == b"member"
        held = asyncio.ensure_future(client_reader.read())
        await asyncio.sleep(0.01)
        assert not held.done()
        allowed = True
        member.write(b"any turn")
        assert await held == b"firstbye"
        client.close()
        member.close()

    run(with_echo(use), plain)


@both_loops
def test_writing_to_a_peer_that_is_gone_ends_its_connection_only(plain: bool) -> None:
    async def use(running: Running) -> None:
        _, writer = await running.connect()
        reader, other = await running.connect()
        await running.until(lambda: len(running.shell.connections) == 2)
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        for _ in range(3):
            running.shell.connections.write(1, bytes(1000))
            running.shell.connections.write_out()
            await asyncio.sleep(0)
        await running.until(lambda: running.node.words("closed"))
        other.write(b"x")
        assert await reader.readexactly(1) == b"x"
        other.close()

    run(with_echo(use), plain)


@both_loops
def test_connections_above_the_limit_are_cut_off_and_make_room(plain: bool) -> None:
    async def use(running: Running) -> None:
        first, first_writer = await running.connect()
        first_writer.write(b"a")
        assert await first.readexactly(1) == b"a"
        running.shell.connections.logged_in(1)
        second, second_writer = await running.connect()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await second.readexactly(1)
        second_writer.close()
        first_writer.close()
        await running.until(lambda: not running.node.open)
        third, third_writer = await running.connect()
        third_writer.write(b"c")
        assert await third.readexactly(1) == b"c"
        third_writer.close()

    _, node = run(with_echo(use, connections_max=1), plain)
    assert len(node.words("accept")) == 2


@both_loops
@pytest.mark.parametrize("of_acceptor", [True, False])
def test_at_the_limit_the_oldest_without_login_of_the_host_with_most_makes_room(
    plain: bool, of_acceptor: bool
) -> None:
    async def use(running: Running) -> None:
        async def come(host: str) -> asyncio.StreamWriter:
            number = len(running.node.words("accept"))
            _, writer = await asyncio.open_connection(
                "127.0.0.1", running.port, local_addr=(host, 0)
            )
            await running.until(lambda: len(running.node.words("accept")) == number + 1)
            return writer

        writers = [await come("127.0.0.1") for _ in range(3)]
        running.shell.connections.logged_in(1)
        writers.append(await come("127.0.0.2"))
        writers.append(await come("127.0.0.2"))
        await running.until(lambda: running.node.words("closed"))
        assert running.node.open == [1, 3, 4, 5]
        running.shell.connections.logged_in(3)
        writers.append(await come("127.0.0.3"))
        await running.until(lambda: len(running.node.words("closed")) == 2)
        assert running.node.open == [1, 3, 5, 6]
        for writer in writers:
            writer.close()

    limits = Limits() if of_acceptor else Limits(connections_max=4)
    run(with_echo(use, limits, connections_max=4 if of_acceptor else -1), plain)


@both_loops
def test_a_bug_in_the_node_ends_it_with_a_traceback(
    plain: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(running: Running) -> None:
        reader, writer = await running.connect()
        writer.write(b"boom")
        await running.task
        with pytest.raises(ConnectionResetError):
            assert await reader.read() == b""
            raise ConnectionResetError
        writer.close()

    with caplog.at_level(logging.CRITICAL):
        status, node = run(with_echo(use), plain)
    assert status == exit_codes.BUG
    assert node.log[-1][0] == "data", "no input after the bug"
    # The record and not its text: PySpark, tested in the same process, may have changed how texts look.
    (record,) = caplog.records
    assert record.exc_info is not None and "a bug of the node" in str(record.exc_info[1])


@both_loops
def test_a_failed_journal_ends_the_node(plain: bool) -> None:
    async def use(running: Running) -> None:
        _, writer = await running.connect()
        writer.write(b"fail")
        await running.task
        writer.close()

    status, node = run(with_echo(use), plain)
    assert status == exit_codes.DISK_FAILED
    assert node.log[-1][0] == "data"
