"""A replicated group of `atalanta run` processes, for tests: a primary and backups, each with its own folders."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from atalanta.runtime.ha.group.member_status import read_status
from tests.broker_process import BrokerProcess, BrokerProcesses
from tests.broker_xml import ORDERS, RETRIES, SMALL_SEGMENTS, cluster, write_broker_xml
from tests.ports import free_port
from tests.runtime.ha.guard.guarded_process import alive
from tests.waiting import DEADLINE_S, until

# Longer than a loaded machine lets a broker wait for its turn: with 500 ms the backup serves before a test begins.
LEASE = "[ha]\nlease_ms = 2000\n"
POLICY = """<ha-policy><replication><{role}>
      {policy}
      <manager>
        <class-name>org.apache.activemq.artemis.lockmanager.file.FileBasedLockManager</class-name>
        <properties><property key="locks-folder" value="{locks}"/></properties>
      </manager>
    </{role}></replication></ha-policy>
    """


class Member(BrokerProcess):
    """One member of the group, in a folder of its own: `process`, which was started, its guard, and the broker."""

    @property
    def broker(self) -> int:
        """The process id of the broker; that of the only process without a guard."""
        return self._guarded()[0]

    @property
    def guard(self) -> int:
        """The process id of the guard; that of the only process without one."""
        return self._guarded()[1]

    def _guarded(self) -> tuple[int, int]:
        found = re.findall(r"guard_started pid=(\d+) guard=(\d+) started=(\d+)", self.log())
        if not found or int(found[-1][2]) != self.process.pid:
            return self.process.pid, self.process.pid
        return int(found[-1][0]), int(found[-1][1])

    def end(self, number: signal.Signals) -> int:
        """Ends what was started. The guard ends the broker: a little later, if what was started was killed."""
        broker = self.broker
        status = super().end(number)
        until(lambda: not alive(broker), f"process {broker} outlives its guard")
        return status

    def kill_broker(self) -> None:
        """Kills the broker; its guard ends as well."""
        os.kill(self.broker, signal.SIGKILL)
        self.wait()

    def kill_all(self) -> None:
        """Kills every process of this member, as the loss of its host does: nobody is left who proves anything."""
        voters = re.findall(r"voter_started .* pid=(\d+)", self.log())
        for process in (*map(int, voters[-1:]), self.guard, self.broker):
            with suppress(ProcessLookupError):  # the broker ends with its guard
                os.kill(process, signal.SIGKILL)
        super().end(signal.SIGKILL)

    def until_followed(self, other: Member) -> None:
        """Waits until it serves, and the other member follows it in sync, which would serve after its end."""
        seen: list[int] = []

        def followed() -> bool:
            own, theirs = read_status(self.data / "journal"), read_status(other.data / "journal")
            if own is None or theirs is None or (theirs.state, theirs.active) != ("passive", own.member):
                return False
            synced = any(each.in_sync for each in own.followers if each.member == theirs.member)
            if own.state != "active" or own.epoch != theirs.epoch or not synced:
                seen.clear()
            elif own.beat not in seen:
                seen.append(own.beat)
            return len(seen) > 2  # the first ones may be older than the other's connection

        until(followed, lambda: f"{self.log()}\n{other.log()}")


class Group(BrokerProcesses[Member]):
    """`with Group(tmp_path) as group:` ends all processes. `policy` and `backup_policy` are elements of the roles.

    `far`: the last member is asynchronous. `channel`: of a broadcast and a discovery group, by which the members find
    each other instead of static connectors. The other members of a cluster of groups have `foreign` ports.
    """

    def __init__(
        self, folder: Path, backups: int = 1, policy: str = "", backup_policy: str = "", own: str = "", more: str = "",
        arguments: tuple[str, ...] = (), far: bool = False, channel: str = "", ports: Sequence[int] = (),
        foreign: Sequence[int] = (),
    ) -> None:
        self.far = far
        self.locks = folder / "locks"
        self.locks.mkdir()
        ports = ports or [free_port() for _ in range(1 + backups)]
        self.members: list[Member] = []
        for at, port in enumerate(ports):
            name = f"backup{at}" if at else "primary"
            others = [*(each for each in ports if each != port), *foreign]
            form = SMALL_SEGMENTS + cluster(port, others, RETRIES if foreign else "", channel)
            form += POLICY.format(
                role="backup" if at else "primary",
                policy=backup_policy if at else policy,
                locks=self.locks,
            )
            text = (own or "[ha]\n") + "asynchronous = true\n" if far and at == backups else own
            xml = write_broker_xml(folder / name, port, name, form + ORDERS + more, own=text)
            self.members.append(Member(xml, *arguments, port=port))
        super().__init__(self.members)
        self.primary, self.backup = self.members[0], self.members[1]

    def start(self) -> None:
        """Starts the primary, then the backups, and waits until all are in sync."""
        self.primary.start()
        self.primary.until_role("active")
        for each in self.members[1:]:
            each.start()
        for each in self.members[1:]:
            each.until_role("passive")
        self.primary.until_logged("replica_connected" if self.far and len(self.members) == 2 else "replica_in_sync")


async def has_role(member: Member, role: str) -> None:
    """Waits until the member has the role."""
    await asyncio.to_thread(member.until_role, role)


def command(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs `atalanta ha`."""
    line = [sys.executable, "-m", "atalanta", "ha", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S)


async def in_sync(member: Member, count: int) -> None:
    """Waits until a follower of `member` was in sync `count` times."""
    await asyncio.to_thread(until, lambda: member.log().count("replica_in_sync") >= count, member.log)
