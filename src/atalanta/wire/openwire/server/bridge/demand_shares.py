"""The memory of demands: a share for each user over all bridges that have logged in as that user."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

WANTED_MAX: Final = 100_000


class DemandShares:
    """How many consumers of other brokers the bridges of each user serve."""

    def __init__(self) -> None:
        self.by_user: dict[str, int] = {}

    def check(self, user: str, more: int) -> None:
        """Raises BrokerError if the bridges of the user may not serve so many more."""
        if self.by_user.get(user, 0) + more > WANTED_MAX:
            raise BrokerError(ILLEGAL_STATE, f"the bridges of one user serve at most {WANTED_MAX:,} consumers")

    def change(self, user: str, change: int) -> None:
        """Counts consumers that are served, or no more."""
        left = self.by_user.get(user, 0) + change
        if left > 0:
            self.by_user[user] = left
        else:
            self.by_user.pop(user, None)
