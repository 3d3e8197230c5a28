"""The broker files of releases of ActiveMQ Classic, and what `artemis create` writes: checked, started, one message
through each acceptor."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker_process import BrokerProcess, refused
from tests.cli.calls import Cli
from tests.interop.harness.classic import Classic
from tests.interop.harness.openwire import CLIENTS
from tests.interop.harness.shipped import (
    LOCAL,
    LocalPorts,
    ShippedAcceptor,
    acceptors,
    classic_release,
    create_instances,
)
from tests.interop.harness.shipped_clients import Exchange
from tests.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

ARTEMIS = ("2.44.0", "2.56.0")
OF_CONF = "conf/activemq.xml"
# What starts as it is.
CLASSIC_FILES = (
    OF_CONF,
    *(
        f"examples/conf/activemq{name}.xml"
        for name in (
            "", "-dynamic-network-broker1", "-dynamic-network-broker2", "-jdbc", "-jdbc-performance", "-mqtt",
            "-scalability", "-specjms", "-static-network-broker1", "-static-network-broker2", "-stomp", "-throughput",
        )
    ),
)  # fmt: skip
DEMO = "examples/conf/activemq-demo.xml"
DATABASES = "examples/conf/activemq-jdbc.xml"
ENCRYPTED = "examples/conf/activemq-security.xml"
NETWORKS = ("static", "dynamic")

USER = ("--user", "admin", "--password", "admin")
PEERS = "--cluster-user peer --cluster-password secret --host 127.0.0.1"
CLUSTERED = f"--require-login --clustered {PEERS}"
FORMS = {
    "require-login": "--require-login",
    "allow-anonymous": "--allow-anonymous",
    "clustered": CLUSTERED,
    "off-with-redistribution": f"{CLUSTERED} --message-load-balancing OFF_WITH_REDISTRIBUTION",
    "static-cluster": f"--require-login --static-cluster tcp://127.0.0.1:61700 {PEERS} --max-hops 2"
    " --message-load-balancing STRICT",
    "replicated": f"{CLUSTERED} --replicated",
    "replicated-failover-on-shutdown": f"{CLUSTERED} --replicated --failover-on-shutdown",
    "shared-store": f"{CLUSTERED} --shared-store",
    "shared-store-failover-on-shutdown": f"{CLUSTERED} --shared-store --failover-on-shutdown",
    "shared-store-without-cluster": f"--require-login --shared-store {PEERS}",
    "aio": "--require-login --aio --journal-max-io 100 --journal-device-block-size 4096",
    "nio": "--require-login --nio --no-fsync",
    "mapped": "--require-login --mapped",
    "jdbc": "--require-login --jdbc",
    "jdbc-shared-store": f"{CLUSTERED} --jdbc --shared-store --jdbc-connection-url jdbc:postgresql://db/x"
    " --jdbc-driver-class-name org.postgresql.Driver",
    "disable-persistence": "--require-login --disable-persistence",
    "paging": "--require-login --paging --purge-page-folders --global-max-size 100M --global-max-messages 10000",
    "blocking": "--require-login --blocking",
    "journal-retention": "--require-login --journal-retention 7 --journal-retention-max-bytes 1G",
    "no-acceptors": "--require-login --no-amqp-acceptor --no-mqtt-acceptor --no-stomp-acceptor --no-hornetq-acceptor",
    "queues": "--require-login --queues orders,news:multicast --addresses prices,jobs:anycast",
    "no-autocreate": "--require-login --no-autocreate --queues orders",
    "autodelete": "--require-login --autocreate --autodelete",
    "security-manager-basic": "--require-login --security-manager basic",
    "names": "--require-login --name shop --role shopkeepers --encoding UTF-8 --java-memory 1G --data store --etc conf",
    "ports": "--require-login --port-offset 7 --default-port 61650",
    "web": "--require-login --http-host 0.0.0.0 --http-port 8200 --relax-jolokia --ssl-key /nosuch/key.p12"
    " --ssl-key-password x --ssl-trust /nosuch/trust.p12 --ssl-trust-password y --use-client-auth",
    "no-web": "--require-login --no-web",
    "ping": "--require-login --ping 127.0.0.1",
    "support-advisory": "--require-login --support-advisory --suppress-internal-management-objects",
}
# What is named by a warning, besides the protocols of all acceptors.
NAMED = {
    "jdbc": "without effect: store (messages are kept in the journal's files, not in that database",
    "jdbc-shared-store": "the pair of <shared-store> has no database in common, <store> is not used",
    "journal-retention": "without effect: journal-retention-directory (what was consumed is not kept",
    "replicated": "without effect: ha-policy (no manager says who is active, so this node serves alone",
    "replicated-failover-on-shutdown": "without effect: ha-policy (no manager says who is active, so this node serves",
    "allow-anonymous": "GuestLoginModule also accepts clients with a wrong password, as user 'admin'",
    "ping": "network-check-list: '127.0.0.1' is left out: a loopback address always answers",
}
# Two files of a pair each; they get one folder for the store.
PAIRS = {"kill": "--shared-store", "stop": "--shared-store --failover-on-shutdown"}
BACKUPS = {
    "backup": "--replicated --backup",
    "backup-failover-on-shutdown": "--replicated --backup --failover-on-shutdown",
}


@pytest.fixture(scope="module")
def jvms() -> Iterator[dict[str, Classic]]:
    """The JVMs with Classic's clients, by version."""
    found: dict[str, Classic] = {}
    yield found
    for jvm in found.values():
        jvm.__exit__(None, None, None)


