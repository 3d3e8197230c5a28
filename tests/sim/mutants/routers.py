"""Connection routers."""

from __future__ import annotations

from collections.abc import Sequence

from atalanta.cluster.connection_routers import policies
from atalanta.cluster.connection_routers.cache import Cache
from atalanta.cluster.connection_routers.policies import TargetAttributes
from atalanta.cluster.connection_routers.pool import Pool
from atalanta.cluster.connection_routers.router import STAYS, Decision, Router
from atalanta.cluster.connection_routers.target import RouterTarget
from tests.sim.mutants.patching import Patch


def keys_go_to_any_target(patch: Patch) -> None:
    """By their place in the list of those that are ready, which differs from node to node."""

    def by_place(targets: Sequence[TargetAttributes], key: str) -> int:
        return policies.java_hash(key) % len(targets)

    patch.setattr(policies, "_by_hash", by_place)


def router_forgets_its_keys(patch: Patch) -> None:
    patch.setattr(Cache, "get", lambda self, now, key: None)


def target_is_lost_for_ever(patch: Patch) -> None:
    """Once its link is gone nobody dials it any more."""
    def lost(self: Pool, now: int, target: RouterTarget, why: str) -> None:
        target.ready = False
        target.link = None

    patch.setattr(Pool, "lost", lost)


def local_filter_takes_everybody(patch: Patch) -> None:
    patch.setattr(Router, "decide_key", lambda self, now, key: Decision(STAYS))
