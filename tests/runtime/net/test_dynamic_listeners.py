"""Ports the node opens by itself, and files in a shared folder."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from pathlib import Path

import pytest

from atalanta.runtime.disk.shared_folder import FILE_BYTES_MAX, exchange
from atalanta.runtime.net.limits import Limits
from atalanta.runtime.process.event_loop import run
from tests.ports import free_port
from tests.runtime.net.echo import Running, with_echo

LOCAL = "127.0.0.1"


def test_the_first_free_port_of_the_range_is_opened() -> None:
    async def use(running: Running) -> None:
        links, node = running.shell.links, running.node
        with socket.socket() as taken:
            taken.bind((LOCAL, 0))
            taken.listen()
            port = taken.getsockname()[1]
            links.listen("jgroups/0", LOCAL, port, 20)
            [place] = links._listeners.addresses("jgroups/0")
            found = int(place.rpartition(":")[2])
            assert port < found <= port + 20
            await running.until(lambda: _comes(LOCAL, found))
            await running.until(lambda: [w for w in node.words("accept") if w[2] == "jgroups/0"])
            links.unlisten("jgroups/0")
            await running.until(lambda: not _comes(LOCAL, found))

    run(with_echo(use))


@pytest.mark.parametrize("host", [LOCAL, ""])
def test_a_listener_tells_where_others_reach_it(host: str) -> None:
    async def use(running: Running) -> None:
        links = running.shell.links
        assert links.listening("jgroups/0", LOCAL) == ""
        links.listen("jgroups/0", host, free_port(), 20)
        [place] = links._listeners.addresses("jgroups/0")
        assert links.listening("jgroups/0", LOCAL) == f"{LOCAL}:{place.rpartition(':')[2]}"

    run(with_echo(use))


def test_a_port_that_another_has_only_bound_is_taken_and_listens() -> None:
    """Both may bind it: who listens first has it, and the other one takes the next."""

    async def use(running: Running) -> None:
        links = running.shell.links
        port = free_port()
        links.listen("jgroups/0", LOCAL, port, 0)
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                other.bind((LOCAL, port))
        assert _comes(LOCAL, port)

    run(with_echo(use))


def _comes(host: str, port: int) -> bool:
    with socket.socket() as visitor:
        return visitor.connect_ex((host, port)) == 0


def test_a_port_that_is_taken_is_told_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def use(running: Running) -> None:
        links = running.shell.links
        with socket.socket() as taken:
            taken.bind((LOCAL, 0))
            taken.listen()
            links.listen("jgroups/0", LOCAL, taken.getsockname()[1], 0)
            assert links._listeners.addresses("jgroups/0") == []
            await running.until(lambda: caplog.text.count("discovery_port_failed") >= 2)
        await running.until(lambda: links._listeners.addresses("jgroups/0"))

    with caplog.at_level(logging.WARNING):
        run(with_echo(use, Limits(join_retry_s=0.02)))
    assert "discovery_port_failed name=jgroups/0" in caplog.text


def test_files_are_written_whole_and_read_by_all(tmp_path: Path) -> None:
    async def use(running: Running) -> None:
        links, node = running.shell.links, running.node
        folder = str(tmp_path / "deep" / "channel")
        links.post("one", folder, "a.atalanta", b"A")
        await running.until(lambda: node.words("posted"))
        links.post("two", folder, "b.atalanta", b"B")
        await running.until(lambda: len(node.words("posted")) == 2)
        links.post("three", folder, "c.atalanta", b"")
        await running.until(lambda: len(node.words("posted")) == 3)
        both = {"a.atalanta": b"A", "b.atalanta": b"B"}
        assert [words[2:] for words in node.words("posted")[1:]] == [(both, "")] * 2
        links.unpost(folder, "a.atalanta")
        assert [each.name for each in Path(folder).iterdir()] == ["b.atalanta"]

    run(with_echo(use))


def test_after_closing_nothing_is_told_and_a_file_still_goes(tmp_path: Path) -> None:
    async def use(running: Running) -> None:
        links = running.shell.links
        links.post("one", str(tmp_path), "a.atalanta", b"A")
        links.close()
        links.unpost(str(tmp_path), "a.atalanta")
        await asyncio.sleep(0.05)
        assert not running.node.words("posted") and not list(tmp_path.glob("*.atalanta"))

    run(with_echo(use))


def test_what_cannot_be_written_or_is_too_large(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    assert exchange(blocked / "x", "a.atalanta", b"A")[1].startswith(str(blocked / "x"))
    assert "not a file name" in exchange(tmp_path, "../a.atalanta", b"A")[1]
    (tmp_path / "large.atalanta").write_bytes(bytes(FILE_BYTES_MAX + 1))
    os.mkfifo(tmp_path / "pipe.atalanta")
    (tmp_path / "other.txt").write_bytes(b"x")
    assert exchange(tmp_path, "a.atalanta", b"A") == ({"a.atalanta": b"A"}, "")
    assert exchange(tmp_path / "missing", "a.atalanta", b"") == ({}, "")
