"""A connection router, which maps the key of a client to its target (ConnectionRouter.getTarget of Artemis)."""

from __future__ import annotations

import re
from typing import Final

from atalanta.cluster.connection_routers.cache import Cache
from atalanta.cluster.connection_routers.config import RouterConfig
from atalanta.cluster.connection_routers.keys import NULL, KeyResolver, Newcomer
from atalanta.cluster.connection_routers.policies import Policy
from atalanta.cluster.connection_routers.pool import Pool
from atalanta.cluster.connection_routers.target import RouterTarget

STAYS: Final = 0
GOES: Final = 1
NOT_READY: Final = 2
REJECTED: Final = 3


class Decision:
    """The result for a client. `kind` is one of the constants above; `target` is set for GOES."""

    def __init__(self, kind: int, target: RouterTarget | None = None) -> None:
        self.kind = kind
        self.target = target


class Router:
    def __init__(
        self, config: RouterConfig, pool: Pool | None, policy: Policy | None, cache: Cache | None
    ) -> None:
        self.config = config
        self.keys = KeyResolver(config.key_type, config.key_filter)
        text = config.local_target_filter
        self.stays = re.compile(text) if text and text.strip() else None
        self.pool = pool
        self.policy = policy
        self.cache = cache

    def decide(self, now: int, client: Newcomer) -> Decision:
        return self.decide_key(now, self.keys.resolve(client))

    def decide_key(self, now: int, key: str) -> Decision:
        policy, pool = self.policy, self.pool
        if policy is not None and key != NULL:
            key = policy.transform(key)
        if self.stays is not None and self.stays.fullmatch(key):
            return Decision(STAYS)
        if policy is None or pool is None:
            return Decision(REJECTED)
        cache = self.cache
        if cache is not None:
            node_id = cache.get(now, key)
            target = None if node_id is None else pool.ready_target(node_id)
            if target is not None:
                return _decision(target)
        ready = pool.ready()
        place = policy.select(ready, key)
        if place < 0:
            return Decision(NOT_READY)
        if cache is not None:
            cache.put(now, key, ready[place].node_id)
        return _decision(ready[place])


def _decision(target: RouterTarget) -> Decision:
    return Decision(STAYS) if target.local else Decision(GOES, target)
