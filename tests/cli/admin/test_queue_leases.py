"""Leases at the command line: `atalanta queue stat` shows them, `atalanta queue end-lease` ends one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atalanta.client import Fenced, LeaseEnded
from atalanta.client.blocking import connect
from atalanta.client.log.blocking_log_view import LogView
from tests.broker_process import BrokerProcess
from tests.broker_xml import USE, permissions, write_broker_xml, write_users
from tests.cli.calls import Cli, node
from tests.ports import free_port

pytestmark = pytest.mark.process

OWNER = "vm/24456/fc4c6f80"


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with node(tmp_path_factory.mktemp("node")) as found:
        yield found


@pytest.fixture
def view(cli: Cli) -> Iterator[LogView]:
    """The log view of the queue `orders`, which has three messages and no lease."""
    with connect(cli.environment["ATALANTA_URL"]) as connection:
        cli("queue", "create", "orders", "--if-not-exists")
        cli("queue", "purge", "orders", "--yes")
        for text in "abc":
            cli("produce", "orders", "--text", text)
        yield connection.logview("orders")
        if stat(cli)["lease"]:
            cli("queue", "end-lease", "orders", "--yes")


def stat(cli: Cli) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(cli("queue", "stat", "orders", "--json"))
    (row,) = found
    return row


def test_stat_shows_who_has_the_queue(cli: Cli, view: LogView) -> None:
    assert stat(cli)["lease"] is None
    assert "is leased" not in cli("queue", "stat", "orders")
    held = view.lease("spark", OWNER, 300_000)
    with connect(cli.environment["ATALANTA_URL"]) as connection, pytest.raises(Fenced, match="is leased to"):
        connection.consumer("orders").receive(1)
    lease = stat(cli)["lease"]
    assert (lease["group"], lease["owner"], lease["epoch"]) == ("spark", OWNER, held.epoch)
    assert 0 <= lease["ageMs"] < 60_000 and 240_000 < lease["endsInMs"] <= 300_000
    assert (lease["timeoutMs"], lease["refusals"]) == (300_000, 1)
    table = cli("queue", "stat", "orders")
    assert f"orders is leased to group spark of {OWNER} (epoch {held.epoch}) for " in table
    assert "without a renewal it ends in 4 min" in table or "without a renewal it ends in 5 min" in table


def test_a_lease_is_ended_by_command_and_a_consumer_gets_the_messages_once(cli: Cli, view: LogView) -> None:
    held = view.lease("spark", OWNER, 300_000)
    position = view.position()
    view.plan(position.first - 1, 2)  # a batch under way
    said = cli("queue", "end-lease", "orders", "--yes")
    assert said == f"ended the lease of group spark on orders: epoch {held.epoch} of {OWNER}\n"
    assert f"queue orders is leased to group spark of {OWNER}" in cli.errors
    assert "up to 3 messages may be in its current batch" in cli.errors
    for refused in (
        lambda: view.ack_through("spark", held.epoch, position.last),
        lambda: view.lease("spark", OWNER, 300_000, held.epoch),
    ):
        with pytest.raises(LeaseEnded, match="the lease of group spark of queue orders was ended by user "):
            refused()
    assert stat(cli)["lease"] is None
    assert cli("consume", "orders", "--count", "3", "--timeout", "10").split() == ["a", "b", "c"]
    assert stat(cli)["messageCount"] == 0


def test_the_same_reader_goes_on_where_it_was(cli: Cli, view: LogView) -> None:
    view.lease("spark", OWNER, 300_000)
    position = view.position()
    cli("queue", "end-lease", "orders", "--yes")
    again = view.lease("spark", "vm/24999/00000000", 300_000)
    assert again.acked_through == position.acked_through
    assert view.ack_through("spark", again.epoch, position.last) == 3


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("orders", "--yes"), 66, "queue orders has no lease: nothing was done"),
        (("nosuch", "--yes"), 66, "queue nosuch does not exist"),
        (("orders", "--yes", "--url", "tcp://127.0.0.1:1"), 69, "connection refused"),
    ],
)
def test_what_cannot_be_ended(cli: Cli, view: LogView, words: tuple[str, ...], status: int, says: str) -> None:
    cli("queue", "end-lease", *words, status=status)
    assert says in cli.errors and len(cli.errors.splitlines()) == 1


def test_a_lease_is_ended_after_a_yes_only(cli: Cli, view: LogView) -> None:
    held = view.lease("spark", OWNER, 300_000)
    cli("queue", "end-lease", "orders", status=2)
    assert "End the lease of queue orders? --yes is needed without a terminal" in cli.errors
    assert view.lease("spark", OWNER, 300_000, held.epoch).epoch == held.epoch


def test_a_user_without_rights_ends_no_lease(tmp_path: Path) -> None:
    port = free_port()
    more = permissions("ops", [*USE, "manage"]) + (
        '<addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>\n'
    )
    path = write_broker_xml(tmp_path, port, more=more, security=True)
    write_users(path, {"admin": "secret", "guest": "secret"}, {"ops": "admin", "guests": "guest"})
    url = f"tcp://127.0.0.1:{port}"
    cli = Cli(url)
    with BrokerProcess(path), connect(url, user="admin", password="secret") as connection:
        view = connection.logview("orders")
        held = view.lease("spark", OWNER, 300_000)
        cli.environment |= {"ATALANTA_USER": "guest", "ATALANTA_PASSWORD": "secret"}
        cli("queue", "end-lease", "orders", "--yes", status=77)
        assert "guest" in cli.errors
        assert view.lease("spark", OWNER, 300_000, held.epoch).epoch == held.epoch
        cli.environment |= {"ATALANTA_USER": "admin"}
        cli("queue", "end-lease", "orders", "--yes")
        with pytest.raises(LeaseEnded, match="was ended by user admin from 127.0.0.1:"):
            view.lease("spark", OWNER, 300_000, held.epoch)
        cli("queue", "end-lease", "orders", "--yes", status=66)
