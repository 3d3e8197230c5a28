"""The followers of an active node, as it knows them: how far each is behind, and who is away."""

from __future__ import annotations

from atalanta.ha.register import MEMBERS_MAX
from atalanta.ha.replication.messages import Answer


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
        self.durable = durable
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


class KnownFollowers:
    """The members that an active node knows in its epoch, connected or not. `wanted` is the one that an operator wants
    to serve, "" without one."""

    def __init__(self) -> None:
        self.lags: dict[str, FollowerLag] = {}
        self.wanted: str = ""
        self.places: dict[str, str] = {}  # host:port that each announces, "" if it announces none
        self._gone_ns: dict[str, int] = {}  # since when a member has no stream

    def on_member(self, now: int, member: str, asynchronous: bool, place: str = "") -> None:
        """Begins to measure a follower, or goes on. Another member of its place had the folder before, and is gone."""
        for former in [name for name, its in self.places.items() if place and its == place and name != member]:
            self._forget(former)
        self.places[member] = place
        known = self.lags.pop(member, None)
        if known is None or known.asynchronous != asynchronous:
            known = FollowerLag(now, asynchronous)
        self.lags[member] = known
        if len(self.lags) > MEMBERS_MAX:
            self._forget(next(iter(self.lags)))

    def _forget(self, member: str) -> None:
        self.lags.pop(member, None)
        self.places.pop(member, None)
        self._gone_ns.pop(member, None)

    def on_answer(self, now: int, member: str, answer: Answer, last: int) -> None:
        """Records the answer of a follower, while the active node ends with `last`."""
        self._gone_ns.pop(member, None)
        lag = self.lags.get(member)
        if lag is not None:
            lag.on_answer(now, answer.durable, last)

    def on_request(self, member: str) -> None:
        """Records that an operator wants `member` to serve."""
        self.wanted = member

    def on_gone(self, now: int, member: str) -> None:
        """Records that the stream of a member has ended."""
        self._gone_ns.setdefault(member, now)
        if self.wanted == member:
            self.wanted = ""

    def gone_for_ns(self, now: int, member: str) -> int:
        """Returns for how long a member has no stream; it is asked only about such members."""
        return now - self._gone_ns.setdefault(member, now)

    def seen(self) -> list[str]:
        """Returns the members that were seen in this epoch, those that are away too."""
        return list(self.lags)
