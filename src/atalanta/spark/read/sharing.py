"""A limit for a whole batch, shared over the nodes by what is waiting at each.

Even shares would let a node with a long backlog fall behind the others, and with it the event
time: the watermark moves on with the quick ones and the late rows are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping


def share(limit: int, weights: Mapping[str, int]) -> dict[str, int]:
    """`limit` in proportion to `weights`, whole numbers by largest remainder.

    No share exceeds its weight. Each positive weight gets 1 at least as long as `limit` allows it;
    the sum is min(limit, sum of the weights).
    """
    names = sorted(name for name, weight in weights.items() if weight > 0)
    total = sum(weights[name] for name in names)
    if limit >= total:
        return {name: weights[name] for name in names}
    if limit <= len(names):
        first = sorted(names, key=lambda name: (-weights[name], name))[:limit]
        return {name: 1 if name in first else 0 for name in names}
    shares: dict[str, int] = {}
    remainders: list[tuple[int, str]] = []
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
