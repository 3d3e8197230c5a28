"""The commands of a real Artemis distribution's CLI against one node."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.interop.harness.cli import ArtemisCli
from tests.interop.harness.lineup import Lineup

USUAL_TARGET = "atalanta"
pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cli(target: str, brokers: Lineup) -> Iterator[ArtemisCli]:
    node = brokers.single(target)
    node.start()
    yield ArtemisCli(node)
    node.stop()


def columns(table: str, queue: str) -> list[str]:
    """The row of `queue` stat's table."""
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == queue:
            return cells
    raise AssertionError(f"no row of {queue} in\n{table}")


def test_a_queue_from_its_creation_to_its_end(cli: ArtemisCli) -> None:
    created = ["--name", "cli", "--address", "cli", "--anycast", "--durable", "--silent"]
    created += ["--auto-create-address", "--preserve-on-no-consumers"]
    assert "Queue [name=cli, address=cli, routingType=ANYCAST" in cli("queue create", *created)
    assert "Reason: AMQ229019: Queue cli already exists" in cli("queue create", *created)
    to_it = ["--destination", "queue://cli"]
    assert "Produced: 50 messages" in cli("producer", *to_it, "--message-count", "50")
    assert "Consumed: 20 messages" in cli("consumer", *to_it, "--message-count", "20")
    assert "browsed: 5 messages" in cli("browser", *to_it, "--message-count", "5")
    # name, address, consumers, messages, added, delivering, acknowledged, scheduled, type, internal
    row = columns(cli("queue stat"), "cli")
    assert row == ["cli", "cli", "0", "30", "50", "0", "20", "0", "ANYCAST", "false"]
    stat = cli("queue stat", "--queueName", "cli", "--json")
    (queue,) = json.loads(stat[stat.index("{") :])["data"]
    assert queue["messageCount"] == "30" and queue["durable"] == "true"
    assert "purged successfully" in cli("queue purge", "--name", "cli")
    assert columns(cli("queue stat"), "cli")[3] == "0"
    updated = cli("queue update", "--name", "cli", "--anycast", "--max-consumers", "5", "--silent")
    assert "maxConsumers=5" in updated
    assert "deleted successfully" in cli("queue delete", "--name", "cli")
    assert "Queue cli does not exist" in cli("queue delete", "--name", "cli")


def test_an_address(cli: ArtemisCli) -> None:
    made = cli("address create", "--name", "shown", "--anycast", "--multicast", "--silent")
    assert "Address [name=shown, routingTypes={MULTICAST,ANYCAST}" in made
    assert "shown" in cli("address show").splitlines()
    assert "Address [name=shown" in cli("address show", "--name", "shown")
    assert "queue=QueueImpl[name=DLQ" in cli("address show", "--name", "DLQ", "--bindings")
    assert "deleted successfully" in cli("address delete", "--name", "shown")
    assert "shown" not in cli("address show").splitlines()


def test_checks_of_node_and_queue(cli: ArtemisCli) -> None:
    node = cli("check node", "--up", "--memoryUsage", "90", "--diskUsage", "99")
    assert "Checks run: 3, Failures: 0, Errors: 0" in node
    queue = cli(
        "check queue", "--name", "DLQ", "--up", "--produce", "5", "--browse", "5", "--consume", "5"
    )
    assert "Checks run: 4, Failures: 0, Errors: 0" in queue
    assert "Cannot find resource with name queue.none" in cli("check queue", "--name", "none")


def test_users(cli: ArtemisCli) -> None:
    named = ["--user-command-user", "anna"]
    password = ["--user-command-password", "sesam"]
    assert '"admin"(amq)' in cli("user list") and '"anna"' not in cli("user list")
    assert "anna added successfully" in cli("user add", *named, *password, "--role", "amq,view")
    assert "AMQ229223: User anna already exists" in cli("user add", *named, *password, "--role", "x")
    cli.login("anna", "sesam")
    assert '"anna"(amq,view)' in cli("user list")
    reset = ["--user-command-password", "other", "--role", "amq", "--plaintext"]
    assert "anna reset successfully" in cli("user reset", *named, *reset)
    cli.login("anna", "other")
    assert '"anna"(amq)' in cli("user list", *named)
    cli.login("admin", "admin")
    assert "anna removed successfully" in cli("user rm", *named)
    assert "AMQ229224: User anna does not exist" in cli("user rm", *named)
    cli.login("anna", "other")
    assert "AMQ229031" in cli("user list")
    cli.login("admin", "admin")
    hashed = cli.bare("mask", "--hash", "sesam").partition("result: ")[2].strip()
    masked = ["--user-command-password", f"ENC({hashed})", "--plaintext", "--role", "amq"]
    assert "anna added successfully" in cli("user add", *named, *masked)
    cli.login("anna", "sesam")
    assert "anna removed successfully" in cli("user rm", *named)
    cli.login("admin", "admin")


def test_messages_are_transferred(cli: ArtemisCli) -> None:
    cli("producer", "--destination", "queue://from", "--message-count", "12", "--message", "x")
    url = f"tcp://127.0.0.1:{cli.node.port}"
    sides = []
    for side, queue in (("source", "from"), ("target", "to")):
        sides += [f"--{side}-url", url, f"--{side}-queue", queue]
        sides += [f"--{side}-user", "admin", f"--{side}-password", "admin"]
    moved = cli.bare("transfer", *sides, "--receive-timeout", "500", "--commit-interval", "5")
    assert "Transferred a total of 12 messages" in moved
    stat = cli("queue stat")
    assert columns(stat, "from")[3] == "0" and columns(stat, "to")[3] == "12"


def test_perf_client(cli: ArtemisCli) -> None:
    report = cli("perf client", "--duration", "2", "--max-pending", "100", "queue://PERF")
    assert "result:              success" in report
    sent = int(report.split("total sent:")[-1].split()[0])
    received = int(report.split("total received:")[-1].split()[0])
    assert sent > 100 and received > 100
