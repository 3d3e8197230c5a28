"""The errors of a client, one class for each reason, with the code that a broker sends for it.

Codes are ActiveMQExceptionType's; 200 to 203 are those of Atalanta's log view.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.endpoint import DROPPED
from atalanta.kernel.errors import (
    ADDRESS_FULL,
    CLUSTER_SECURITY,
    INCOMPATIBLE,
    QUEUE_DOES_NOT_EXIST,
    SECURITY,
)

UNKNOWN: Final = -1
# A broker that refuses a session with one of these codes will refuse it again: rights, versions, cluster credentials.
FINAL_REFUSALS: Final = (SECURITY, INCOMPATIBLE, CLUSTER_SECURITY)


class ClientError(Exception):
    """The base of all client errors. `code` is the broker's, or -1 if the reason is on this side."""

    def __init__(self, text: str, code: int = UNKNOWN) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class BrokerRefused(ClientError):
    """The broker refused a request, for a reason without a class of its own."""


class ConnectionLost(ClientError):
    """The connection ended, and the options allow no reconnect, or the reconnect is not done yet."""


class ConnectFailed(ConnectionLost):
    """No server of the URL could be reached within initialConnectAttempts or reconnectAttempts."""


class Closed(ClientError):
    """The program closed the connection, producer or consumer."""


class CallTimedOut(ClientError):
    """No answer came within callTimeout. The broker may still process the request."""


class InternalError(BrokerRefused):
    """The broker had an internal error (0)."""


class QueueDoesNotExist(BrokerRefused):
    """The queue does not exist (100)."""


class QueueExists(BrokerRefused):
    """The queue exists already (101)."""


class InvalidFilter(BrokerRefused):
    """The selector or queue filter is invalid (103)."""


class IllegalState(BrokerRefused):
    """The broker cannot process the request in its state (104)."""


class NotAuthorized(BrokerRefused):
    """The user is unknown, the password is wrong, or a permission is missing (105, 212 of the cluster user)."""


class AddressDoesNotExist(BrokerRefused):
    """The address does not exist (106)."""


class IncompatibleVersion(BrokerRefused):
    """The broker speaks none of the versions 129 to 136 of the protocol (108)."""


class TransactionRolledBack(BrokerRefused):
    """The transaction was rolled back (111): repeat it from its beginning."""


class TransactionOutcomeUnknown(ClientError):
    """The connection was lost during the commit: the transaction is committed or rolled back as a whole."""


class BranchRefused(BrokerRefused):
    """The broker refused a request about an XA branch; `code` is the one of XAException."""


class UnknownBranch(BranchRefused):
    """The broker does not know the XA branch (XAER_NOTA): it has ended, or never was prepared."""


class SessionRejected(BrokerRefused):
    """The broker accepts no session now (112)."""


class DuplicateId(BrokerRefused):
    """The duplicate id was used before (113): the broker has the message or transaction already."""


class DuplicateMetadata(BrokerRefused):
    """The client id is in use (114)."""


class AddressExists(BrokerRefused):
    """The address exists already (120)."""


class AddressFull(BrokerRefused):
    """The address is full and takes no more messages (210)."""


class MessageDropped(BrokerRefused):
    """The node has confirmed the message, and no queue has it: its address is full (210), or has no queue (100)."""


class TooManyConsumers(BrokerRefused):
    """The queue's max-consumers is reached (214)."""


class WrongRoutingType(BrokerRefused):
    """The address or queue exists with the other routing type (215)."""


class Fenced(BrokerRefused):
    """Another reader has the lease, or took it over (200)."""


class LeaseEnded(Fenced):
    """A user has ended the lease by management (203); the text names the user."""


class IncarnationChanged(BrokerRefused):
    """The queue was deleted and created again since its incarnation was read (201)."""


class RangeLost(BrokerRefused):
    """A part of the range was removed from the queue (202)."""


class LogViewUnsupported(ClientError):
    """The node is not an Atalanta node and has no log view. `node` names it."""

    def __init__(self, text: str, node: str) -> None:
        super().__init__(text)
        self.node = node


class SettleUnsupported(ClientError):
    """The node is not an Atalanta node: a message can be given back only by a rollback of its transaction."""


class SendFailed(ClientError):
    """Messages sent with send_soon were refused. `errors` has the first of them, in order."""

    def __init__(self, errors: list[ClientError], count: int) -> None:
        super().__init__(f"{count} messages were refused, the first: {errors[0].text}")
        self.code = errors[0].code
        self.errors = errors
        self.count = count


class MessageTooLarge(ClientError):
    """A received message exceeds largeMessageMaxBytes; its body was dropped."""


_CLASSES: Final[dict[int, type[BrokerRefused]]] = {
    0: InternalError,
    100: QueueDoesNotExist,
    101: QueueExists,
    103: InvalidFilter,
    104: IllegalState,
    105: NotAuthorized,
    212: NotAuthorized,
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
    203: LeaseEnded,
    210: AddressFull,
    214: TooManyConsumers,
    215: WrongRoutingType,
}


def dropped(outcome: int, address: str) -> MessageDropped:
    """Returns the error for what a node tells about a confirmed message (kernel/endpoint.py)."""
    if outcome == DROPPED:
        return MessageDropped(
            f"the message was dropped: address {address} is full (address-full-policy DROP)", ADDRESS_FULL
        )
    return MessageDropped(
        f"the message was dropped: no queue of address {address} takes it; with routing type anycast one is created,"
        " with multicast the address may be without subscribers",
        QUEUE_DOES_NOT_EXIST,
    )


def error_of(code: int, text: str | None) -> BrokerRefused:
    """Returns the error for an EXCEPTION packet."""
    kind = _CLASSES.get(code, BrokerRefused)
    return kind(text or f"the broker answered with code {code} and no text", code)
