"""`atalanta queue` and `atalanta address` against a node of ours, one for all tests here."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from atalanta.survey.node.queue_rows import is_internal
from tests.cli.calls import Cli, node

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with node(tmp_path_factory.mktemp("node")) as found:
        yield found


def stat(cli: Cli, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(cli("queue", "stat", name, "--json"))
    (row,) = found
    return row


def test_create_count_and_delete(cli: Cli) -> None:
    words = ("--address", "flights", "--multicast", "--filter", "delay > 60")
    assert cli("queue", "create", "late", *words) == "created late on address flights\n"
    cli("queue", "create", "late", *words, status=1)
    assert "already exists" in cli.errors
    cli("queue", "create", "late", *words, "--if-not-exists")
    for delay in (10, 61, 62):
        cli("produce", "topic://flights", "-p", f"delay={delay}")
    row = stat(cli, "late")
    assert (row["messageCount"], row["messagesAdded"], row["filter"]) == (2, 2, "delay > 60")
    assert (row["routingType"], row["durable"], row["paused"]) == ("MULTICAST", True, False)
    table = cli("queue", "stat")
    assert "flights" in table and "MULTICAST" in table and "atalanta.management" not in table
    cli("queue", "delete", "late", "--yes")
    assert json.loads(cli("queue", "stat", "late", "--json")) == []


def test_what_is_the_brokers_own_is_shown_if_asked_for() -> None:
    peer = "notif.a16c5bc4-e611-11f1-bfb4-23b75bcdba6a.ActiveMQServerImpl_name=b"
    assert is_internal({"name": peer, "internalQueue": False})
    assert is_internal({"name": "$.artemis.internal.sf.c.id", "internalQueue": True})
    assert not is_internal({"name": "notif.orders", "internalQueue": False})


def test_purge_and_move_by_selector(cli: Cli) -> None:
    cli("queue", "create", "target")
    for n in range(6):
        cli("produce", "source", "-p", f"n={n}")
    moved = cli("queue", "move", "source", "target", "--selector", "n < 2")
    assert moved == "moved 2 messages from source to target\n"
    assert cli("queue", "move", "source", "target", "--count", "1").startswith("moved 1 ")
    assert cli("queue", "purge", "source", "--yes", "--selector", "n = 5").startswith("removed 1 ")
    assert cli("queue", "purge", "source", "--yes") == "removed 2 messages from source\n"
    assert stat(cli, "target")["messageCount"] == 3


def test_pause_holds_messages_back(cli: Cli) -> None:
    cli("produce", "held", "--text", "x")
    assert cli("queue", "pause", "held") == "paused held\n"
    assert stat(cli, "held")["paused"] is True
    assert cli("consume", "held", "--timeout", "0.2") == ""
    cli("queue", "resume", "held")
    assert cli("consume", "held", "--count", "1", "--timeout", "10") == "x\n"


def test_addresses(cli: Cli) -> None:
    cli("address", "create", "news", "--anycast", "--multicast")
    (row,) = json.loads(cli("address", "show", "news", "--json"))
    assert (row["routingTypes"], row["queueCount"]) == ("ANYCAST, MULTICAST", 0)
    assert "news" in cli("address", "show")
    cli("queue", "create", "reader", "--address", "news", "--multicast")
    cli("address", "delete", "news", status=1)
    cli("address", "delete", "news", "--force", "--yes")
    assert json.loads(cli("address", "show", "news", "--json")) == []


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("queue", "purge", "nosuch", "--yes"), 66, "queue nosuch does not exist"),
        (("queue", "delete", "nosuch", "-y"), 66, "nosuch"),
        (("queue", "move", "other", "nosuch"), 66, "nosuch"),
        (("address", "delete", "nosuch"), 66, "nosuch"),
        (("queue", "create", "q", "--set", "x"), 2, "--set x"),
        (("queue", "create", "q", "--filter", "a >"), 1, "a >"),
        (("queue", "stat", "--url", "tcp://127.0.0.1:1"), 69, "connection refused"),
    ],
)
def test_errors_are_one_line(cli: Cli, words: tuple[str, ...], status: int, says: str) -> None:
    cli("queue", "create", "other", "--if-not-exists")
    cli(*words, status=status)
    assert says in cli.errors and len(cli.errors.splitlines()) == 1


@pytest.mark.parametrize(
    "words", [("queue", "purge", "precious"), ("queue", "delete", "precious"),
              ("address", "delete", "precious", "--force")],
)  # fmt: skip
def test_messages_are_removed_after_a_yes_only(cli: Cli, words: tuple[str, ...]) -> None:
    cli("produce", "precious", "--count", "2")
    cli(*words, status=2)
    assert "precious" in cli.errors and "--yes" in cli.errors
    assert stat(cli, "precious")["messageCount"] == 2
    for answer, left, status in (("n", 2, 1), ("y", 0, 0)):
        main, other = pty.openpty()
        try:
            os.write(main, f"{answer}\n".encode())
            command = [sys.executable, "-m", "atalanta", *words]
            environment = {**os.environ, **cli.environment}
            done = subprocess.run(
                command, stdin=other, capture_output=True, env=environment, check=False
            )
        finally:
            os.close(main)
            os.close(other)
        assert done.returncode == status, done.stderr
        rows = json.loads(cli("queue", "stat", "precious", "--json"))
        assert sum(row["messageCount"] for row in rows) == left
