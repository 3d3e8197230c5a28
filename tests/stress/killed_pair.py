"""A pair with a shared store whose primary is killed, or stands still, at a planned call of the fixed load."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from pathlib import Path

from atalanta.client import ClientError
from tests.app.pair import Pair
from tests.stress.faults import Plan
from tests.stress.killed_node import PATIENCE_S
from tests.stress.node_process import Launcher, NodeProcess
from tests.stress.workload import LOSSES, Workload, core_elements
from tests.waiting import until


class StressedPair:
    """A primary with faults, its backup, and the load on the primary."""

    def __init__(self, launcher: Launcher, folder: Path, lease_ms: int = 500) -> None:
        own = f"[ha]\nlease_ms = {lease_ms}\n"
        pair = Pair(folder, backup="<allow-failback>false</allow-failback>", own=own)
        for each in (pair.primary, pair.backup):
            text = each.broker_xml.read_text()
            inner = re.sub(r"<(paging|large-messages)-directory>.*\n", "", core_elements(pair.store))
            text = re.sub(r"<journal-(file|compact).*\n", "", text)
            each.broker_xml.write_text(re.sub(r"<addresses>.*</addresses>", inner, text, flags=re.DOTALL))
        self.store = pair.store
        self.primary = NodeProcess(launcher, pair.primary.broker_xml, pair.store)
        self.backup = NodeProcess(launcher, pair.backup.broker_xml, pair.store)
        self.urls = [f"tcp://127.0.0.1:{each.port}" for each in (pair.primary, pair.backup)]
        self.load = Workload()

    def start(self, plan: Plan) -> None:
        """Starts the primary, which serves, and the backup, which waits."""
        self.primary.start(plan)
        assert self.primary.until_printed("role=active"), self.log()
        self.backup.start()
        assert self.backup.until_printed("role=passive"), self.log()

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
        assert [word for word in LOSSES if word in log] == [], log

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


def stands(process: int) -> bool:
    """Tells whether a process stands still after a SIGSTOP."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True
    return text.rpartition(") ")[2].startswith("T")


