"""The check of the network: what is asked, whom, and what counts as an answer."""

from __future__ import annotations

import asyncio
import http.server
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from atalanta.runtime.network_check.check import NetworkCheck, network_check
from atalanta.runtime.network_check.config import (
    PING,
    PING6,
    BadCommand,
    NetworkCheckConfig,
    PingCommand,
)
from atalanta.runtime.network_check.probes import LOOPBACK, AddressProbe, UrlProbe

NOWHERE = "192.0.2.1"  # never anybody's (RFC 5737)


class Pinger:
    """Answers as it is told; `hang` keeps the look until it is closed."""

    def __init__(self, name: str, why: str = "silent", hang: bool = False) -> None:
        self.name = name
        self.why = why
        self.looks = 0
        self._over = threading.Event()
        if not hang:
            self._over.set()

    def check(self) -> str:
        self.looks += 1
        assert self._over.wait(30)
        return self.why

    def close(self) -> None:
        self._over.set()


def asked(*pingers: Pinger, times: int = 1, timeout_s: float = 30.0) -> list[str]:
    async def ask() -> list[str]:
        check = NetworkCheck(asyncio.get_running_loop(), pingers, timeout_s)
        answers = [await check.why_lost() for _ in range(times)]
        check.close()
        return answers

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("ping -c 1 -w %d %s", ["ping", "-c", "1", "-w", "3", "10.0.0.1"]),
        ("ping6 -c 1 %2$s", ["ping6", "-c", "1", "10.0.0.1"]),
        ("ping -n 1 -w %d000 %s", ["ping", "-n", "1", "-w", "3000", "10.0.0.1"]),
        ("probe --for=%1$ds --to=%2$s  %1$s%%", ["probe", "--for=3s", "--to=10.0.0.1", "3%"]),
        ("sh -c $(x);y %2$s", ["sh", "-c", "$(x);y", "10.0.0.1"]),
    ],
)
def test_a_command_is_filled_as_in_java_and_split_at_spaces_alone(
    text: str, arguments: list[str]
) -> None:
    command = PingCommand(text)
    assert command.arguments(3, "10.0.0.1") == arguments
    assert command.takes_address
    assert not PingCommand("ping 10.0.0.1").takes_address


@pytest.mark.parametrize("text", ["ping %x", "ping %", "ping %d %d", "ping %s %s %s", "ping %3$s", " "])
def test_a_command_with_a_placeholder_for_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadCommand):
        PingCommand(text)


def test_the_interface_goes_into_the_default_command() -> None:
    arguments = PingCommand("ping -c 1 -w %d %s").arguments(1, NOWHERE, "eth0")
    assert arguments == ["ping", "-I", "eth0", "-c", "1", "-w", "1", NOWHERE]
    assert not NetworkCheckConfig().custom()
    assert not NetworkCheckConfig(ping_command=PING, ping6_command=PING6).custom()
    assert NetworkCheckConfig(ping6_command="mine %2$s").custom()


def test_one_that_answers_is_enough_and_is_asked_first_the_next_time() -> None:
    silent, well, hangs = Pinger("a"), Pinger("b", ""), Pinger("c", hang=True)
    assert asked(silent, well, hangs, times=3) == ["", "", ""]
    assert [silent.looks, well.looks, hangs.looks] == [1, 3, 1]


def test_where_none_answers_the_reasons_are_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "atalanta.runtime")
    first, second = Pinger("a"), Pinger("b", "status 1")
    assert asked(first, second, times=2) == ["a: silent; b: status 1"] * 2
    lost = [line for line in caplog.messages if line.startswith("network_address_lost")]
    assert sorted(lost) == [
        "network_address_lost address=a why=silent",
        'network_address_lost address=b why="status 1"',
    ], "each is told once, not at each check"
    assert asked() == [""], "nobody to ask: nothing is checked"


def test_a_probe_that_does_not_end_is_no_answer_and_is_not_begun_twice() -> None:
    hangs = Pinger("a", "", hang=True)
    answers = asked(hangs, times=2, timeout_s=0.01)
    assert answers == ["a: no answer within 0.01 s", "a: its earlier check has not ended yet"]
    assert hangs.looks == 1


