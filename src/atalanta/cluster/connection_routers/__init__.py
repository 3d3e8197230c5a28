"""Connection routers: the choice of the broker for a client, so that related producers and consumers share one.
Pure."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.cluster.connection_routers.config import (
        CLIENT_ID,
        CONSISTENT_HASH,
        CONSISTENT_HASH_MODULO,
        FIRST_ELEMENT,
        LEAST_CONNECTIONS,
        ROUND_ROBIN,
        USER_NAME,
        CacheConfig,
        PoolConfig,
        RouterConfig,
        RoutersConfig,
    )
else:
    __getattr__ = face(__name__)

__all__ = [
    "CLIENT_ID", "CONSISTENT_HASH", "CONSISTENT_HASH_MODULO", "FIRST_ELEMENT", "LEAST_CONNECTIONS",
    "ROUND_ROBIN", "USER_NAME", "CacheConfig", "PoolConfig", "RouterConfig", "RoutersConfig",
]
