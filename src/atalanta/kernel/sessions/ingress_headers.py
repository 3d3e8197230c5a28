"""Headers that the broker sets on arriving messages: the validated user and the time of arrival.

Follows ServerSessionImpl.doSend: `populate-validated-user`, `reject-empty-validated-user` and the address setting
`enable-ingress-timestamp`. JMS clients read the user as JMSXUserID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.kernel.settings.repository import AddressSettingsRepository
    from atalanta.message.message import Message

VALIDATED_USER: Final = "_AMQ_VALIDATED_USER"
INGRESS_TIMESTAMP: Final = "_AMQ_INGRESS_TIMESTAMP"


class IngressHeaders:
    """Sets the headers. `wanted` is False if no message needs any; then sends cost nothing."""

    def __init__(self, config: BrokerConfig, settings: AddressSettingsRepository) -> None:
        self.config = config
        self.settings = settings
        self.wanted: bool = False
        self.reload()

    def reload(self) -> None:
        """Sets `wanted` after a change of the settings."""
        config = self.config
        self.wanted = (
            config.populate_validated_user
            or config.reject_empty_validated_user
            or self.settings.states("enable_ingress_timestamp", True)
        )

    def add(self, now: int, identity: Identity, message: Message) -> None:
        """Sets the headers before routing. BrokerError ILLEGAL_STATE for a message without a user, if that is refused.

        A message forwarded by a peer keeps its user; a real Artemis replaces the user by the cluster's own.
        """
        config = self.config
        if not identity.cluster:
            user = identity.user
            if config.populate_validated_user and user:
                message.put_property(VALIDATED_USER, user)
            if config.reject_empty_validated_user and not message.has_property(VALIDATED_USER):
                raise BrokerError(
                    ILLEGAL_STATE,
                    f"AMQ229225: message to {message.address} names no user, and this broker refuses such messages",
                )
        if self.settings.match(split_fqqn(message.address)[0]).enable_ingress_timestamp:
            message.put_property(INGRESS_TIMESTAMP, now // 1_000_000)
