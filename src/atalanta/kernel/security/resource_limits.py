"""Limits of a single user: sessions at once, and queues that the user created.

Follows ActiveMQServerImpl.checkSessionLimit and checkQueueCreationLimit. Users without a limit are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from atalanta.kernel.errors import SECURITY, SESSION_CREATION_REJECTED, BrokerError
from atalanta.kernel.option import option


@dataclass
class ResourceLimit:
    """A `<resource-limit-setting>`; `match` is the name of a user."""

    match: str = option("", "match", "name of the user", attribute=True)
    max_sessions: int = option(
        -1,
        "max-sessions",
        "sessions of that user at once, -1 any, 0 none",
        unit="count",
        minimum=-1,
        also=("max-connections",),
    )
    max_queues: int = option(
        -1,
        "max-queues",
        "queues created by that user that may exist at once, -1 any, 0 none",
        unit="count",
        minimum=-1,
    )

    def check_sessions(self, count: int) -> None:
        """Raises BrokerError SESSION_CREATION_REJECTED if the user, with `count` sessions, may not have one more."""
        if 0 <= self.max_sessions <= count:
            raise BrokerError(
                SESSION_CREATION_REJECTED,
                f"too many sessions for user {self.match}, sessions allowed: {self.max_sessions}",
            )

    def check_queues(self, count: int) -> None:
        """Raises BrokerError SECURITY if the user, the creator of `count` existing queues, may not create one more."""
        if 0 <= self.max_queues <= count:
            raise BrokerError(
                SECURITY,
                f"too many queues created by user {self.match}, queues allowed: {self.max_queues}",
            )


def limit_of(limits: list[ResourceLimit], user: str) -> ResourceLimit | None:
    """Returns the limits of that user, None without any."""
    for limit in limits:
        if limit.match == user:
            return limit
    return None
