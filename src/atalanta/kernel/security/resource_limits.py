"""What a single user may have at once: sessions, and queues of their own.

Follows ActiveMQServerImpl.checkSessionLimit and checkQueueCreationLimit. Users without a limit are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from atalanta.kernel.errors import SECURITY, SESSION_CREATION_REJECTED, BrokerError
from atalanta.kernel.option import option

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker


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


def _limit_of(broker: Broker, user: str) -> ResourceLimit | None:
    for limit in broker.config.resource_limits:
        if limit.match == user:
            return limit
    return None


def _refuse_more(code: int, nouns: str, whose: str, count: int, allowed: int) -> None:
    """`count` of them are there already."""
    if count >= allowed:
        raise BrokerError(code, f"too many {nouns} {whose}, {nouns} allowed: {allowed}")


def check_sessions(broker: Broker, user: str) -> None:
    """BrokerError SESSION_CREATION_REJECTED if `user` may not have one more."""
    limit = _limit_of(broker, user)
    if limit is None or limit.max_sessions < 0:
        return
    count = 0
    for session in broker.clients.sessions():
        if session.identity.user == user:
            count += 1
    _refuse_more(
        SESSION_CREATION_REJECTED, "sessions", f"for user {user}", count, limit.max_sessions
    )


def check_queues(broker: Broker, user: str) -> None:
    """BrokerError SECURITY if `user` may not create one more."""
    limit = _limit_of(broker, user)
    if limit is None or limit.max_queues < 0:
        return
    count = 0
    for queue in broker.queues.values():
        if queue.spec.user == user:
            count += 1
    _refuse_more(SECURITY, "queues", f"created by user {user}", count, limit.max_queues)
