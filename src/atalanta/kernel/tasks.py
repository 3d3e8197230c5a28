"""Tasks: work on many messages or queues that a peer has caused at once, done in steps between other inputs.

A turn (one batch of inputs and the `flush` behind it) does at most STEPS_A_TURN, for all tasks together. What is left
goes on by a zero timer, in the order in which the tasks were added, so that no client waits for the work of another.
Small tasks end within `add`. A node that stops or leaves ends every task at once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.queue import Queue

TASKS_TIMER: Final = "kernel.tasks"
# Steps that one turn does: each is worth a message that changes its state in memory, below a microsecond.
STEPS_A_TURN: Final = 10_000
UNBOUNDED: Final = 1 << 62


@mypyc_attr(allow_interpreted_subclasses=True)
class Task:
    """The rest of some work. A crash in the middle leaves what was journalled until then, as one before it would."""

    def do(self, now: int, most: int) -> int:
        """Does about `most` steps, at least one; returns how many it did."""
        raise NotImplementedError

    def ended(self) -> bool:
        """Returns True if nothing is left."""
        raise NotImplementedError

    def wait(self) -> None:
        """Handles that steps are left for a later turn, before anybody else can see what is not done yet."""
        return None

    def leave(self, now: int, queue: Queue) -> None:
        """Does what is left to do for a queue that is about to be deleted, and before that only."""
        return None


class Tasks:
    """The tasks of a node that have not ended, the oldest first. `done`: the steps of the present turn."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.waiting: deque[Task] = deque()
        self.done: int = 0
        self.most: int = STEPS_A_TURN

    def add(self, now: int, task: Task) -> None:
        """Begins a task, if no other waits and the turn has steps left; its rest follows."""
        if not self.waiting and self.done < self.most and not task.ended():
            self.done += task.do(now, self.most - self.done)
        if not task.ended():
            task.wait()
            self.waiting.append(task)
            self.timers.set(TASKS_TIMER, now)

    def on_timer(self, now: int) -> None:
        """Continues the tasks."""
        waiting = self.waiting
        while waiting and self.done < self.most:
            task = waiting[0]
            self.done += task.do(now, self.most - self.done)
            if task.ended():
                waiting.popleft()
        if waiting:
            self.timers.set(TASKS_TIMER, now)

    def end_turn(self) -> None:
        """Begins to count anew."""
        self.done = 0

    def leave(self, now: int, queue: Queue) -> None:
        """Ends what the tasks do for a queue, because it is about to be deleted."""
        for task in self.waiting:
            task.leave(now, queue)

    def stop(self, now: int) -> None:
        """Ends all tasks, and from here on each within `add`."""
        self.most = UNBOUNDED
        self.on_timer(now)
