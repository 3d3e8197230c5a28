"""Networks of brokers, as ActiveMQ Classic has them."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.cluster.networks.config import (
        MASTERSLAVE,
        MULTICAST,
        STATIC,
        NetworkConnectorConfig,
        NetworkRetry,
        NetworkTarget,
        NetworkWay,
        message_hops,
    )
    from atalanta.cluster.networks.settings import NetworkSettings
else:
    __getattr__ = face(__name__)

__all__ = [
    "MASTERSLAVE", "MULTICAST", "STATIC", "NetworkConnectorConfig", "NetworkRetry",
    "NetworkSettings", "NetworkTarget", "NetworkWay", "message_hops",
]
