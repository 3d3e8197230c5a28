"""How far each follower is behind the active node, in records and in time."""

from __future__ import annotations

from atalanta.ha.register import MEMBERS_MAX
from atalanta.ha.replication import Answer


class FollowerLag:
    """The lag of one follower. At `caught_up_ns` it lacked nothing, as far as this active node knows.

    Under load a follower is never at the end. So the end is noted with an answer: when a later answer reaches it, the
    follower lacked nothing at the time of the note.
    """

    def __init__(self, now: int, asynchronous: bool) -> None:
        self.asynchronous = asynchronous
        self.durable: int = 0
        self.caught_up_ns: int = now
        self._mark: int = -1  # a last lsn of the active node, noted at `_mark_ns`
        self._mark_ns: int = 0

    def on_answer(self, now: int, durable: int, last: int) -> None:
        """Records what the follower has, while the active node ends with `last`."""
        self.durable = max(self.durable, durable)
        if durable >= last:
            self.caught_up_ns = now
            self._mark = -1
            return
        if durable >= self._mark >= 0:
            self.caught_up_ns = self._mark_ns
            self._mark = -1
        if self._mark < 0:
            self._mark = last
            self._mark_ns = now

    def behind_ns(self, now: int, last: int) -> int:
        """Returns for how long the follower has lacked something, 0 if it lacks nothing."""
        return 0 if self.durable >= last else max(0, now - self.caught_up_ns)


class FollowerLags:
    """The lags of the followers of one epoch, by member: also of asynchronous ones whose connection is lost."""

    def __init__(self) -> None:
        self.by_member: dict[str, FollowerLag] = {}

    def on_member(self, now: int, member: str, asynchronous: bool) -> None:
        """Begins to measure a follower, or goes on."""
        known = self.by_member.pop(member, None)
        if known is None or known.asynchronous != asynchronous:
            known = FollowerLag(now, asynchronous)
        self.by_member[member] = known
        if len(self.by_member) > MEMBERS_MAX:
            del self.by_member[next(iter(self.by_member))]

    def on_answer(self, now: int, member: str, answer: Answer, last: int) -> None:
        """Records the answer of a follower."""
        lag = self.by_member.get(member)
        if lag is not None:
            lag.on_answer(now, answer.durable, last)

    def asynchronous(self) -> list[str]:
        """Returns the asynchronous members that were seen in this epoch, connected or not."""
        return [member for member, lag in self.by_member.items() if lag.asynchronous]
