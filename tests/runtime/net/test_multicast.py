"""UDP groups on the loopback interface (facts A1.d)."""

from __future__ import annotations

import asyncio
import logging

import pytest

from atalanta.runtime.net.limits import Limits
from atalanta.runtime.net.multicast import Group, sending_socket
from atalanta.runtime.process.event_loop import run
from tests.ports import free_port
from tests.runtime.net.echo import Running, with_echo
from tests.runtime.net.ipv6_address import SIX, ZONE

GROUP = "231.7.7.77"
LOCAL = "127.0.0.1"


ipv6 = pytest.mark.skipif(not SIX, reason="this machine has no IPv6 address")
# Groups of the scope ff01 never leave the machine.
GROUPS = [
    pytest.param(GROUP, LOCAL, id="ipv4"),
    pytest.param("ff01::77:77", SIX, id="address", marks=ipv6),
    pytest.param("[ff01::77:77]", f"[{SIX}]", id="brackets", marks=ipv6),
    pytest.param(f"ff01::77:77{ZONE}", "", id="zone", marks=ipv6),
]


@pytest.mark.parametrize(("group", "local"), GROUPS)
@pytest.mark.parametrize("plain", [False, True], ids=["uvloop", "asyncio"])
def test_datagrams_reach_every_member_until_it_leaves(
    plain: bool, group: str, local: str
) -> None:
    async def use(running: Running) -> None:
        port = free_port()
        links = running.shell.links
        node = running.node
        links.join("first", group, port, local, -1)
        links.join("second", group, port, local, -1)

        async def until_received(group: str, data: bytes) -> None:
            # UDP may lose a datagram even here; broadcast groups repeat themselves too.
            async with asyncio.timeout(10):
                while ("datagram", group, data) not in node.log:
                    links.multicast("first", data)
                    await asyncio.sleep(0.02)

        await until_received("second", b"node id and connectors")
        assert ("datagram", "first", b"node id and connectors") in node.log
        links.leave("second")
        await until_received("first", b"after it left")
        assert ("datagram", "second", b"after it left") not in node.log

    run(with_echo(use), plain)


def test_a_group_that_cannot_be_joined_is_told_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def use(running: Running) -> None:
        running.shell.links.join("discovery", LOCAL, free_port(), LOCAL, -1)
        running.shell.links.multicast("discovery", b"lost")
        await running.until(lambda: running.shell.trace.counters["multicast.failed"] >= 3)

    with caplog.at_level(logging.WARNING):
        run(with_echo(use, Limits(join_retry_s=0.01)))
    assert caplog.text.count("multicast_join_failed group=discovery") == 1, "and told once"
    assert [each.levelname for each in caplog.records if "multicast_join_failed" in each.getMessage()] == ["ERROR"]
    assert f"cannot join the group {LOCAL}" in caplog.text


def test_the_sender_is_bound_to_local_bind_address_and_port() -> None:
    port = free_port()
    with sending_socket(Group("b", GROUP, 9876, LOCAL, port)) as sender:
        assert sender.getsockname() == (LOCAL, port)
    with sending_socket(Group("b", GROUP, 9876, LOCAL, -1)) as sender:
        assert 3000 <= sender.getsockname()[1] < 4000
    with sending_socket(Group("b", GROUP, 9876, "", -1)) as sender:
        assert sender.getsockname()[1] == 0, "bound by the first datagram"


@ipv6
def test_the_sender_to_an_ipv6_group_is_bound_likewise() -> None:
    port = free_port()
    with sending_socket(Group("b", "ff01::77", 9876, SIX, port)) as sender:
        assert sender.getsockname()[:2] == (SIX, port)
    with sending_socket(Group("b", "ff01::77", 9876, f"[{SIX}]", -1)) as sender:
        assert 3000 <= sender.getsockname()[1] < 4000
    with pytest.raises(OSError, match="no interface has the address fd00::dead"):
        sending_socket(Group("b", "ff01::77", 9876, "fd00::dead", -1))


def test_who_joins_to_send_receives_nothing() -> None:
    async def use(running: Running) -> None:
        port = free_port()
        links, node = running.shell.links, running.node
        links.join_to_send("mouth", GROUP, port, LOCAL, -1)
        links.join("ear", GROUP, port, LOCAL, -1)
        async with asyncio.timeout(10):
            while not node.words("datagram"):
                links.multicast("mouth", b"said")
                await asyncio.sleep(0.02)
        assert {words[1] for words in node.words("datagram")} == {"ear"}

    run(with_echo(use))

