"""Headers that the broker sets on arriving messages: the validated user and the time of arrival.

Follows ServerSessionImpl.doSend: `populate-validated-user`, `reject-empty-validated-user` and the address setting
`enable-ingress-timestamp`. JMS clients read the user as JMSXUserID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.kernel.settings.repository import AddressSettingsRepository
    from atalanta.message.message import Message

VALIDATED_USER: Final = "_AMQ_VALIDATED_USER"
INGRESS_TIMESTAMP: Final = "_AMQ_INGRESS_TIMESTAMP"


def stamping_wanted(config: BrokerConfig, settings: AddressSettingsRepository) -> bool:
    """Returns True if any message needs a header; otherwise sends cost nothing."""
    return (
        config.populate_validated_user
        or config.reject_empty_validated_user
        or settings.states("enable_ingress_timestamp", True)
    )


def stamp(session: Session, now: int, message: Message) -> None:
    """Sets the headers before routing. BrokerError ILLEGAL_STATE for a message without a user, if that is refused.

    A message forwarded by a peer keeps its user; a real Artemis replaces the user by the cluster's own.
    """
    broker = session.broker
    config = broker.config
    if not session.identity.cluster:
        user = session.identity.user
        if config.populate_validated_user and user:
            message.put_property(VALIDATED_USER, user)
        if config.reject_empty_validated_user and not message.has_property(VALIDATED_USER):
            error = BrokerError(
                ILLEGAL_STATE,
                f"message to {message.address} names no user, and this broker refuses such messages",
            )
            if not session.auto_commit_sends:
                session.transaction.rollback_only = error
            raise error
    if broker.settings.match(split_fqqn(message.address)[0]).enable_ingress_timestamp:
        message.put_property(INGRESS_TIMESTAMP, now // 1_000_000)
