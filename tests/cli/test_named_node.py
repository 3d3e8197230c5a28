"""Who names a node gets it: each command talks to the broker of its URL, and to others only if that is its work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.client.options import Server
from atalanta.client.shells.asyncio_shell import AsyncioShell
from tests.broker_process import BrokerProcess
from tests.broker_xml import cluster, write_broker_xml
from tests.cli.calls import Cli
from tests.client.fake_server import FakeServer, ServerThread, meet
from tests.ports import free_port
from tests.wire.core.client.fake_broker import PASSWORD

LOGIN = f"user=u&password={PASSWORD}&callTimeout=300"
# The words behind each command that has --url.
BY_URL = {
    "produce": "q --count 1 --quiet",
    "consume": "q --count 1 --timeout 0.1 --quiet",
    "browse": "q",
    "bench": "q --count 1 --producers 2 --consumers 2 --quiet",
    "data import": "{file} --quiet",
    "queue stat": "",
    "queue create": "more",
    "queue delete": "q --yes",
    "queue purge": "q --yes",
    "queue pause": "q",
    "queue resume": "q",
    "queue move": "q other",
    "queue retry": "q",
    "queue end-lease": "q --yes",
    "address show": "",
    "address create": "more",
    "address delete": "q --yes",
}
# Those that have the node as an argument, and ask the others too.
BY_NODE = {"doctor": "", "topology": "", "rebalance": "--dry-run", "drain": ""}
# Those that ask the nodes of their arguments when a page is looked at (tests/console).
SERVED = ("console",)
# Those that connect to no broker as its client. `ha` talks to members of a group; `pipeline` has the servers of Spark.
OTHERS = {
    *("run", "create", "check", "plan", "rehearse", "convert", "version"),
    *("user add", "user rm", "user reset", "user list"),
    *("data show", "data messages", "data export", "data verify", "data compare"),
    *("ha status", "ha handover", "ha demote", "ha promote", "ha witness"),
    *("pipeline run", "pipeline check", "pipeline compact"),
}


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The commands of the application, with all words of their names."""
    inside = getattr(group, "commands", None)
    if inside is None:
        yield path, group
        return
    for name, each in inside.items():
        yield from commands(each, f"{path} {name}".strip())


def test_no_command_is_forgotten() -> None:
    found = dict(commands(typer.main.get_command(application)))
    assert set(found) == {*BY_URL, *BY_NODE, *SERVED, *OTHERS}
    for name, command in found.items():
        names = {each.name for each in command.params}
        assert bool(names & {"url", "urls"}) == (name in BY_URL), name
        assert bool(names & {"node", "nodes"}) == (name in BY_NODE or name in SERVED), name


@pytest.fixture(scope="module")
def members() -> Iterator[list[FakeServer]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(ServerThread("q")) for _ in range(3)]
        meet(servers)
        yield servers


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """The servers that are dialled, in order."""
    found: list[Server] = []
    dial = AsyncioShell._dial

    async def recorded(shell: AsyncioShell, server: Server) -> object:
        found.append(server)
        return await dial(shell, server)

    monkeypatch.setattr(AsyncioShell, "_dial", recorded)
    return found


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("command", BY_URL)
def test_a_command_goes_to_the_broker_of_its_url(
    command: str, number: int, members: list[FakeServer], dialled: list[Server], tmp_path: Path
) -> None:
    file = tmp_path / "messages.xml"
    file.write_text("<activemq-journal><bindings/><messages/></activemq-journal>")
    words = [*command.split(), *BY_URL[command].format(file=file).split()]
    CliRunner().invoke(application, [*words, "--url", members[number].url(LOGIN)])
    assert set(dialled) == {Server("127.0.0.1", members[number].port)}


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("command", ["produce", "consume", "browse", "queue stat", "queue purge", "bench"])
def test_of_a_list_it_goes_to_the_first_that_is_there(
    command: str, number: int, members: list[FakeServer], dialled: list[Server]
) -> None:
    turned = [*members[number:], *members[:number]]
    servers = "({})".format(",".join(each.url() for each in turned))
    words = [*command.split(), *BY_URL[command].split()]
    CliRunner().invoke(application, [*words, "--url", f"{servers}?{LOGIN}"])
    assert set(dialled) == {Server("127.0.0.1", turned[0].port)}


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("command", BY_NODE)
def test_a_command_for_the_cluster_asks_the_named_node_first(
    command: str, number: int, members: list[FakeServer], dialled: list[Server]
) -> None:
    words = [*command.split(), members[number].url(LOGIN), *BY_NODE[command].split()]
    CliRunner().invoke(application, words)
    assert dialled[0] == Server("127.0.0.1", members[number].port)


def waiting(cli: Cli) -> dict[str, int]:
    """The messages of each queue at the command line's broker."""
    return {each["name"]: each["messageCount"] for each in json.loads(cli("queue", "stat", "--json"))}


@pytest.mark.process
def test_at_each_of_three_real_members(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(3)]
    off = "<message-load-balancing>OFF</message-load-balancing>"
    with ExitStack() as stack:
        for port in ports:
            more = cluster(port, [each for each in ports if each != port], off)
            file = write_broker_xml(tmp_path / str(port), port, f"n{port}", more)
            stack.enter_context(BrokerProcess(file))
        for number, port in enumerate(ports):
            cli = Cli(f"tcp://127.0.0.1:{port}")
            for _ in range(3):
                cli("queue", "create", f"q{number}", "--if-not-exists")
                cli("produce", f"q{number}", "--count", "2", "--quiet")
            assert waiting(cli) == {f"q{number}": 6}
            assert len(cli.rows("browse", f"q{number}")) == 6
            cli("consume", f"q{number}", "--count", "6", "--quiet")
            assert waiting(cli) == {f"q{number}": 0}
