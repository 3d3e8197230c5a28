"""Members of a replicated group that find each other by a discovery group, as real processes."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.app.group import LEASE, Group, Member
from tests.app.load import Load, loaded
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.process

UDP = """<local-bind-address>127.0.0.1</local-bind-address><group-address>231.7.7.81</group-address>
      <group-port>{port}</group-port>"""
JGROUPS = "<jgroups-file>stack.xml</jgroups-file><jgroups-channel>c</jgroups-channel>"
STACK = """<config xmlns="urn:org:jgroups"><TCP bind_addr="127.0.0.1" bind_port="{own}" port_range="0"/>
<TCPPING initial_hosts="{hosts}" port_range="0"/></config>"""


def node_id(member: Member) -> str:
    """Returns the node id of the group that a member knows."""
    return (member.data / "journal" / "node-id").read_text()


def test_members_hear_who_is_active(tmp_path: Path) -> None:
    """A new primary, too: with an empty disk, and while the group is active elsewhere."""

    async def main(group: Group, load: Load) -> None:
        primary, first, second = group.members
        await load.past(20)
        primary.end(signal.SIGKILL)
        await load.past(20)
        until(lambda: "active" in (first.role(), second.role()), first.log)
        active, other = (first, second) if first.role() == "active" else (second, first)
        await asyncio.to_thread(active.until_logged, "replica_in_sync")
        shutil.rmtree(primary.data)
        primary.start()
        await asyncio.to_thread(primary.until_role, "passive")
        until(lambda: active.log().count("replica_in_sync") >= 2, active.log)
        assert node_id(primary) == node_id(active)
        await load.past(20)
        other.end(signal.SIGKILL)
        active.until_logged("replica_removed")
        active.end(signal.SIGKILL)
        await load.past(20)

    async def run(group: Group) -> None:
        async with loaded(group.url) as load:
            await main(group, load)

    with Group(tmp_path, backups=2, own=LEASE, channel=UDP.format(port=free_port())) as group:
        group.start()
        until(lambda: group.primary.log().count("replica_in_sync") == 2, group.primary.log)
        asyncio.run(run(group))


def test_members_find_each_other_by_the_hosts_of_a_jgroups_stack(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(20)
            group.primary.end(signal.SIGKILL)
            await load.past(20)
            group.primary.start()
            await asyncio.to_thread(group.backup.until_logged, "replica_in_sync")
            group.backup.end(signal.SIGKILL)
            await load.past(20)

    with Group(tmp_path, own=LEASE, channel=JGROUPS) as group:
        ports = [free_port(), free_port()]
        hosts = ",".join(f"127.0.0.1[{port}]" for port in ports)
        for member, port in zip(group.members, ports, strict=True):
            (member.broker_xml.parent / "stack.xml").write_text(STACK.format(own=port, hosts=hosts))
        group.start()
        asyncio.run(main(group))


def test_members_of_another_group_are_not_followed(tmp_path: Path) -> None:
    """Two groups in one discovery group: each backup, with an empty disk, finds its own primary."""
    channel = UDP.format(port=free_port())
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    named = [f"<group-name>{folder.name}</group-name>" for folder in folders]
    with (
        Group(folders[0], policy=named[0], backup_policy=named[0], own=LEASE, channel=channel) as one,
        Group(folders[1], policy=named[1], backup_policy=named[1], own=LEASE, channel=channel) as two,
    ):
        one.start()
        two.start()
        assert node_id(one.primary) == node_id(one.backup) != node_id(two.primary) == node_id(two.backup)
        assert not re.search("member_active", one.backup.log() + two.backup.log())
