"""`atalanta create`: what it makes starts, is nobody else's to read, and is refused when it cannot work."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.client import Message, NotAuthorized, connect
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.users.users import read_security
from tests.broker_process import BrokerProcess
from tests.ports import free_port


def create(*words: str, status: int = 0) -> str:
    result = CliRunner().invoke(application, ["create", *words])
    assert result.exit_code == status, result.output
    return result.output


def secret(output: str, what: str) -> str:
    found = re.search(rf"{what}: (\S+)", output)
    assert found is not None, output
    return found.group(1)


@pytest.mark.process
def test_a_created_node_starts_and_lets_in_who_knows_the_password(tmp_path: Path) -> None:
    port = free_port()
    folder = tmp_path / "node"
    output = create(str(folder), "--port", str(port), "--queues", "orders", "--no-autocreate")
    password = secret(output, "password of admin")

    async def main() -> None:
        url = f"tcp://127.0.0.1:{port}"
        async with asyncio.timeout(60):
            async with connect(url, user="admin", password=password) as connection:
                producer = await connection.producer("orders")
                await producer.send(Message(text="x"))
                assert (await connection.query_queue("orders")).message_count == 1
            with pytest.raises(NotAuthorized):
                async with connect(url, user="admin", password="admin"):
                    pass

    with BrokerProcess(folder) as broker:
        asyncio.run(main())
        lines = broker.log().splitlines()
        warned = [x for x in lines if "WARNING" in x and "interpreted_build_slow" not in x]
        assert len(warned) == 1 and "login_refused" in warned[0]
    assert (folder / "data").is_dir()


def test_what_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "node-1"
    output = create(
        *(str(folder), "--clustered", "--host", "broker-1", "--port-offset", "10", "--user", "ops"),
        *("--password", "known", "--role", "bosses", "--addresses", "prices,both:anycast"),
        *("--queues", "a & b,t:multicast", "--cluster-user", "peer"),
    )
    assert "known" not in output
    configuration = read_broker_xml(folder / "etc" / "broker.xml")
    assert configuration.warnings == []
    broker = configuration.broker
    assert broker.name == "node-1"
    assert broker.cluster_user == "peer"
    assert broker.cluster_password == secret(output, "cluster password")
    assert len(broker.cluster_password) >= 20
    assert configuration.connectors["self"].host == "broker-1"
    assert configuration.acceptors[0].port == 61626
    assert configuration.discovery_groups["discover"].group_address == "231.7.7.7"
    assert [address.name for address in broker.addresses] == [
        "DLQ", "ExpiryQueue", "a & b", "t", "prices", "both",
    ]  # fmt: skip
    security = read_security(configuration)
    ops = security.authenticate("ops", "known")
    assert ops is not None and ops.roles == ("bosses",)
    assert security.allowed(ops, "manage", "activemq.management")
    assert "known" not in (folder / "etc" / "artemis-users.properties").read_text()
    for path in (folder / "etc").iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_node_that_is_alone_has_a_cluster_password_of_its_own(tmp_path: Path) -> None:
    passwords = []
    for name in "ab":
        output = create(str(tmp_path / name))
        broker = read_broker_xml(tmp_path / name / "etc" / "broker.xml").broker
        passwords.append(broker.cluster_password)
        assert broker.cluster_user == "cluster" and broker.cluster_password not in output
    assert passwords[0] != passwords[1] and min(map(len, passwords)) >= 20
    create(str(tmp_path / "c"), "--cluster-password", "known", "--cluster-user", "peer")
    broker = read_broker_xml(tmp_path / "c" / "etc" / "broker.xml").broker
    assert (broker.cluster_user, broker.cluster_password) == ("peer", "known")
    checked = CliRunner().invoke(application, ["check", "--strict", str(tmp_path / "a")])
    assert checked.exit_code == 0, checked.output


def test_static_members(tmp_path: Path) -> None:
    members = "tcp://b:1,tcp://c:2?sslEnabled=true;trustStorePath=t.p12"
    create(str(tmp_path / "a"), "--static-cluster", members, "--cluster-password", "s")
    configuration = read_broker_xml(tmp_path / "a" / "etc" / "broker.xml")
    [connection] = configuration.cluster_connections
    assert connection.static_connectors == ["member-1", "member-2"]
    assert configuration.connectors["member-2"].tls is not None


def test_each_has_secrets_of_its_own(tmp_path: Path) -> None:
    seen = [secret(create(str(tmp_path / name)), "password of admin") for name in "ab"]
    assert seen[0] != seen[1]
    texts = [(tmp_path / name / "etc" / "artemis-users.properties").read_text() for name in "ab"]
    assert texts[0] != texts[1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--port", "70000"], "port 70000"),
        (["--port", "1000", "--port-offset", "-1000"], "port 0"),
        (["--user", "a,b"], "no commas"),
        (["--queues", "a:b"], "'a:b' is not of the form name"),
        (["--clustered", "--host", "0.0.0.0"], "cannot be announced"),
        (["--clustered", "--message-load-balancing", "SOME"], "'SOME' is none of"),
        (["--clustered", "--group", "nowhere"], "group"),
        (["--static-cluster", "http://x"], "http"),
        (["--host", "a b"], "no host"),
    ],
)
def test_what_cannot_work_leaves_nothing_behind(
    tmp_path: Path, words: list[str], why: str
) -> None:
    assert why in create(str(tmp_path / "node"), *words, status=2)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    create(str(tmp_path / "node"))
    before = (tmp_path / "node" / "etc" / "broker.xml").read_bytes()
    assert "not empty" in create(str(tmp_path / "node"), status=73)
    assert (tmp_path / "node" / "etc" / "broker.xml").read_bytes() == before
    (tmp_path / "file").write_text("x")
    create(str(tmp_path / "file"), status=73)


def test_the_members_of_a_replicated_group(tmp_path: Path) -> None:
    words = ["--replicated", "--cluster-password", "secret", "--host"]
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    create(a, *words, "host-a", "--static-cluster", "tcp://host-b:61616", "--voters", "w1:1,w2:1,w3:1")
    create(b, *words, "host-b", "--backup", "--static-cluster", "tcp://host-a:61616", "--voters", "w1:1,w2:1,w3:1")
    checked = CliRunner().invoke(application, ["check", "--strict", a, b], env={"COLUMNS": "300"})
    assert checked.exit_code == 0, checked.output
    assert "the manager is a majority of the voters w1:1, w2:1, w3:1" in checked.output
    alone = create(str(tmp_path / "c"), *words, "host-c", "--static-cluster", "tcp://host-d:61616")
    assert "without --voters the guard of the primary decides" in alone


def test_a_pair_with_a_shared_store(tmp_path: Path) -> None:
    words = ["--shared-store", "--data", str(tmp_path / "shared"), "--failover-on-shutdown", "--cluster-password", "s"]
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    create(a, *words, "--host", "host-a", "--static-cluster", "tcp://host-b:61616")
    create(b, *words, "--backup", "--host", "host-b", "--static-cluster", "tcp://host-a:61616")
    checked = CliRunner().invoke(application, ["check", "--strict", a, b], env={"COLUMNS": "300"})
    assert checked.exit_code == 0, checked.output
    assert "it is a backup of" in checked.output
    configuration = read_broker_xml(tmp_path / "b" / "etc" / "broker.xml", {})
    assert configuration.ha.failover_on_shutdown and configuration.ha.role == "backup"
    assert configuration.large_messages_folder == tmp_path / "shared" / "large-messages"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--backup"], "give --replicated or --shared-store, too"),
        (["--replicated", "--shared-store"], "a node has one of them"),
        (["--shared-store", "--data", "/srv/shared"], "give the other one, with --static-cluster"),
        (["--shared-store", "--static-cluster", "tcp://d:1"], "give its path, with --data"),
        (["--failover-on-shutdown"], "is of a shared store"),
        (["--shared-store", "--static-cluster", "tcp://d:1", "--voters", "w:1"], "only a member of a replicated group"),
        (["--replicated"], "give the others, with --static-cluster"),
        (["--replicated", "--static-cluster", "tcp://d:1,tcp://e:1"], "more than two members needs --voters"),
        (["--voters", "w:1"], "only a member of a replicated group has voters"),
        (["--replicated", "--static-cluster", "tcp://d:1", "--voters", "w"], "'w' is not host:port of a voter"),
        (["--replicated", "--static-cluster", "tcp://d:1", "--no-persistence"], "has its messages on disk"),
    ],
)
def test_members_that_could_not_work_are_refused(tmp_path: Path, words: list[str], why: str) -> None:
    assert why in create(str(tmp_path / "x"), "--host", "c", *words, status=2)
    assert not (tmp_path / "x").exists()
