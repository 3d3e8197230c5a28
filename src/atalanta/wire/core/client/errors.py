"""What can go wrong for a client, one class a reason, with the code a broker sends for it.

Codes are ActiveMQExceptionType's (fact sheet A1.a); 200 to 202 are Atalanta's log view.
"""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = -1


class ClientError(Exception):
    """Base of all. `code` is the broker's, or -1 when the reason lies on this side."""

    def __init__(self, text: str, code: int = UNKNOWN) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class BrokerRefused(ClientError):
    """The broker refused a request, for a reason without a class of its own."""


class ConnectionLost(ClientError):
    """The connection ended, and the options let it not come back (or not yet)."""


class ConnectFailed(ConnectionLost):
    """No server of the URL could be reached within initialConnectAttempts or reconnectAttempts."""


class Closed(ClientError):
    """The connection, producer or consumer was closed by this program."""


class CallTimedOut(ClientError):
    """No answer within callTimeout. The broker may still do what was asked."""


class InternalError(BrokerRefused):
    """The broker failed at it (code 0)."""


class QueueDoesNotExist(BrokerRefused):
    """Code 100."""


class QueueExists(BrokerRefused):
    """Code 101."""


class InvalidFilter(BrokerRefused):
    """A selector or queue filter that cannot be read (103)."""


class IllegalState(BrokerRefused):
    """Code 104."""


class NotAuthorized(BrokerRefused):
    """Unknown user, wrong password or a missing permission (105)."""


class AddressDoesNotExist(BrokerRefused):
    """Code 106."""


class IncompatibleVersion(BrokerRefused):
    """The broker does not speak version 136 of the protocol (108)."""


class TransactionRolledBack(BrokerRefused):
    """Nothing of the transaction happened (111): do it again from its beginning."""


class TransactionOutcomeUnknown(ClientError):
    """The connection was lost while the commit was on its way: it happened wholly, or not at all.

    A transaction committed under a sink id can simply be repeated: a second commit is refused as
    DuplicateId.
    """


class SessionRejected(BrokerRefused):
    """The broker takes no session now (112)."""


class DuplicateId(BrokerRefused):
    """This duplicate id was used before (113): what was sent is already there."""


class DuplicateMetadata(BrokerRefused):
    """The client id is in use (114)."""


class AddressExists(BrokerRefused):
    """Code 120."""


class AddressFull(BrokerRefused):
    """The address takes no more messages (210)."""


class TooManyConsumers(BrokerRefused):
    """The queue's max-consumers is reached (214)."""


class WrongRoutingType(BrokerRefused):
    """The address or queue exists with the other routing type (215)."""


class Fenced(BrokerRefused):
    """The lease belongs to somebody else now, or is held by somebody (200)."""


class IncarnationChanged(BrokerRefused):
    """The queue was deleted and created anew since its incarnation was read (201)."""


class RangeLost(BrokerRefused):
    """A part of the range is gone from the queue (202)."""


class LogViewUnsupported(ClientError):
    """The node is no Atalanta node: it has no log view. `node` names it."""

    def __init__(self, text: str, node: str) -> None:
        super().__init__(text)
        self.node = node


class SendFailed(ClientError):
    """Messages sent with send_soon were refused. `errors` has the first of them, in order."""

    def __init__(self, errors: list[ClientError], count: int) -> None:
        super().__init__(f"{count} messages were refused, the first: {errors[0].text}")
        self.code = errors[0].code
        self.errors = errors
        self.count = count


class MessageTooLarge(ClientError):
    """A received message exceeds largeMessageMaxBytes; its body was thrown away."""


_CLASSES: Final[dict[int, type[BrokerRefused]]] = {
    0: InternalError,
    100: QueueDoesNotExist,
    101: QueueExists,
    103: InvalidFilter,
    104: IllegalState,
    105: NotAuthorized,
    106: AddressDoesNotExist,
    108: IncompatibleVersion,
    111: TransactionRolledBack,
    112: SessionRejected,
    113: DuplicateId,
    114: DuplicateMetadata,
    120: AddressExists,
    200: Fenced,
    201: IncarnationChanged,
    202: RangeLost,
    210: AddressFull,
    214: TooManyConsumers,
    215: WrongRoutingType,
}


def error_of(code: int, text: str | None) -> BrokerRefused:
    """The error for an EXCEPTION packet."""
    kind = _CLASSES.get(code, BrokerRefused)
    return kind(text or f"the broker answered with code {code} and no text", code)
