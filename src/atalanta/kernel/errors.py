"""Errors that the broker answers to a peer, with the codes that Artemis clients know.

The codes follow ActiveMQExceptionType. Codes of 200 and above are Atalanta's own (log view).
"""

from __future__ import annotations

from typing import Final

INTERNAL_ERROR: Final = 0
QUEUE_DOES_NOT_EXIST: Final = 100
QUEUE_EXISTS: Final = 101
INVALID_FILTER: Final = 103
ILLEGAL_STATE: Final = 104
SECURITY: Final = 105
ADDRESS_DOES_NOT_EXIST: Final = 106
ADDRESS_EXISTS: Final = 107
INCOMPATIBLE: Final = 108
TRANSACTION_ROLLED_BACK: Final = 111
SESSION_CREATION_REJECTED: Final = 112
DUPLICATE_ID: Final = 113
DUPLICATE_METADATA: Final = 114
INVALID_SHARED_QUEUE: Final = 118
REMOTE_DISCONNECT: Final = 119
TRANSACTION_TIMEOUT: Final = 120
ADDRESS_FULL: Final = 210
CLUSTER_SECURITY: Final = 212
MAX_CONSUMERS: Final = 214
UNEXPECTED_ROUTING_TYPE: Final = 215
ROUTING: Final = 222
FENCED: Final = 200
INCARNATION_CHANGED: Final = 201
RANGE_LOST: Final = 202
LEASE_ENDED: Final = 203


class BrokerError(Exception):
    """A request that the broker refuses: `code` as above, `text` for the user. The broker's state is unchanged."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Postponed(BrokerError):
    """A request that cannot be answered yet. Nothing has changed; its session holds the input and tries again."""


class Unfinished(Postponed):
    """A large request: a step of it is done, and the next one follows in a later event-loop iteration."""

    def __init__(self) -> None:
        super().__init__(ILLEGAL_STATE, "the request goes on in a later event-loop iteration")
