"""The queues that a consumer reads, and its filter (AMQSession.createConsumer and AMQConsumer of Artemis)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.sessions.subscription_queue import (
    SubscriptionQueue,
    durable_queue,
    subscribed_queue,
)
from atalanta.wire.openwire.conversion.destination import TEMPORARY_NAME, BrokerDestination
from atalanta.wire.openwire.conversion.message_id import shown_id
from atalanta.wire.openwire.conversion.sent_message import CONNECTION_ID, CORRELATION_ID, MESSAGE_ID

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session

JMS_MESSAGE_ID: Final = "JMSMessageID"
EQUALS_LITERAL: Final = re.compile(rf"\b{CORRELATION_ID}\s*=\s*$")


def queue_for(
    session: Session, now: int, target: BrokerDestination, selector: str | None, retroactive: bool = False
) -> SubscriptionQueue:
    """Returns the queue of a consumer that is not durable, created if need be. BrokerError if that is not allowed.

    `retroactive`: it asks for what its topic has kept.
    """
    registry = session.services.queue_registry
    if target.routing_type == ANYCAST and not target.queue and target.address not in registry.by_name:
        check_exists(session, target)
    address, queue, routing_type = target.address, target.queue, target.routing_type
    return subscribed_queue(session, now, address, queue, routing_type, selector, retroactive)


def durable_queue_for(
    session: Session, now: int, target: BrokerDestination, name: str, selector: str | None, retroactive: bool
) -> SubscriptionQueue:
    """Returns the queue of a durable subscription. BrokerError: the subscription has a consumer already."""
    known = session.services.queue_registry.by_name.get(name)
    if known is not None and known.consumer_count() > 0:
        raise BrokerError(ILLEGAL_STATE, f"Durable consumer is in use: subscription {name} has a consumer")
    return durable_queue(session, now, name, target.address, selector, retroactive)


def check_exists(session: Session, target: BrokerDestination) -> None:
    """Raises BrokerError for a temporary destination that has ended: nothing creates it again."""
    if target.temporary or target.address.startswith(TEMPORARY_NAME):
        registry = session.services.queue_registry
        if target.address not in registry.addresses.by_name:
            raise BrokerError(
                ADDRESS_DOES_NOT_EXIST, f"temporary destination {target.address} does not exist: its connection ended"
            )


def selector_text(selector: str | None, no_local: bool, client_id: str) -> str | None:
    """Returns the broker's filter for the selector of a consumer; `no_local`: not what its own connection sends."""
    text = selector.strip() if selector is not None else ""
    if CORRELATION_ID in text:
        text = _with_shown_ids(text)
    if JMS_MESSAGE_ID in text:
        text = _with_message_id(text)
    if no_local:
        quoted = client_id.replace("'", "''")
        own = f"({CONNECTION_ID} IS NULL OR {CONNECTION_ID} <> '{quoted}')"
        text = f"({text}) AND {own}" if text else own
    return text or None


def _with_message_id(text: str) -> str:
    """Returns the selector with the property of OpenWire's ids instead of JMSMessageID, outside of literals."""
    pieces = text.split("'")
    for index in range(0, len(pieces), 2):
        pieces[index] = pieces[index].replace(JMS_MESSAGE_ID, MESSAGE_ID)
    return "'".join(pieces)


def _with_shown_ids(text: str) -> str:
    """Returns the selector with the ids that clients of CORE correlate by, beside those of OpenWire messages.

    That is done for `JMSCorrelationID = 'literal'`.
    """
    pieces = text.split("'")
    for index in range(0, len(pieces) - 2, 2):
        found = EQUALS_LITERAL.search(pieces[index])
        if found is None or (pieces[index + 2] == "" and index + 3 < len(pieces)):  # '' in a literal
            continue
        shown = shown_id(pieces[index + 1])
        if shown is not None:
            pieces[index] = f"{pieces[index][: found.start()]}{CORRELATION_ID} IN ('{shown}', "
            pieces[index + 2] = f"){pieces[index + 2]}"
    return "'".join(pieces)
