"""The length of one batch at each node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from atalanta.client import Plan
from atalanta.message import dataclass
from atalanta.spark.environment.compatibility import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
)
from atalanta.spark.errors import OptionError
from atalanta.spark.gateway.gateway import Gateway
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.batch_room import BatchRoom, PlaceOrder
from atalanta.spark.read.members import PolledMembers

# A node may have less than its share (sequences have gaps): the rest is distributed again.
ROUNDS_MAX: Final = 3
# A smaller rest of the limit than this part is not distributed again.
REST_WORTH: Final = 0.05
# The limit for Spark of a stream without one (a Java long): Spark gives ReadAllAvailable to a single batch alone.
UNLIMITED: Final = 2**63 - 1


@dataclass(frozen=True)
class BatchLimits:
    """The limits of a whole batch; None is no limit."""

    messages: int | None
    bytes: int | None

    def read_limit(self) -> ReadLimit:
        """Returns the limit for Spark, which takes only one."""
        if self.messages is None and self.bytes is not None:
            return ReadMaxBytes(self.bytes)
        return ReadMaxRows(UNLIMITED if self.messages is None else self.messages)

    def within(self, limit: ReadLimit) -> BatchLimits:
        """Returns the limits of a batch for which Spark gives `limit`. ReadAllAvailable overrides these limits."""
        if isinstance(limit, ReadMaxRows):
            return BatchLimits(None if limit.max_rows == UNLIMITED else limit.max_rows, self.bytes)
        if isinstance(limit, ReadMaxBytes):
            return BatchLimits(self.messages, limit.max_bytes)
        return BatchLimits(None, None)


def refuse_single_batch(limit: ReadLimit) -> None:
    """Raises OptionError for the limit that Spark gives to a query of one batch: it would stay unacknowledged.

    Spark ends such a query without another call of the source, whether its sink failed or not.
    """
    if isinstance(limit, ReadAllAvailable):
        raise OptionError(
            "Spark runs this query as a single batch and would not tell the source that it is done, so its messages "
            "would stay in the queue: use trigger(availableNow=True) in the place of trigger(once=True). If it has "
            "that and reads another source, too, set spark.sql.streaming.triggerAvailableNowWrapper.enabled to true"
        )


def limits_of(options: ReadOptions) -> BatchLimits:
    """Returns the limits of the options."""
    return BatchLimits(options.max_messages, options.max_bytes)


@dataclass(frozen=True)
class Stretch:
    """The readable range (start, last] of one node's queue, whose messages have `mean_bytes` on average."""

    incarnation: str
    start: int
    last: int
    mean_bytes: int


def backlog_of(stretches: Mapping[str, Stretch]) -> int:
    """Returns the number of messages in the ranges of all nodes, as the sequences tell."""
    return sum(max(0, stretch.last - stretch.start) for stretch in stretches.values())


class Budget:
    """The rest of one limit; -1 stands for "no limit" in requests."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.left = limit or 0

    def shares(self, weights: Mapping[str, int]) -> dict[str, int]:
        if self.limit is None:
            return {name: -1 for name, weight in weights.items() if weight > 0}
        return share(self.left, weights)

    def spend(self, amount: int) -> None:
        self.left = max(0, self.left - amount)

    def worth_a_round(self) -> bool:
        return self.limit is None or self.left > self.limit * REST_WORTH


def ends(
    members: PolledMembers,
    queue: str,
    stretches: Mapping[str, Stretch],
    limits: BatchLimits,
    room: BatchRoom,
    turns: PlaceOrder,
) -> dict[str, int]:
    """Returns node -> the sequence at which its range ends (its start if there is no message).

    `limits` are those of this queue, `room` that of the whole batch; `turns` is the order of the nodes.
    """
    if limits.messages is None and limits.bytes is None:
        return {node: max(stretch.start, stretch.last) for node, stretch in stretches.items()}
    reached = {node: stretch.start for node, stretch in stretches.items()}
    messages, size = Budget(limits.messages), Budget(limits.bytes)
    without_room: dict[str, None] = {}
    for _ in range(ROUNDS_MAX):
        backlog = {node: max(0, stretches[node].last - reached[node]) for node in stretches}
        message_shares = messages.shares(backlog)
        byte_shares = size.shares(
            {node: waiting * stretches[node].mean_bytes for node, waiting in backlog.items()}
        )
        moved = False
        for node in turns.order(stretches):
            stretch = stretches[node]
            most, most_bytes = message_shares.get(node, 0), byte_shares.get(node, 0)
            if most == 0 or most_bytes == 0:
                continue
            if room.full:
                without_room[node] = None
                continue
            if room.limit is not None:
                most_bytes = min(most_bytes, room.left)
            plan = members.call(node, PlanRequest(queue, stretch, reached[node], most, most_bytes))
            end = min(plan.end, stretch.last)
            if end <= reached[node]:
                continue
            if not room.take(plan.bytes):  # a node plans at least one message, however large it is
                without_room[node] = None
                continue
            moved = True
            reached[node] = end
            messages.spend(plan.messages)
            size.spend(plan.bytes)
        if not moved or not messages.worth_a_round() or not size.worth_a_round():
            break
    for node, end in reached.items():
        if end > stretches[node].start:
            turns.serve(node)
        elif node in without_room:
            turns.wait(node)
    return reached


@dataclass(frozen=True)
class PlanRequest:
    """One `plan`, as an action for PolledMembers.call."""

    queue: str
    stretch: Stretch
    start: int
    messages: int
    bytes: int

    def __call__(self, gateway: Gateway) -> Plan:
        return gateway.plan(
            self.queue, self.stretch.incarnation, self.start, self.messages, self.bytes
        )


Name = TypeVar("Name", str, tuple[str, str])


def share(limit: int, weights: Mapping[Name, int]) -> dict[Name, int]:
    """Distributes `limit` in proportion to `weights`, in whole numbers by largest remainder.

    No share exceeds its weight. Each positive weight gets at least 1 as long as `limit` allows it. The sum is
    min(limit, sum of the weights).
    """
    names = sorted(name for name, weight in weights.items() if weight > 0)
    total = sum(weights[name] for name in names)
    if limit >= total:
        return {name: weights[name] for name in names}
    if limit <= len(names):
        first = sorted(names, key=lambda name: (-weights[name], name))[:limit]
        return {name: 1 if name in first else 0 for name in names}
    shares: dict[Name, int] = {}
    remainders: list[tuple[int, Name]] = []
    for name in names:
        shares[name], remainder = divmod(weights[name] * limit, total)
        remainders.append((-remainder, name))
    missing = limit - sum(shares.values())
    for _, name in sorted(remainders)[:missing]:
        shares[name] += 1
    for name in names:
        if shares[name] == 0:
            shares[name] = 1
            shares[max(names, key=lambda other: (shares[other], other))] -= 1
    return shares
