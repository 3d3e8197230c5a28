"""A pair with a shared store whose primary is killed, or stands still, at a planned call of the fixed load."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import signal
from pathlib import Path

from atalanta.client import ClientError
from tests.app.group import Group
from tests.app.pair import Pair
from tests.broker_xml import ORDERS, SMALL_SEGMENTS
from tests.stress.faults import POWER, Plan
from tests.stress.killed_node import PATIENCE_S, Points
from tests.stress.node_process import Launcher, NodeProcess
from tests.stress.power import PowerDisk
from tests.stress.workload import BUGS, Workload, core_elements
from tests.waiting import until


class StressedPair:
    """A primary with faults, its backup, and the load on the primary."""

    def __init__(
        self, launcher: Launcher, folder: Path, lease_ms: int = 500, store: Path | None = None
    ) -> None:
        self.load = Workload()
        own = lease_toml(lease_ms)
        pair = Pair(folder, backup="<allow-failback>false</allow-failback>", own=own)
        self.store = pair.store if store is None else store
        self.store.mkdir(parents=True, exist_ok=True)
        for each in (pair.primary, pair.backup):
            put_load(each.broker_xml)
            each.broker_xml.write_text(each.broker_xml.read_text().replace(str(pair.store), str(self.store)))
        self.primary = NodeProcess(launcher, pair.primary.broker_xml, self.store)
        self.backup = NodeProcess(launcher, pair.backup.broker_xml, self.store)
        self.urls = [f"tcp://127.0.0.1:{each.port}" for each in (pair.primary, pair.backup)]

    def start(self, plan: Plan, backup: Plan | None = None) -> None:
        """Starts the primary, which serves, and the backup, which waits."""
        self.primary.start(plan)
        assert self.primary.until_printed("role=active"), self.log()
        self.backup.start(backup)
        assert self.backup.until_printed("role=passive"), self.log()

    def restart(self) -> None:
        """Starts both again after a power loss; one of them serves."""
        self.primary.start()
        self.backup.start()
        until(lambda: sorted(self._roles()) == ["active", "passive"], self.log)

    async def play(self) -> None:
        """Plays the load at the primary, to its end or to that of the connection."""
        async with asyncio.timeout(PATIENCE_S + 120):
            with contextlib.suppress(ClientError):
                await self.load.play(self.urls[0])

    def killed(self) -> None:
        """Plays the load until the primary dies, and waits until the backup serves."""
        asyncio.run(self.play())
        if not self.primary.ended():
            self.primary.send_signal(signal.SIGKILL)
        self.primary.wait()
        assert self.backup.until_printed("role=active"), self.log()

    def paused(self, pause_s: float, taken_over: bool = True) -> None:
        """Plays the load until the primary stands still, and wakes it after a time, which may be too late for it.

        The client waits meanwhile: whatever the late primary confirms is in the book. `taken_over`: the pause goes on
        until the backup serves.
        """

        async def main() -> None:
            playing = asyncio.create_task(self.play())
            while not playing.done() and not stands(self.primary.pid):
                await asyncio.sleep(0.005)
            self.primary.send_signal(signal.SIGSTOP)
            await asyncio.sleep(pause_s)
            if taken_over:
                assert await asyncio.to_thread(self.backup.until_printed, "role=active"), self.log()
            self.primary.send_signal(signal.SIGCONT)
            await playing
            if not taken_over:
                await asyncio.sleep(1)  # a takeover may have begun

        asyncio.run(main())

    def check(self) -> None:
        """Asks the process that serves now: everything confirmed is there, once. Then both end in good order."""
        until(lambda: self._roles().count("active") == 1, self.log)
        number = self._roles().index("active")
        both = [self.primary, self.backup]
        asyncio.run(self.asked(self.urls[number]))
        for each in (both[1 - number], both[number]):
            if each.pid:
                assert each.end(signal.SIGTERM) == 0, self.log()
        log = self.log()
        assert [word for word in BUGS if word in log] == [], log

    def _roles(self) -> list[str]:
        """Returns the roles of both; "" for one that has ended."""
        found = []
        for each in (self.primary, self.backup):
            told = re.findall(r"role=(\w+)", each.words()) if each.pid else []
            found.append(told[-1] if told else "")
        return found

    async def asked(self, url: str) -> None:
        """Checks what a process has. AssertionError names what is wrong."""
        async with asyncio.timeout(PATIENCE_S):
            await self.load.check(url)

    def log(self) -> str:
        """Returns the logs of both."""
        return f"primary:\n{self.primary.log()}\nbackup:\n{self.backup.log()}"

    def close(self) -> None:
        """Kills what still runs."""
        self.primary.close()
        self.backup.close()


class ReplicatedPair(StressedPair):
    """The same with a replicated group: each process has a store of its own, those of `on_store` below `store`.

    `own` are further lines of `[ha]`.
    """

    on_store: tuple[str, ...] = ("primary", "backup1")

    def __init__(
        self, launcher: Launcher, folder: Path, lease_ms: int = 500, store: Path | None = None, guard: bool = False,
        own: str = "",
    ) -> None:
        self.load = Workload()
        folder.mkdir(parents=True, exist_ok=True)
        group = Group(folder, own=lease_toml(lease_ms) + own)
        processes = []
        for each in group.members:
            put_load(each.broker_xml)
            data = each.data
            if store is not None and each.instance.name in self.on_store:
                data = store / each.instance.name
                data.mkdir(parents=True)
                each.broker_xml.write_text(each.broker_xml.read_text().replace(">data/", f">{data}/"))
            processes.append(NodeProcess(launcher, each.broker_xml, data, *([] if guard else ["--no-guard"])))
        self.primary, self.backup = processes
        self.store = self.primary.folder
        self.urls = [f"tcp://127.0.0.1:{each.port}" for each in group.members]

    def start(self, plan: Plan, backup: Plan | None = None) -> None:
        """Starts both, and waits until the backup is in sync."""
        super().start(plan, backup)
        until(lambda: "replica_in_sync" in self.primary.log(), self.log)


class PoweredPrimary(ReplicatedPair):
    """The same, and only the primary is on the disk whose power is cut."""

    on_store = ("primary",)

    def returned(self) -> None:
        """Starts the primary again, lets it catch up, and kills the backup: the primary serves what it has got."""
        self.primary.start()
        until(lambda: "replica_in_sync" in self.backup.log(), self.log)
        self.backup.end(signal.SIGKILL)
        assert self.primary.until_printed("role=active"), self.log()


def lease_toml(lease_ms: int) -> str:
    """Returns the lines of atalanta.toml for a lease."""
    return f"[ha]\nlease_ms = {lease_ms}\n"


def put_load(broker_xml: Path) -> None:
    """Puts the queues and limits of the load into the broker.xml of a pair or group."""
    text = broker_xml.read_text()
    assert SMALL_SEGMENTS in text and ORDERS in text
    broker_xml.write_text(text.replace(SMALL_SEGMENTS, "").replace(ORDERS, core_elements()))


def stands(process: int) -> bool:
    """Returns whether a process stands still after a SIGSTOP."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True
    return text.rpartition(") ")[2].startswith("T")