def test_a_loopback_address_is_left_out_but_not_one_that_becomes_it_later() -> None:
    assert asked(Pinger("a", LOOPBACK)) == [""]
    assert asked(Pinger("a", LOOPBACK), Pinger("b")) == ["b: silent"]

    class Changing(Pinger):
        def check(self) -> str:
            super().check()
            return "silent" if self.looks == 1 else LOOPBACK

    assert asked(Changing("a"), times=2)[1] == f"a: {LOOPBACK}"


def test_an_error_of_a_probe_is_no_answer() -> None:
    class Broken(Pinger):
        def check(self) -> str:
            raise KeyError("bug")

    assert asked(Broken("a")) == ["a: KeyError: 'bug'"]


def script(folder: Path, text: str) -> str:
    path = folder / "pinger"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_the_command_of_the_operator_decides_alone(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = script(tmp_path, f'echo "$@" >{told}; echo no route >&2; exit 2')
    probe = AddressProbe(NOWHERE, NetworkCheckConfig(ping_command=f"{command} %d %s", timeout_ms=2_999))
    assert probe.check() == f"{command} 2 {NOWHERE}: status 2 no route"
    assert told.read_text() == f"2 {NOWHERE}\n"
    script(tmp_path, "exit 0")
    assert probe.check() == ""
    ipv6 = AddressProbe("2001:db8::1", NetworkCheckConfig(ping6_command=f"{command} %2$s"))
    assert ipv6.check() == ""


def test_a_command_that_is_not_there_is_no_answer(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    why = AddressProbe(NOWHERE, NetworkCheckConfig(ping_command=missing)).check()
    assert why == f"{missing} cannot be run: No such file or directory"


def test_a_command_that_hangs_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atalanta.runtime.network_check.probes.PATIENCE_S", 0.05)
    command = script(tmp_path, "sleep 60 & sleep 60")
    probe = AddressProbe(NOWHERE, NetworkCheckConfig(ping_command=command, timeout_ms=100))
    began = time.monotonic()
    assert probe.check() == f"{command}: has not ended within 0.15 s"
    assert time.monotonic() - began < 20
    closed = AddressProbe(NOWHERE, NetworkCheckConfig(ping_command=command, timeout_ms=60_000))
    closed.close()
    assert "status -9" in closed.check()


def test_addresses_without_a_machine_and_names_without_an_address() -> None:
    config = NetworkCheckConfig()
    assert AddressProbe("127.0.0.1", config).check() == LOOPBACK
    assert AddressProbe("no such name", config).check().startswith("no address is known: ")
    assert AddressProbe("." * 300, config).check().startswith("no address is known: ")


def test_with_the_default_command_a_refused_connection_is_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    assert AddressProbe("127.0.0.1", NetworkCheckConfig(), loopback_counts=True).check() == ""
    config = NetworkCheckConfig(interface="nosuch0")
    why = AddressProbe("127.0.0.1", config, loopback_counts=True).check()
    assert why == "port 7: No such device, ping cannot be run: No such file or directory"


@contextmanager
def web_server(status: int) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Location", "/again" if status == 302 else "")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "answers"), [(200, True), (204, True), (404, False), (500, False), (302, False)])
def test_a_url_answers_with_a_status_below_400(status: int, answers: bool) -> None:
    with web_server(status) as url:
        why = UrlProbe(url, 10_000).check()
    assert (why == "") == answers, why
    assert UrlProbe(url, 10_000).check(), "nobody is there any more"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "file:///etc/hosts", "http://a b/", "x"])
def test_a_url_that_cannot_be_asked_does_not_answer(url: str) -> None:
    assert UrlProbe(url, 10_000).check()


def test_a_url_that_says_nothing_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert "timed out" in UrlProbe(f"http://127.0.0.1:{port}/", 50).check()


def test_what_the_configuration_wants_is_asked() -> None:
    async def made(config: NetworkCheckConfig) -> NetworkCheck | None:
        return network_check(asyncio.get_running_loop(), config)

    assert asyncio.run(made(NetworkCheckConfig())) is None
    assert asyncio.run(made(NetworkCheckConfig(addresses=" , "))) is None
    assert asyncio.run(made(NetworkCheckConfig(urls="http://10.0.0.1/"))) is not None
