"""The end of a turn: outputs first, then a short commit, then at once what that commit released."""

from __future__ import annotations

import asyncio

from atalanta.cluster.inputs import NodeInputs
from atalanta.node.clock import Clock
from atalanta.runtime.driver import ANSWERED_FIRST_BYTES, Driver
from atalanta.runtime.ha.epoch_lost import EpochLost
from atalanta.runtime.process import exit_codes
from atalanta.runtime.read_pause import PAUSE_FIRST_NS, ROW_MIN
from atalanta.runtime.shell import Shell
from tests.runtime.net.echo import EchoNode


class TurnDisk:
    """Commits that wait for the end of a turn, by token; `story` says what happened when."""

    def __init__(self, shell: Shell, tokens: list[int]) -> None:
        self.shell = shell
        self.tokens = tokens
        self.node = EchoNode(shell)
        self.story: list[str] = []
        self.breaks = False
        self.gives = False
        self.size = 0
        shell.driver.attach(self.node)
        shell.driver.after_flush(self._write_out)
        shell.driver.disk_at_turn_end(self)

    @property
    def commit_waits(self) -> bool:
        return bool(self.tokens)

    def end_turn(self) -> int:
        if self.gives:
            self.story.append(f"give {self.tokens.pop(0)}")
            return 0
        if self.breaks:
            self.tokens.clear()
            self.node.failed = "the disk is gone"
            self.shell.driver.post(NodeInputs.on_disk_failed, "the disk is gone")
        else:
            token = self.tokens.pop(0)
            self.story.append(f"sync {token}")
            self.shell.driver.post(NodeInputs.on_committed, token)
        return self.size

    def idle(self) -> bool:
        return not self.tokens

    def _write_out(self) -> bool:
        self.story.append(f"write {self.node.flushes}")
        return False


async def passes(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def play(
    tokens: list[int],
    count: int,
    breaks: bool = False,
    size: int = ANSWERED_FIRST_BYTES + 1,
    gives: bool = False,
) -> tuple[TurnDisk, list[str]]:
    """After `count` passes of the loop."""
    disk = TurnDisk(Shell(asyncio.get_running_loop()), tokens)
    disk.breaks = breaks
    disk.gives = gives
    disk.size = size
    disk.shell.driver.post(NodeInputs.on_timer, "any")
    await passes(count)
    story, disk.story = disk.story, []
    return disk, story


def test_an_answer_is_carried_out_in_the_turn_of_its_commit() -> None:
    disk, story = asyncio.run(play([7], 1))
    assert story == ["write 1", "sync 7", "write 2"]
    assert disk.node.words("committed") == [("committed", 7)]


def test_answers_to_a_small_commit_leave_before_anything_is_delivered() -> None:
    disk, story = asyncio.run(play([7], 1, size=ANSWERED_FIRST_BYTES))
    assert story == ["write 1", "sync 7", "write 1", "write 2"]
    assert disk.node.log[-2:] == [("committed", 7), ("flush_answers",)]


def test_nothing_follows_a_commit_that_the_worker_got() -> None:
    _, story = asyncio.run(play([7], 5, gives=True))
    assert story == ["write 1", "give 7"]


def test_no_turn_follows_when_nothing_is_left() -> None:
    _, story = asyncio.run(play([7], 5))
    assert story == ["write 1", "sync 7", "write 2"]


def test_a_further_commit_has_a_turn_of_its_own() -> None:
    """So that what others sent meanwhile goes with it."""
    _, story = asyncio.run(play([7, 8], 1))
    assert story == ["write 1", "sync 7", "write 2"]
    _, story = asyncio.run(play([7, 8], 5))
    assert story[3:] == ["write 3", "sync 8", "write 4"]


def test_a_commit_that_fails_ends_the_node_in_its_turn() -> None:
    disk, _ = asyncio.run(play([7], 1, breaks=True))
    assert disk.shell.driver.broken and disk.node.words("committed") == []


class Paused:
    """A driver whose node hears of something each turn; `pauses` has the sleeps, in ns."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wrote: bool, idle: bool = True) -> None:
        self.pauses: list[int] = []
        self.wrote = wrote
        self.commit_waits = False
        self._idle = idle
        self._now = 0
        clock = Clock(lambda: self._now, lambda: self._now)
        self.driver = Driver(loop, clock, self._never, self._never, self._sleep)
        self.driver.attach(EchoNode(Shell(loop)))
        self.driver.after_flush(lambda: self.wrote)
        self.driver.disk_at_turn_end(self)

    def idle(self) -> bool:
        return self._idle

    def end_turn(self) -> int:
        raise AssertionError("no commit waits")

    async def turns(self, count: int) -> list[int]:
        """Returns what was slept meanwhile; turns are 20 us apart."""
        for _ in range(count):
            self.driver.data(1, b"")
            await passes(1)
            self._now += 20_000
        return self.pauses

    def _sleep(self, seconds: float) -> None:
        pause_ns = round(seconds * 1e9)
        self.pauses.append(pause_ns)
        self._now += pause_ns

    def _never(self, why: str) -> None:
        raise AssertionError(why)


async def paused(wrote: bool, idle: bool, count: int) -> list[int]:
    return await Paused(asyncio.get_running_loop(), wrote, idle).turns(count)


def test_input_that_nobody_waits_for_is_left_to_pile_up() -> None:
    assert asyncio.run(paused(wrote=False, idle=True, count=ROW_MIN)) == [PAUSE_FIRST_NS]


def test_no_pause_while_turns_write_something() -> None:
    assert asyncio.run(paused(wrote=True, idle=True, count=100)) == []


def test_no_pause_while_a_commit_is_under_way() -> None:
    """Its answer comes over the loop, and somebody may wait for it."""
    assert asyncio.run(paused(wrote=False, idle=False, count=100)) == []


def test_output_is_held_until_the_lease_allows_it() -> None:
    async def held() -> list[str]:
        disk = TurnDisk(Shell(asyncio.get_running_loop()), [])
        disk.shell.driver.hold_output(lambda: disk.story.append("hold"))
        disk.shell.driver.post(NodeInputs.on_timer, "any")
        await passes(1)
        disk.shell.connections.close_all("the end")
        return disk.story

    assert asyncio.run(held()) == ["hold", "write 1", "hold", "write 1"]


def test_nothing_leaves_after_the_loss_of_the_epoch() -> None:
    def lost() -> None:
        raise EpochLost("taken by another")

    async def play_lost() -> tuple[list[str], bool, int]:
        disk = TurnDisk(Shell(asyncio.get_running_loop()), [7])
        disk.shell.driver.hold_output(lost)
        disk.shell.driver.post(NodeInputs.on_timer, "any")
        await passes(2)
        return disk.story, disk.shell.driver.broken, disk.shell._status

    story, broken, status = asyncio.run(play_lost())
    assert broken and status == exit_codes.DISK_FAILED
    assert not any(word.startswith("write") for word in story)
