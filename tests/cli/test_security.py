"""The command line as users with and without permissions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.broker_xml import USE, permissions, write_broker_xml
from tests.cli.calls import Cli
from tests.ports import free_port

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    port = free_port()
    rights = permissions("amq,workers", USE, operators="amq")
    xml = write_broker_xml(tmp_path_factory.mktemp("node"), port, more=rights, security=True)
    local = Cli()
    for name, role in (("anna", "amq"), ("bert", "guests"), ("carl", "workers")):
        local("user", "add", name, "--role", role, "--password", "pw", "--etc", str(xml.parent))
    with BrokerProcess(xml):
        yield Cli(f"tcp://127.0.0.1:{port}")


def test_a_user_with_rights_sends_counts_and_consumes(cli: Cli) -> None:
    """No right to delete non-durable queues is needed, although management answers into one."""
    anna = Cli(cli.environment["ATALANTA_URL"])
    anna.environment |= {"ATALANTA_USER": "anna", "ATALANTA_PASSWORD": "pw"}
    anna("produce", "x", "--text", "secret")
    (row,) = json.loads(anna("queue", "stat", "x", "--json"))
    assert row["messageCount"] == 1
    assert anna("consume", "x", "--count", "1") == "secret\n"


def test_an_import_needs_the_right_to_manage(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text('{"message_id":1,"queue":"q","address":"imported","text":"x"}\n')
    cli("data", "import", str(file), "--user", "carl", "--password", "pw", status=77)
    assert "an import needs the permission manage, to name the queues; nothing was sent" in cli.errors
    (done,) = cli.rows("data", "import", str(file), "--user", "anna", "--password", "pw")
    assert done["sent"] == 1
    assert cli("consume", "imported::q", "--count", "1", "--user", "carl", "--password", "pw") == "x\n"


@pytest.mark.parametrize(
    "words",
    [
        ("produce", "x"),
        ("consume", "x"),
        ("browse", "x"),
        ("queue", "stat"),
        ("bench", "--count", "1"),
    ],
)
def test_others_are_told_in_one_line(cli: Cli, words: tuple[str, ...]) -> None:
    anna = ("--user", "anna", "--password", "pw")
    cli("produce", "x", *anna)
    for who in (
        (),
        ("--user", "anna", "--password", "wrong"),
        ("--user", "bert", "--password", "pw"),
    ):
        cli(*words, *who, status=77)
        assert len(cli.errors.splitlines()) == 1
        login = "bert" not in who  # whose password is right, but who has no permission
        for flag in ("--user", "--password", "ATALANTA_USER", "ATALANTA_PASSWORD"):
            assert (flag in cli.errors) == login


PACKAGE = "org.apache.activemq.artemis.spi.core.security.jaas"
LOGIN_CONFIG = f"""
activemq {{ {PACKAGE}.PropertiesLoginModule required; }};
visitors {{
    {PACKAGE}.PropertiesLoginModule sufficient;
    {PACKAGE}.GuestLoginModule sufficient credentialsInvalidate=true org.apache.activemq.jaas.guest.role=amq;
}};
"""


def test_guests_at_a_door_of_their_own(tmp_path: Path) -> None:
    inner, outer = free_port(), free_port()
    xml = write_broker_xml(tmp_path, inner, more=permissions("amq", USE), security=True)
    door = (
        f'<acceptor name="b">tcp://127.0.0.1:{outer}?securityDomain=visitors</acceptor></acceptors>'
    )
    xml.write_text(xml.read_text().replace("</acceptors>", door))
    xml.with_name("login.config").write_text(LOGIN_CONFIG)
    Cli()("user", "add", "anna", "--role", "amq", "--password", "pw", "--etc", str(xml.parent))
    with BrokerProcess(xml):
        inside, outside = Cli(f"tcp://127.0.0.1:{inner}"), Cli(f"tcp://127.0.0.1:{outer}")
        outside("produce", "x", "--text", "from a guest")
        inside("produce", "x", status=77)
        outside("produce", "x", "--user", "anna", "--password", "wrong", status=77)
        anna = ("--user", "anna", "--password", "pw")
        outside("produce", "x", "--text", "from anna", *anna)
        assert inside("consume", "x", "--count", "2", *anna) == "from a guest\nfrom anna\n"
