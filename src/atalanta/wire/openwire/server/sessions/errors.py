"""Refusals as the exceptions that OpenWire clients know. Their class names are texts, nothing is loaded by them."""

from __future__ import annotations

from typing import Final

from atalanta.kernel import errors
from atalanta.kernel.errors import BrokerError
from atalanta.wire.openwire.encoding.throwable import Throwable

TEXT_CHARACTERS_MAX: Final = 1_000
JMS: Final = "javax.jms.JMSException"
INVALID_CLIENT_ID: Final = "javax.jms.InvalidClientIDException"
# ActiveMQ Classic's classes, by code.
CLASSES: Final = {
    errors.SECURITY: "java.lang.SecurityException",
    errors.CLUSTER_SECURITY: "java.lang.SecurityException",
    errors.QUEUE_DOES_NOT_EXIST: "javax.jms.InvalidDestinationException",
    errors.ADDRESS_DOES_NOT_EXIST: "javax.jms.InvalidDestinationException",
    errors.UNEXPECTED_ROUTING_TYPE: "javax.jms.InvalidDestinationException",
    errors.INVALID_FILTER: "javax.jms.InvalidSelectorException",
    errors.ADDRESS_FULL: "javax.jms.ResourceAllocationException",
    errors.TRANSACTION_ROLLED_BACK: "javax.jms.TransactionRolledBackException",
    errors.TRANSACTION_TIMEOUT: "javax.jms.TransactionRolledBackException",
    errors.DUPLICATE_ID: "javax.jms.TransactionRolledBackException",
}
# The one refusal after which a bridge of Classic goes on: it takes the message for one to a temporary destination that
# has ended, and moves it to its dead-letter queue. After any other one it connects again, and sends the message again.
FINAL_FOR_BRIDGES: Final = "org.apache.activemq.broker.region.DestinationDoesNotExistException"
FINAL_PREFIX: Final = "temp-"
XA_CLASS: Final = "javax.transaction.xa.XAException"


class ClientIdError(BrokerError):
    """A client id that is missing or in use."""

    def __init__(self, text: str) -> None:
        super().__init__(errors.ILLEGAL_STATE, text)


class MessageRefused(BrokerError):
    """A message that is never accepted, however often it is sent."""


def bridge_throwable(error: BrokerError) -> Throwable:
    """Returns the exception for a refusal of what the bridge of another broker has sent."""
    if isinstance(error, MessageRefused):
        return Throwable(FINAL_FOR_BRIDGES, f"{FINAL_PREFIX}refused: {error.text[:TEXT_CHARACTERS_MAX]}")
    return throwable_of(error)


def throwable_of(error: BrokerError) -> Throwable:
    """Returns the exception for a refusal."""
    name = INVALID_CLIENT_ID if isinstance(error, ClientIdError) else CLASSES.get(error.code, JMS)
    return Throwable(name, error.text[:TEXT_CHARACTERS_MAX])


def xa_throwable(code: int, text: str) -> Throwable:
    """Returns the exception for an error of XA: clients read its code at the end of the text."""
    return Throwable(XA_CLASS, f"{text[:TEXT_CHARACTERS_MAX]} xaErrorCode:{code}")
