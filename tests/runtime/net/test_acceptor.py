"""Binding: early, all or nothing, with words that name the place."""

from __future__ import annotations

import asyncio
import socket

import pytest

from atalanta.runtime.net.acceptor import Listen, PortTaken
from atalanta.runtime.process.event_loop import run
from atalanta.runtime.shell import Shell


def test_a_taken_port_is_named_and_no_other_is_kept() -> None:
    async def main() -> None:
        with socket.socket() as taken, socket.socket() as free:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            free.bind(("127.0.0.1", 0))
            free_port = free.getsockname()[1]
            free.close()
            port = taken.getsockname()[1]
            shell = Shell(asyncio.get_running_loop())
            with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}: .*in use"):
                shell.bind([Listen("a", "127.0.0.1", free_port), Listen("b", "127.0.0.1", port)])
            shell.bind([Listen("a", "127.0.0.1", free_port)])
            assert shell.acceptors.open["a"].addresses == [f"127.0.0.1:{free_port}"]
            shell.acceptors.open["a"].close()

    run(main())


def test_a_port_that_another_one_listens_at_since_it_was_bound_is_named() -> None:
    async def main() -> None:
        shell = Shell(asyncio.get_running_loop())
        shell.bind([Listen("a", "127.0.0.1", 0)])
        (address,) = shell.acceptors.open["a"].addresses
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", int(address.rpartition(":")[2])))
            other.listen()
            with pytest.raises(PortTaken, match=f"acceptor a cannot listen on {address}: .*in use"):
                await shell.acceptors.open["a"].accept()
        shell.acceptors.open["a"].close()

    run(main())


def test_an_unknown_host_is_named() -> None:
    async def main() -> None:
        shell = Shell(asyncio.get_running_loop())
        with pytest.raises(OSError, match="cannot listen on no-such-host.invalid:61616"):
            shell.bind([Listen("a", "no-such-host.invalid", 61616)])

    run(main())


def test_localhost_is_bound_where_the_machine_has_it() -> None:
    async def main() -> None:
        shell = Shell(asyncio.get_running_loop())
        shell.bind([Listen("a", "localhost", 0)])
        assert len(shell.acceptors.open["a"].addresses) == 1
        shell.acceptors.open["a"].close()

    run(main())


def test_the_system_asks_for_hosts_that_are_silent() -> None:
    async def main() -> None:
        shell = Shell(asyncio.get_running_loop())
        shell.bind([Listen("a", "127.0.0.1", 0)])
        acceptor = shell.acceptors.open["a"]
        port = int(acceptor.addresses[0].rpartition(":")[2])
        acceptor.listen_early()
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = acceptor._sockets[0].accept()
            with accepted:
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        acceptor.close()

    run(main())
