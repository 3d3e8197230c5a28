"""Limits of a single user: sessions at once, queues that the user created, and the length of names.

Follows ActiveMQServerImpl.checkSessionLimit and checkQueueCreationLimit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.kernel.errors import ILLEGAL_STATE, SECURITY, SESSION_CREATION_REJECTED, BrokerError
from atalanta.kernel.option import option
from atalanta.message.fqqn import split_fqqn

NAME_CHARS_MAX: Final = 1_024  # of a queue or an address that a client names
QUEUES_PER_USER_MAX: Final = 20_000  # of a user without a setting: about 120 MB


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
        "queues created by that user that may exist at once, -1 any, 0 none; without a setting 20,000",
        unit="count",
        minimum=-1,
    )

    def check_sessions(self, count: int) -> None:
        """Raises BrokerError SESSION_CREATION_REJECTED if the user, with `count` sessions, may not have one more."""
        if 0 <= self.max_sessions <= count:
            raise BrokerError(
                SESSION_CREATION_REJECTED,
                f"AMQ229110: too many sessions for user {self.match}, sessions allowed: {self.max_sessions}",
            )

    def check_queues(self, count: int) -> None:
        """Raises BrokerError SECURITY if the user, the creator of `count` existing queues, may not create one more."""
        if 0 <= self.max_queues <= count:
            raise BrokerError(
                SECURITY,
                f"AMQ229111: too many queues created by user {self.match}, queues allowed: {self.max_queues} "
                "(max-queues of a resource-limit-setting)",
            )


def check_name(name: str) -> None:
    """Raises BrokerError ILLEGAL_STATE if an address, a queue or a part of an FQQN has a name that is too long."""
    if len(name) <= NAME_CHARS_MAX:
        return
    for part in split_fqqn(name):
        if len(part) > NAME_CHARS_MAX:
            raise BrokerError(
                ILLEGAL_STATE,
                f"AMQ229251: the name {part[:40]!r}… has {len(part)} characters, at most {NAME_CHARS_MAX} are allowed",
            )


def limit_of(limits: list[ResourceLimit], user: str) -> ResourceLimit | None:
    """Returns the limits of that user, None without any."""
    for limit in limits:
        if limit.match == user:
            return limit
    return None
