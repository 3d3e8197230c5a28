"""The sans-IO CORE client engine."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.wire.core.client.connection import BrokerConnection
    from atalanta.wire.core.client.consumer import UNLIMITED, ClientConsumer, Delivery
    from atalanta.wire.core.client.errors import CallTimedOut, ClientError
    from atalanta.wire.core.client.events import ClientEvents
    from atalanta.wire.core.client.large_message import LargeMessageStream
    from atalanta.wire.core.client.member_consumers import MemberConsumers, MemberPort
    from atalanta.wire.core.client.producer import ClientProducer
    from atalanta.wire.core.client.reply import Reply
    from atalanta.wire.core.client.request import FAIL
    from atalanta.wire.core.client.session import ClientSession
    from atalanta.wire.core.client.settings import ConnectionSettings, SessionSettings
    from atalanta.wire.core.client.topology import Member
else:
    __getattr__ = face(__name__)

__all__ = [
    "FAIL", "UNLIMITED", "BrokerConnection", "CallTimedOut", "ClientConsumer", "ClientError",
    "ClientEvents", "ClientProducer", "ClientSession", "ConnectionSettings", "Delivery",
    "LargeMessageStream", "Member", "MemberConsumers", "MemberPort", "Reply",
    "SessionSettings",
]
