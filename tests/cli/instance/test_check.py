"""`atalanta check`: what each file and all of them together are told, and the exit status."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.cli.instance import check
from atalanta.cli.instance.check import port_taken
from atalanta.runtime.disk.folder_lock import lock_folder
from tests.certificates import Authority
from tests.cli.instance.check_rig import call, static, told, write


def test_two_good_nodes_have_nothing_to_be_told(tmp_path: Path) -> None:
    a, b = write(tmp_path, "a"), write(tmp_path, "b")
    found = call(a, b, strict=True)
    assert told(found, "error") == told(found, "warning") == []
    folder = CliRunner().invoke(application, ["check", str(tmp_path / "a"), str(b)])
    assert folder.exit_code == 0 and "errors: 0" in folder.output


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"password": "else"}, "its cluster-password is not that of"),
        ({"user": "else"}, "its cluster-user is not that of"),
        ({"group": "231.7.7.8"}, "announces itself to 231.7.7.7:9876"),
        ({"group": "231.7.7.8"}, "these nodes never meet"),
        ({"listens": "231.7.7.8"}, "'dg' listens to 231.7.7.8:9876"),
        ({"group": "10.0.0.1"}, "10.0.0.1 is not a multicast address"),
        ({"group": "224.0.0.0"}, "224.0.0.0 is reserved, and never a group"),
        ({"group": "ff02::77", "local": "127.0.0.1"}, "127.0.0.1 is not an address of an interface for"),
        ({"host": "0.0.0.0"}, "connector 'self' has the host 0.0.0.0"),
        ({"host": "127.0.0.1"}, "announces 127.0.0.1, which host-a cannot reach"),
        ({"host": "host-a"}, "has port 61616, as acceptor 'artemis'"),
        ({"members": static(), "group": "231.7.7.8"}, "never meet"),
        ({"acceptor": "?sslEnabled=true"}, "keyStorePath: an acceptor"),
        ({"connector": "?sslEnabled=true"}, "connector 'self' has sslEnabled, acceptor 'artemis'"),
        ({"more": "<frobnicate/>"}, "unknown element <frobnicate>"),
    ],
)
def test_errors(tmp_path: Path, other: dict[str, str], text: str) -> None:
    a, b = write(tmp_path, "a"), write(tmp_path, "b", **other)
    found = call(a, b, status=1)
    assert any(text in each for each in told(found, "error")), found


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"delay": "5"}, "address-setting '#': redistribution_delay_ms is 5, that of"),
        ({"routing": "multicast"}, "address 'orders' has other routing types"),
        ({"mode": "STRICT"}, "message-load-balancing is STRICT, that of"),
        ({"cluster": "d"}, "name is d, that of"),
        ({"more": "<security-enabled>false</security-enabled>"}, "security-enabled is false"),
        ({"local": "172.16.9.3"}, "this host does not have the address 172.16.9.3 of local-bind-address"),
        ({"listen": "10.1.1.1"}, "no acceptor of this node listens on host-b:61616"),
        ({"name": "a"}, "its name 'a' is that of"),
    ],
)
def test_warnings(tmp_path: Path, other: dict[str, str], text: str) -> None:
    a = write(tmp_path / "1", "a")
    b = write(tmp_path / "2", other.pop("name", "b"), **({"host": "host-b"} | other))
    found = call(a, b)
    assert any(text in each for each in told(found, "warning")), found
    call(a, b, status=1, strict=True)


RIGHTS = """<security-settings><security-setting match="s"><permission type="send" roles="amq"/></security-setting>
<security-setting match="s"><permission type="send" roles="other"/></security-setting></security-settings>"""


@pytest.mark.parametrize(
    ("more", "files", "text"),
    [
        (RIGHTS, {}, "security-setting s (it is there twice: that of line"),
        ("", {"artemis-users.properties": "u = one\nu = two\n"}, "user 'u' is there twice"),
        ("", {"artemis-roles.properties": "amq = u\namq = v\n"}, "role 'amq' is there twice"),
    ],
)
def test_rights_and_users_that_are_there_twice_fail_a_strict_check(
    tmp_path: Path, more: str, files: dict[str, str], text: str
) -> None:
    path = write(tmp_path, "a", more=more)
    for name, content in {"artemis-users.properties": "u = one\nv = two\n", **files}.items():
        (path.parent / name).write_text(content)
    assert any(text in each for each in told(call(path), "warning"))
    call(path, status=1, strict=True)


def test_static_connectors_that_lead_nowhere(tmp_path: Path) -> None:
    def connectors(port: int, host: str = "host-b") -> str:
        return f'<connector name="other">tcp://{host}:{port}</connector>'

    b = write(tmp_path, "b", members=static())
    for name, port in (("good", 61616), ("bad", 61617)):
        a = write(tmp_path, name, connectors=connectors(port), members=static("other"))
        errors = told(call(a, b, status=int(name == "bad")), "error")
        if name == "bad":
            assert any("leads to host-b:61617, where none" in each for each in errors)
            assert any("never meet" in each for each in errors)
    far = write(tmp_path, "far", connectors=connectors(1, "elsewhere"), members=static("other"))
    warnings = told(call(far, b, status=1), "warning")
    assert any("leads to elsewhere:1" in each for each in warnings)
    # Alone, nobody can say.
    assert told(call(far), "error") == []


def test_nodes_find_each_other_over_others(tmp_path: Path) -> None:
    def to(name: str) -> dict[str, str]:
        connector = f'<connector name="other">tcp://host-{name}:61616</connector>'
        return {"connectors": connector, "members": static("other")}

    paths = [
        write(tmp_path, "a", listen="host-a", **to("b")),
        write(tmp_path, "b", listen="host-b", members=static()),
        write(tmp_path, "c", listen="host-c", **to("b")),
    ]
    assert told(call(*paths), "error") == []
    lonely = write(tmp_path, "d", listen="host-d", members=static())
    [error] = told(call(*paths, lonely, status=1), "error")
    assert error.endswith(f"| {lonely}")


def test_nodes_behind_one_name_of_the_dns_meet(tmp_path: Path) -> None:
    paths = [write(tmp_path, name, members="<static-connectors/>") for name in "abc"]
    assert "never meet" in " ".join(told(call(*paths, status=1), "error"))
    for path, names in zip(paths, ("tcp://one", "tcp://one,srv://two", "srv://two"), strict=True):
        (path.parent / "atalanta.toml").write_text(f'dns-discovery = "{names}"')
    assert told(call(*paths), "error") == []


def test_nodes_that_meet_at_a_jgroups_stack(tmp_path: Path) -> None:
    stack = "<config><TCP/><TCPPING initial_hosts='host-a[7800]'/></config>"
    udp = "<group-address>231.7.7.7</group-address>\n<group-port>9876</group-port>"
    paths = [write(tmp_path, name) for name in "ab"]
    for path, channel in zip(paths, "cc", strict=True):
        jgroups = f"<jgroups-file>s.xml</jgroups-file><jgroups-channel>{channel}</jgroups-channel>"
        (path.parent / "s.xml").write_text(stack)
        path.write_text(path.read_text().replace(udp, jgroups))
    assert told(call(*paths), "error") == []
    paths[1].write_text(paths[1].read_text().replace(">c<", ">other<"))
    assert "TCPPING, hosts host-a:7800, channel c" in " ".join(told(call(*paths, status=1), "error"))


def test_one_machine_one_port_one_folder_one_id(tmp_path: Path) -> None:
    same = {"listen": "127.0.0.1", "host": "127.0.0.1"}
    a, b = write(tmp_path, "a", **same), write(tmp_path, "b", **same)
    assert any("has port 61616" in each for each in told(call(a, b, status=1), "error"))
    other = a.with_name("other.xml")
    other.write_text(a.read_text().replace("<name>a<", "<name>o<").replace(":61616", ":61617"))
    assert any("its journal folder" in each for each in told(call(a, other, status=1), "error"))
    for path in (a, b):
        folder = path.parent.parent / "data" / "journal"
        folder.mkdir(parents=True)
        (folder / "node-id").write_text("d35e70b8-e5c5-11f1-a11c-296b2cb2aaaa\n")
    assert any("has the node id of" in each for each in told(call(a, b, status=1), "error"))


def test_users_of_a_cluster(tmp_path: Path) -> None:
    a, b = write(tmp_path, "a"), write(tmp_path, "b")
    (b.parent / "artemis-users.properties").write_text("admin = x\nanna = y\n")
    (b.parent / "artemis-roles.properties").write_text("amq = anna\nops = admin\n")
    warnings = told(call(a, b), "warning")
    assert any("user 'anna' is known here, unlike in" in each for each in warnings)
    assert any("user 'admin' has other roles" in each for each in warnings)


def test_places_are_named(tmp_path: Path) -> None:
    a = write(tmp_path, "a", host="0.0.0.0")
    [error] = [each for each in call(a, status=1) if each["level"] == "error"]
    assert (error["file"], error["line"]) == (str(a), 5)
    missing = call(tmp_path / "none.xml", status=66)
    assert missing[0]["file"] == str(tmp_path / "none.xml")


def test_tls_that_works_is_no_finding(tmp_path: Path) -> None:
    tls = "?sslEnabled=true;keyStorePath=a.pem"
    trust = "?sslEnabled=true;trustStorePath=authority-trust.pem"
    a = write(tmp_path, "a", acceptor=tls, connector=trust)
    authority = Authority()
    authority.holder("a", "host-a").key_pem(a.parent)
    authority.trust_pem(a.parent)
    assert told(call(a, strict=True), "error") == []


def test_what_stands_in_files_is_no_markup(tmp_path: Path) -> None:
    a = write(tmp_path, "a", more="<frob>[bold]x[/]</frob>", cluster="[red]c")
    result = CliRunner().invoke(application, ["check", str(a)])
    assert result.exit_code == 1 and "frob" in result.output


def test_a_pipe_on_the_command_line_is_read_but_not_one_that_is_included(tmp_path: Path) -> None:
    text = write(tmp_path, "a").read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for data, status in ((text, 0), (b"<x", 1)):
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        found = call(pipe, status=status)
        writer.join()
        assert bool(told(found, "error")) == bool(status)
    include = b'<core><xi:include href="pipe" xmlns:xi="http://www.w3.org/2001/XInclude"/></core>'
    outer = tmp_path / "outer.xml"
    outer.write_bytes(b"<configuration>" + include + b"</configuration>")
    assert "is a named pipe" in told(call(outer, status=1), "error")[0]


def test_stdin_is_read_for_a_dash(tmp_path: Path) -> None:
    text = write(tmp_path, "a").read_bytes()
    command = [sys.executable, "-m", "atalanta", "check", "--json", "-"]
    for data, status in ((text, 0), (text[:-20], 1)):
        done = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=False)
        assert done.returncode == status, done.stdout
        assert json.loads(done.stdout)["files"] == 1


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ("<ha-policy><replication><primary/></replication></ha-policy>", "ha-policy"),
        ("<broker-connections><AMQP-connection/></broker-connections>", "broker-connections"),
        ("<federations><federation name='f'/></federations>", "federations"),
        ("<broker-plugins><broker-plugin class-name='x.Y'/></broker-plugins>", "broker-plugin x.Y"),
    ],
)
def test_a_service_that_is_lost_is_a_warning(tmp_path: Path, more: str, name: str) -> None:
    a = write(tmp_path, "a", more=more)
    [warning] = [each for each in call(a) if each["level"] == "warning"]
    assert warning["text"].startswith(f"without effect: {name} (") and warning["line"] > 0
    call(a, status=1, strict=True)


def test_acceptors_that_will_not_open_are_warnings(tmp_path: Path) -> None:
    a = write(tmp_path, "a", acceptor="?protocols=CORE,AMQP")
    extra = '<acceptor name="mqtt">tcp://0.0.0.0:1883?protocols=MQTT</acceptor></acceptors>'
    a.write_text(a.read_text().replace("</acceptors>", extra))
    partly, closed = told(call(a), "warning")
    assert "acceptor artemis: AMQP" in partly
    assert "acceptor mqtt (not opened: MQTT not supported yet)" in closed
    call(a, status=1, strict=True)


def test_an_acceptor_with_a_lock_is_an_error(tmp_path: Path) -> None:
    a = write(tmp_path, "a")
    extra = '<acceptor name="other" lock-coordinator="lock">tcp://0.0.0.0:61617</acceptor></acceptors>'
    a.write_text(a.read_text().replace("</acceptors>", extra))
    [error] = told(call(a, status=1), "error")
    assert "acceptor 'other': it names a lock-coordinator" in error


def test_harmless_options_are_one_line(tmp_path: Path) -> None:
    more = "<journal-type>NIO</journal-type><thread-pool-max-size>9</thread-pool-max-size>"
    found = call(write(tmp_path, "a", more=more + "<jmx-domain>x</jmx-domain>"), strict=True)
    [line] = told(found, "info")
    assert line.startswith("3 harmless options")
    assert all(name in line for name in ("journal-type", "thread-pool-max-size", "jmx-domain"))


def test_a_permission_for_a_role_that_nobody_has(tmp_path: Path) -> None:
    permissions = '<permission type="send" roles="{}"/><permission type="consume" roles="amq"/>'
    more = (
        '<security-settings>{}<security-setting match="#">'
        f"{permissions}</security-setting></security-settings>"
    )
    a = write(tmp_path, "a", more=more.format("", "amqp, amq"))
    [warning] = [each for each in call(a) if each["level"] == "warning"]
    assert warning["text"] == "permissions for role 'amqp', which no user has"
    assert warning["hint"] == "did you mean 'amq'?" and warning["line"] > 0
    call(a, status=1, strict=True)
    mapped = '<role-mapping from="amq" to="amqp"/>'
    assert told(call(write(tmp_path, "b", more=more.format(mapped, "amqp"))), "warning") == []
    login = (
        "activemq { org.apache.activemq.artemis.spi.core.security.jaas.GuestLoginModule sufficient"
        ' credentialsInvalidate=true org.apache.activemq.jaas.guest.role="amqp"; '
        "org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required; };"
    )
    (a.parent / "login.config").write_text(login)
    assert told(call(a), "warning") == []
    off = "<security-enabled>false</security-enabled>"
    [only] = told(call(write(tmp_path, "c", more=off + more.format("", "amqp"))), "warning")
    assert "security-enabled is false" in only


def test_a_port_that_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "port_taken", port_taken)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        same = {"listen": "127.0.0.1", "host": "127.0.0.1", "port": str(port)}
        a = write(tmp_path, "a", **same)
        [warning] = told(call(a), "warning")
        assert warning == f"acceptor 'artemis' would not open: another process has port {port}"
        call(a, status=1, strict=True)
        journal = a.parent.parent / "data" / "journal"
        journal.mkdir(parents=True)
        lock = lock_folder(journal)  # the node itself runs
        try:
            assert told(call(a), "warning") == []
        finally:
            lock.close()
    assert told(call(a), "warning") == []
    assert not port_taken("192.0.2.1", port) and not port_taken("no.such.host", port)