class Pairs:
    """Pairs one after the other, each with files of its own; `disk` is for their stores."""

    def __init__(
        self, launcher: Launcher, folder: Path, lease_ms: int = 500, disk: PowerDisk | None = None,
        kind: type[StressedPair] = StressedPair,
    ) -> None:
        self._kind = kind
        self._disk = disk
        self._launcher = launcher
        self._folder = folder
        self._lease_ms = lease_ms
        self._count = 0
        self.begin, self.calls = self._measure()

    def next(self) -> StressedPair:
        """Returns a new pair."""
        shutil.rmtree(self._folder / f"{self._count}", ignore_errors=True)
        self._count += 1
        store = None
        if self._disk is not None:
            self._disk.empty()
            store = self._disk.folder / f"{self._count}"
        return self._kind(self._launcher, self._folder / f"{self._count}", self._lease_ms, store)

    def _measure(self) -> tuple[int, int]:
        """Returns the number of calls before a load, and that of the load; not of its last part, since they vary."""
        pair = self.next()
        try:
            pair.start(Plan())
            begin = pair.primary.calls()[0]
            pair.killed()
            assert pair.load.finished
            end = pair.primary.calls()[0]
            pair.check()
        finally:
            pair.close()
        return begin, (end - begin) * 19 // 20

    def kill(self, plan: Plan, points: Points) -> None:
        """Kills the primary of a new pair at a call of the load."""
        pair = self.next()
        try:
            pair.start(Plan(self.begin + 8 + plan.at, plan.action))
            pair.killed()
            self._checked(pair, plan, points)
        finally:
            pair.close()

    def kill_both(self, plan: Plan, backup: Plan, points: Points) -> None:
        """Kills the primary of a new pair at a call of the load, and the backup at a call of its takeover."""
        pair = self.next()
        try:
            pair.start(Plan(self.begin + 8 + plan.at, plan.action), backup)
            asyncio.run(pair.play())
            pair.primary.send_signal(signal.SIGKILL)
            pair.primary.wait()
            pair.backup.until_printed("role=active")
            pair.backup.send_signal(signal.SIGKILL)
            pair.backup.wait()
            count, call = pair.backup.calls()
            points.note(count >= backup.at, call)
            pair.restart()
            pair.check()
        except AssertionError as error:
            raise AssertionError(f"{plan}, {backup}, {pair.backup.calls()}: {error}\n{pair.log()}") from None
        finally:
            pair.close()

    def pause(self, plan: Plan, points: Points, pause_s: float = 0.0, taken_over: bool = True) -> None:
        """Stops the primary of a new pair at a call of the load, at least for `pause_s`."""
        pair = self.next()
        try:
            pair.start(Plan(self.begin + 8 + plan.at, plan.action))
            pair.paused(pause_s, taken_over)
            self._checked(pair, plan, points)
            late = pair.primary.words().splitlines()[-1]
            assert "role=passive" in late or not taken_over, f"{late}\n{pair.log()}"
        finally:
            pair.close()

    def lose_power(self, plan: Plan, points: Points) -> None:
        """Cuts the power of the store, and of the processes on it, at a call of the load; then they start again."""
        assert self._disk is not None
        pair = self.next()
        try:
            pair.start(Plan(self.begin + 8 + plan.at, POWER))
            asyncio.run(pair.play())
            for each in (pair.primary, pair.backup)[: 1 if isinstance(pair, PoweredPrimary) else 2]:
                each.send_signal(signal.SIGKILL)
                each.wait()
            self._disk.power_cycle()
            call = pair.primary.calls()
            if isinstance(pair, PoweredPrimary):
                assert pair.backup.until_printed("role=active"), pair.log()
                pair.returned()
            else:
                pair.restart()
            points.note(call[0] >= self.begin + 8 + plan.at, call[1])
            pair.check()
        except AssertionError as error:
            raise AssertionError(f"{plan}: {error}\n{pair.log()}") from None
        finally:
            pair.close()

    def _checked(self, pair: StressedPair, plan: Plan, points: Points) -> None:
        count, call = pair.primary.calls()
        points.note(count >= self.begin + 8 + plan.at, call)
        try:
            pair.check()
        except AssertionError as error:
            raise AssertionError(f"{plan}, {call}: {error}\n{pair.log()}") from None
