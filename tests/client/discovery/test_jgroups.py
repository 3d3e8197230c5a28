"""`jgroups://channel?file=…`: nodes that were told the same stack file are found, by each protocol."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atalanta.client import connect
from atalanta.client.blocking import connect as connect_blocking
from atalanta.client.options import Server, parse_url
from atalanta.wire.uri import UriError
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.ports import free_port
from tests.waiting import DEADLINE_S

STACKS = {
    "TCPPING": '<TCP bind_addr="127.0.0.1" bind_port="{port}" port_range="3"/>'
    '<TCPPING initial_hosts="127.0.0.1[{port}]" port_range="1"/>',
    "DNS_PING": '<TCP bind_addr="127.0.0.1" bind_port="{port}" port_range="3"/>'
    '<dns.DNS_PING dns_query="127.0.0.1" probe_transport_ports="true"/>',
    "FILE_PING": '<TCP/><FILE_PING location="{folder}"/>',
    "MPING": '<TCP bind_addr="127.0.0.1" bind_port="{port}" port_range="3"/>'
    '<MPING mcast_addr="231.7.7.79" mcast_port="{port}" bind_addr="127.0.0.1"/>',
    "UDP": '<UDP mcast_addr="231.7.7.80" mcast_port="{port}" bind_addr="127.0.0.1"/><PING/>',
}
BROADCAST = """<broadcast-group name="{name}"><jgroups-file>{name}.xml</jgroups-file>
<jgroups-channel>c1</jgroups-channel><broadcast-period>200</broadcast-period>
<connector-ref>own</connector-ref></broadcast-group>"""
GROUPS = """
<connectors><connector name="own">tcp://127.0.0.1:{port}</connector></connectors>
<broadcast-groups>{broadcast}</broadcast-groups>
<discovery-groups><discovery-group name="d"><jgroups-file>TCPPING.xml</jgroups-file>
<jgroups-channel>c1</jgroups-channel></discovery-group></discovery-groups>
<cluster-connections><cluster-connection name="x"><connector-ref>own</connector-ref>
<discovery-group-ref discovery-group-name="d"/></cluster-connection></cluster-connections>
"""
LOGIN = "user=u&password=p"


def write_node(folder: Path, port: int, stacks: dict[str, str]) -> Path:
    broadcast = "".join(BROADCAST.format(name=name) for name in stacks)
    path = write_broker_xml(
        folder, port, folder.name, GROUPS.format(port=port, broadcast=broadcast)
    )
    for name, stack in stacks.items():
        text = f'<config xmlns="urn:org:jgroups">{stack}</config>'
        (path.parent / f"{name}.xml").write_text(text)
    return path


@pytest.mark.process
def test_nodes_and_clients_meet_with_an_unchanged_artemis_configuration(tmp_path: Path) -> None:
    # A node takes the next free port of three behind that of the stack.
    starts = {name: [free_port() for _ in range(4)][0] for name in STACKS}
    stacks = {
        name: stack.format(port=starts[name], folder=tmp_path / "shared")
        for name, stack in STACKS.items()
    }
    (tmp_path / "shared" / "c1").mkdir(parents=True)
    os.mkfifo(tmp_path / "shared" / "c1" / "a-pipe.atalanta")  # nobody is to wait for it
    ports = [free_port(), free_port()]
    files = [write_node(tmp_path / f"n{i}", port, stacks) for i, port in enumerate(ports)]
    servers = [Server("127.0.0.1", port) for port in ports]
    urls = {
        name: f"jgroups://c1?file={files[0].parent / name}.xml&{LOGIN}&initialWaitTimeout=20000"
        for name in stacks
    }
    with BrokerProcess(files[0]) as one, BrokerProcess(files[1]):

        async def main() -> None:
            async with asyncio.timeout(DEADLINE_S), connect(urls["TCPPING"]) as connection:
                while len(connection.topology) < 2:
                    await asyncio.sleep(0.05)

        asyncio.run(main())
        for url in urls.values():
            with connect_blocking(url) as connection:
                assert connection.server in servers
        assert one.log().count("members of JGroups 3.6 to 5.x hear this node") == 5
    for name in ("TCPPING", "DNS_PING"):
        finder = parse_url(urls[name].replace("20000", "300")).finder
        assert finder is not None
        with pytest.raises(OSError, match="no server was discovered in"):
            finder.servers(lambda: False)


def test_a_client_is_told_what_is_wrong_with_the_stack(tmp_path: Path) -> None:
    path = tmp_path / "stack.xml"
    path.write_text("<config>\n<TCP/>\n<KUBE_PING/></config>")
    with pytest.raises(UriError, match=r"stack.xml:3: <KUBE_PING> is not supported for discovery"):
        parse_url(f"jgroups://channel?file={path}")
    with pytest.raises(UriError, match="missing.xml: cannot be read"):
        parse_url(f"jgroups://channel?file={tmp_path / 'missing.xml'}")
    with pytest.raises(UriError, match="names no stack file"):
        parse_url("jgroups://channel")


@contextlib.contextmanager
def member(behave: Callable[[socket.socket], None]) -> Iterator[tuple[int, list[bytes]]]:
    """A host that behaves so to each connection: its port, and what came first."""
    came: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                came.append(connection.recv(1_000))
                behave(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1], came
    server.close()


def found_nothing(folder: Path, port: int, wait_ms: int, more: str = "") -> str:
    """The error of a client whose stack names that port only."""
    path = folder / "stack.xml"
    path.write_text(f'<config><TCP/>\n<TCPPING initial_hosts="127.0.0.1[{port}]" port_range="0"/>{more}</config>')
    finder = parse_url(f"jgroups://channel?file={path}&initialWaitTimeout={wait_ms}").finder
    assert finder is not None
    with pytest.raises(OSError, match="no server was discovered in") as caught:
        finder.servers(lambda: False)
    return str(caught.value)


def test_a_client_says_that_only_members_of_jgroups_answer(tmp_path: Path) -> None:
    kept: list[socket.socket] = []
    with member(kept.append) as (port, came):
        told = found_nothing(tmp_path, port, 3_000)
    assert f"127.0.0.1:{port} is a member of JGroups: over TCP no real member is found by a client" in told
    assert "Use tcp:// with the addresses of the nodes" in told
    assert len(came) == 1 and came[0].startswith(b"bela\x28\xcd"), "one greeting, and nothing behind it"


def test_a_client_that_is_refused_does_not_knock_on(tmp_path: Path) -> None:
    """A member logs each refusal."""
    with member(socket.socket.close) as (port, came):
        told = found_nothing(tmp_path, port, 1_500)
    assert len(came) == 1 and f"127.0.0.1:{port} refuses this client" in told and "jgroupsVersion" in told


def test_a_client_says_that_an_encrypted_stack_has_no_real_nodes_for_it(tmp_path: Path) -> None:
    told = found_nothing(tmp_path, free_port(), 300, "<SYM_ENCRYPT/>")
    assert "no real member of JGroups is found by this stack: <SYM_ENCRYPT> encrypts what its members send" in told
    with pytest.raises(UriError, match=r"option jgroupsVersion: '9' is not a version of JGroups"):
        parse_url(f"jgroups://channel?file={tmp_path / 'stack.xml'}&jgroupsVersion=9")


def test_waiting_for_a_place_where_nobody_is_ends_when_the_client_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "stack.xml"
    path.write_text(f'<config><TCP/><FILE_PING location="{tmp_path}"/></config>')

    async def main() -> None:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await connect(f"jgroups://channel?file={path}&initialWaitTimeout=60000")
        assert time.monotonic() - started < 10

    asyncio.run(main())