def jvm_of(jvms: dict[str, Classic], version: str) -> Classic:
    if version not in jvms:
        jvms[version] = Classic(version)
    return jvms[version]


@pytest.fixture
def distribution(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution of Classic with the folders of its files, as its start script names them to the broker."""
    shutil.copytree(classic_release(version), tmp_path / "activemq")
    home = tmp_path / "activemq"
    for name, folder in (("HOME", home), ("BASE", home), ("CONF", home / "conf"), ("DATA", home / "data")):
        monkeypatch.setenv(f"ACTIVEMQ_{name}", str(folder))
    return home


def localised(path: Path, ports: LocalPorts | None = None) -> list[ShippedAcceptor]:
    """Gives a file free ports. Returns its acceptors."""
    text = (ports or LocalPorts()).local(path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    return acceptors(text)


def findings(path: Path, *options: str, status: int = 0) -> list[dict[str, Any]]:
    """What `atalanta check` says of a file."""
    (answer,) = Cli().rows("check", str(path), *options, status=status)
    found: list[dict[str, Any]] = answer["findings"]
    return found


def texts(path: Path, level: str, *options: str, status: int = 0) -> str:
    found = findings(path, *options, status=status)
    return "\n".join(f"{each['text']} ({each['hint']})" for each in found if each["level"] == level)


def opened(broker: BrokerProcess) -> dict[str, int]:
    """The acceptors of the line that says that it is ready."""
    return {name: int(port) for name, port in re.findall(rf"(\S+)={LOCAL}:(\d+)", broker.ready_line)}


def refusal(path: Path, why: str) -> str:
    """The errors of a file that neither `check` nor `run` takes."""
    error = texts(path, "error", status=1)
    assert why in error
    with refused(path) as broker:
        assert broker.wait() == 78
        assert why in broker.log() and "Traceback" not in broker.log()
    return error


def keytool(error: str) -> list[str]:
    """The command that an error ends with."""
    return shlex.split(error[error.index("keytool ") :].partition(" ()")[0])


def keytool_run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def walk(exchange: Exchange, broker: BrokerProcess, found: list[ShippedAcceptor], warnings: str) -> None:
    """One message through each acceptor; those without a protocol that is served are closed, and named."""
    served = [each for each in found if each.served]
    assert sorted(opened(broker).values()) == sorted(each.port for each in served)
    for acceptor in served:
        exchange.through(acceptor)
    for acceptor in found:
        others = [each for each in acceptor.protocols if each not in acceptor.served]
        if not acceptor.served:
            with socket.socket() as client:
                assert client.connect_ex((LOCAL, acceptor.port)) != 0
            named = f"acceptor {acceptor.name}", f"not opened: {others[0]} not supported yet"
        elif others:
            named = f"acceptor {acceptor.name}: {', '.join(others)}", "protocols that are not supported yet"
        else:
            continue
        assert f"without effect: {named[0]} ({named[1]})" in warnings
        assert f"{named[0]}: {named[1]}" in broker.log()
    assert "Traceback" not in broker.log()
    assert broker.end(signal.SIGTERM) == 0, broker.log()


@pytest.mark.parametrize("file", CLASSIC_FILES)
@pytest.mark.parametrize("version", CLIENTS)
def test_a_file_of_classic_serves(version: str, file: str, distribution: Path, jvms: dict[str, Classic]) -> None:
    path = distribution / file
    found = localised(path)
    warnings = texts(path, "warning")
    with BrokerProcess(path) as broker:
        walk(Exchange(jvm_of(jvms, version)), broker, found, warnings)


@pytest.mark.parametrize("version", CLIENTS)
def test_no_file_of_classic_is_left_out(version: str) -> None:
    release = classic_release(version)
    brokers = [path for path in release.rglob("*.xml") if "<broker " in path.read_text(encoding="utf-8")]
    assert sorted(str(path.relative_to(release)) for path in brokers) == sorted((*CLASSIC_FILES, DEMO, ENCRYPTED))


@pytest.mark.parametrize("version", CLIENTS)
def test_the_demo_of_classic_serves_with_tls_when_it_has_another_key(
    version: str, distribution: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key store is JKS, and its key too short. Each error has the command that helps."""
    path = distribution / DEMO
    found = localised(path)
    convert = keytool(refusal(path, "is a Java key store (JKS)"))
    stores = {each: convert[convert.index(each) + 1] for each in ("-srckeystore", "-destkeystore")}
    keytool_run([*convert, "-srcstorepass", "password", "-deststorepass", "password", "-noprompt"])
    change(path, "broker.ks", Path(stores["-destkeystore"]).name)
    key = keytool(refusal(path, "its key is too short for TLS"))
    made = distribution / "conf" / key[-1]
    keytool_run([*key[:-1], str(made), "-dname", "CN=localhost", "-storepass", "password", "-validity", "3000"])
    change(path, Path(stores["-destkeystore"]).name, made.name)
    warnings = texts(path, "warning")
    trust = f"-Djavax.net.ssl.trustStore={made} -Djavax.net.ssl.trustStorePassword=password"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", trust)
    with BrokerProcess(path) as broker, Classic(version) as jvm:
        walk(Exchange(jvm), broker, found, warnings)


@pytest.mark.parametrize("version", CLIENTS)
def test_encrypted_passwords_of_classic_are_refused_until_the_environment_has_them(
    version: str, distribution: Path, jvms: dict[str, Classic], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = distribution / ENCRYPTED
    found = localised(path)
    error = refusal(path, "password of <authenticationUser> is encrypted (Jasypt), and the key is not in the file")
    assert "write it as ${NAME} and set that environment variable" in error
    monkeypatch.setenv("ACTIVEMQ_PASSWORD", "first")
    monkeypatch.setenv("GUEST_PASSWORD", "second")
    warnings = texts(path, "warning")
    with BrokerProcess(path) as broker:
        Exchange(jvm_of(jvms, version), "user", "second", "USERS.walk").through(found[0])
        walk(Exchange(jvm_of(jvms, version), "system", "first"), broker, found, warnings)


@pytest.mark.parametrize("database", ["postgres-ds", "mysql-ds", "oracle-ds"])
@pytest.mark.parametrize("version", CLIENTS)
def test_the_databases_that_a_file_of_classic_offers_in_its_comments_are_refused(
    version: str, database: str, distribution: Path
) -> None:
    """Others may have them, too. Who says that there are none is served."""
    path = distribution / DATABASES
    change(path, "#derby-ds", f"#{database}")
    path.write_text(re.sub(r"<!--(\s*<bean.*?)-->", r"\1", path.read_text(encoding="utf-8"), flags=re.DOTALL))
    localised(path)
    error = refusal(path, "jdbcPersistenceAdapter dataSource: it says that there are other brokers")
    assert "for brokers with one directory that they all reach, write the same <kahaDB directory=" in error
    assert f"if there are no others: start it with `atalanta run --alone {path}`" in error
    with BrokerProcess(path, "--alone") as broker:
        assert "without effect: jdbcPersistenceAdapter dataSource" in texts(path, "warning", "--alone")
        assert broker.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("version", CLIENTS)
def test_two_brokers_of_classic_are_a_network(
    version: str, kind: str, distribution: Path, jvms: dict[str, Classic]
) -> None:
    ports = LocalPorts()
    paths = [distribution / f"examples/conf/activemq-{kind}-network-broker{number}.xml" for number in (1, 2)]
    near, far = (localised(path, ports)[0] for path in paths)
    jvm = jvm_of(jvms, version)
    with BrokerProcess(paths[0]) as first, BrokerProcess(paths[1]) as second:
        consumer = jvm.consumer(f"tcp://{LOCAL}:{far.port}", "queue:walk")
        jvm.send(f"tcp://{LOCAL}:{near.port}", "queue:walk", range(1, 2))
        assert jvm.receive(consumer, 1, 20_000) == ["1"], first.log() + second.log()
        jvm.close_all()


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What `artemis create` of each version has written: a folder for each form. They are made at the first use."""
    found = {}
    for version in ARTEMIS:
        folder = tmp_path_factory.mktemp(version)
        commands = {name: f"{words} --verbose" for name, words in FORMS.items()}
        for name, words in PAIRS.items():
            shared = f"{CLUSTERED} {words} --data {folder / name / 'data'}"
            commands |= {f"{name}/primary": shared, f"{name}/backup": f"{shared} --backup"}
        commands |= {name: f"{CLUSTERED} {words}" for name, words in BACKUPS.items()}
        commands |= {f"members/{name}": CLUSTERED for name in ("first", "second")}
        usual = ("--silent", "--no-autotune", *USER)
        lines = [[str(folder / name), *usual, *words.split()] for name, words in commands.items()]
        create_instances(version, lines, folder)
        found[version] = folder
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", ARTEMIS)
def test_what_artemis_create_writes_serves(
    version: str, form: str, instances: dict[str, Path], jvms: dict[str, Classic]
) -> None:
    folder = instances[version] / form
    (path,) = folder.glob("*/broker.xml")
    found = localised(path)
    assert len(found) == (1 if form == "no-acceptors" else 5)
    warnings = texts(path, "warning")
    assert NAMED.get(form, "") in warnings
    exchange = Exchange(jvm_of(jvms, CLIENTS[0]), "admin", "admin", "orders")
    with BrokerProcess(path) as broker:
        if form == "allow-anonymous":
            Exchange(exchange.classic).through(found[0])
        else:
            assert not Exchange(exchange.classic, "admin", "wrong").logs_in(found[0].port)
            assert exchange.may_manage(found[0].port)
        walk(exchange, broker, found, warnings)


@pytest.mark.parametrize("ending", PAIRS)
@pytest.mark.parametrize("version", ARTEMIS)
def test_a_pair_with_a_shared_store_as_created(
    version: str, ending: str, instances: dict[str, Path], jvms: dict[str, Classic]
) -> None:
    paths = [instances[version] / ending / name / "etc" / "broker.xml" for name in ("primary", "backup")]
    found = [localised(path) for path in paths]
    assert not [each for path in paths for each in findings(path) if each["level"] == "error"]
    exchange = Exchange(jvm_of(jvms, CLIENTS[0]), "admin", "admin")
    with BrokerProcess(paths[0]) as primary, BrokerProcess(paths[1]) as backup:
        primary.until_role("active")
        assert backup.role() == "passive"
        exchange.through(found[0][0])
        primary.end(signal.SIGKILL if ending == "kill" else signal.SIGTERM)
        backup.until_role("active")
        exchange.through(found[1][0])


@pytest.mark.parametrize("version", ARTEMIS)
def test_two_members_of_a_cluster_as_created(
    version: str, instances: dict[str, Path], jvms: dict[str, Classic]
) -> None:
    ports = [LocalPorts(), LocalPorts()]
    ports[1].share(ports[0], "group")
    paths = [instances[version] / "members" / name / "etc" / "broker.xml" for name in ("first", "second")]
    (near, *_), (far, *_) = (localised(path, each) for path, each in zip(paths, ports, strict=True))
    exchange = Exchange(jvm_of(jvms, CLIENTS[0]), "admin", "admin")
    with BrokerProcess(paths[0]), BrokerProcess(paths[1]):
        until(lambda: exchange.members(near.port) == exchange.members(far.port) == 2, "the members do not meet")
        assert exchange.crossing(near.port, far.port, 1) == "1"


@pytest.mark.parametrize("form", BACKUPS)
@pytest.mark.parametrize("version", ARTEMIS)
def test_a_backup_by_replication_as_created_is_refused(version: str, form: str, instances: dict[str, Path]) -> None:
    path = instances[version] / form / "etc" / "broker.xml"
    localised(path)
    error = refusal(path, "this file describes a backup by replication, and no manager says who is active")
    assert "start `atalanta ha witness` and name it in atalanta.toml" in error
