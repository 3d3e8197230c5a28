"""A replicated group of two whose backup has a slow disk while the load is played, until the primary is lost."""

from __future__ import annotations

import asyncio
import re
import signal

from tests.stress.faults import SLOW, Plan
from tests.stress.killed_pair import Pairs, ReplicatedPair
from tests.waiting import until

# A call of the backup behind those of its start: from here on it is slow.
SLOW_CALL = 100
WAITS = "replica_waits why="


class SlowBackup:
    """One such group. `slow_s`: what each write of the backup takes; `unregistered`: a planted fault of the primary."""

    def __init__(self, groups: Pairs, slow_s: float, unregistered: bool = False) -> None:
        pair = groups.next()
        assert isinstance(pair, ReplicatedPair)
        self.pair = pair
        self._plan = Plan(groups.begin + 8 + groups.calls * 3 // 4, unregistered=unregistered)
        self._slow = Plan(SLOW_CALL, SLOW, slow_s=slow_s)

    def removed(self) -> bool:
        """Returns whether the register had the backup no more, as the primary has last told."""
        told = re.findall(r"replica_(in_sync|removed) ", self.pair.primary.log())
        return bool(told) and told[-1] == "removed"

    def lose_primary(self, both: bool) -> None:
        """Plays the load until the primary is killed at its call. `both`: the backup is killed as well, and only it
        comes back. Its disk is fast then.
        """
        pair = self.pair
        pair.start(self._plan, self._slow)
        asyncio.run(pair.play())
        pair.primary.end(signal.SIGKILL)
        assert pair.backup.hangs(), "the backup was never slow"
        if both:
            pair.backup.end(signal.SIGKILL)
            pair.backup.start()
        else:
            pair.backup.hang_no_more()

    def serves_alone(self) -> bool:
        """Waits until the backup serves, or says for whom it waits. Returns whether it serves."""
        backup = self.pair.backup
        until(lambda: "role=active" in backup.words() or WAITS in backup.log(), self.pair.log)
        return "role=active" in backup.words()

    def lost(self) -> str:
        """Returns what the backup, which serves, has lost; "" for nothing."""
        try:
            asyncio.run(self.pair.asked(self.pair.urls[1]))
        except AssertionError as error:
            return str(error)
        return ""

    def check(self) -> None:
        """Checks that whoever serves has everything; the primary comes back if the backup may not serve."""
        try:
            alone = self.serves_alone()
            assert alone != self.removed(), "it serves if it is in the register, and only then"
            if not alone:
                self.pair.primary.start()
                assert self.pair.primary.until_printed("role=active"), "the primary does not serve"
            self.pair.check()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.pair.log()}") from None
