"""Connection routers: who is sent where, who stays, who is refused, and who waits."""

from __future__ import annotations

import pytest

from atalanta.cluster.connection_routers.config import (
    CONSISTENT_HASH,
    CONSISTENT_HASH_MODULO,
    FIRST_ELEMENT,
    LEAST_CONNECTIONS,
    ROUND_ROBIN,
    CacheConfig,
    PoolConfig,
    RouterConfig,
)
from atalanta.cluster.connection_routers.routers import Routers
from atalanta.cluster.scale_down.phase import DONE, MOVING
from atalanta.kernel.errors import INCOMPATIBLE, REMOTE_DISCONNECT, ROUTING
from atalanta.wire.core.packets.connection import DisconnectV3, ExceptionResponse
from atalanta.wire.core.packets.session import CreateSessionResponse
from atalanta.wire.login import LOGINS_WAITING_MAX
from tests.cluster.cluster_rig import Rig, node_of
from tests.cluster.connection_routers.router_rig import Visitor, nodes, place, routed, visit
from tests.cluster.scale_down.scale_down_rig import begin, departure


def test_clients_of_one_key_meet_on_one_node_whatever_door_they_take(rig: Rig) -> None:
    hosts = nodes(rig, routed)
    seen = {}
    for key in (f"{7 ** number} client" for number in range(12)):  # short keys lie close together
        found = {place(visit(rig, host, key), host) for host in hosts}
        assert len(found) == 1
        seen[key] = found.pop()
    assert len(set(seen.values())) > 1


def test_who_is_sent_away_is_told_as_artemis_does(rig: Rig) -> None:
    hosts = nodes(rig, routed)
    sent = next(
        each for each in (visit(rig, hosts[0], f"{7 ** at} client") for at in range(20)) if each.to
    )
    goodbye, error = sent.packets
    assert isinstance(goodbye, DisconnectV3) and isinstance(error, ExceptionResponse)
    assert goodbye.reason == 0 and goodbye.target is not None
    assert goodbye.target_node_id in (node_of(hosts[1]).broker.node_id, node_of(hosts[2]).broker.node_id)
    assert (goodbye.target.host, goodbye.target.port) == (sent.to, 61616)
    assert error.code == ROUTING and "redirected" in str(error.message)


def test_further_sessions_of_a_connection_stay_with_it(rig: Rig) -> None:
    hosts = nodes(rig, lambda: routed(ROUND_ROBIN), 2)
    visitor = next(
        each for each in (visit(rig, hosts[0], str(number)) for number in range(4)) if each.stays
    )
    for channel in (11, 12, 13):
        visitor.log_in(channel)
    rig.run(0.1)
    assert sum(isinstance(each, CreateSessionResponse) for each in visitor.packets) == 4


def test_the_local_filter_keeps_its_clients_and_others_are_rejected_without_a_pool(rig: Rig) -> None:
    def partition(config: RouterConfig, _: PoolConfig) -> None:
        config.key_filter = "^.{3}"
        config.local_target_filter = "^FOO.*"
        config.pool = None

    hosts = nodes(rig, lambda: routed(None, partition), 1)
    assert visit(rig, hosts[0], "FOO.1").stays
    for other in ("BAR.1", None):
        assert visit(rig, hosts[0], other).error == REMOTE_DISCONNECT


def test_modulo_shards_by_client_id(rig: Rig) -> None:
    def shard(at: int) -> RouterConfig:
        def change(config: RouterConfig, _: PoolConfig) -> None:
            config.policy_number = 2
            config.local_target_filter = str(at)
            config.pool = None

        return routed(CONSISTENT_HASH_MODULO, change)

    hosts = [rig.node(router=shard(0)), rig.node(router=shard(1))]
    for host in hosts:
        host.start()
    for number in range(8):
        both = [visit(rig, host, f"client-{number}") for host in hosts]
        assert sorted(each.stays for each in both) == [False, True]


def test_a_target_that_is_down_gets_nobody_and_comes_back(rig: Rig) -> None:
    def static(config: RouterConfig, pool: PoolConfig) -> None:
        pool.cluster_connection = None
        pool.local_target_enabled = False
        pool.static_connectors = ["n0", "n1"]
        pool.check_period_ms = 1_000

    hosts = [rig.node(), rig.node(), rig.node(router=routed(FIRST_ELEMENT, static))]
    rig.form(*hosts)
    rig.run(2)
    assert visit(rig, hosts[2]).to == "n0"
    hosts[0].crash()
    rig.run(2)
    assert visit(rig, hosts[2]).to == "n1"
    hosts[0].start()
    rig.run(3)
    assert visit(rig, hosts[2]).to == "n0"


def test_who_comes_too_early_waits_for_the_quorum(rig: Rig) -> None:
    hosts = [rig.node(router=routed(change=lambda _, pool: setattr(pool, "quorum_size", 2)))]
    hosts.append(rig.node())
    hosts[0].start()
    early = visit(rig, hosts[0], "early", 1)
    assert early.packets == []
    rig.run(3)
    assert early.error == ROUTING, "refused after quorum-timeout"
    second = visit(rig, hosts[0], "second", 0.5)
    hosts[1].start()
    rig.until(lambda: second.stays or second.to, 2.5)


def test_too_many_refused_logins_behind_one_that_waits_end_the_connection_only(rig: Rig) -> None:
    host = rig.node(router=routed(change=lambda _, pool: setattr(pool, "quorum_size", 2)))
    rig.node()
    host.start()
    visitor = visit(rig, host, "waits", 0.1)
    for channel in range(11, 11 + LOGINS_WAITING_MAX - 1):
        visitor.log_in(channel, "wrong")
    rig.run(4)
    assert visitor.error == ROUTING
    visitor.log_in(30)
    for channel in range(31, 31 + LOGINS_WAITING_MAX - 1):
        visitor.log_in(channel, "wrong")
    rig.run(4)
    assert visitor.closed
    assert host.up


def test_a_member_that_leaves_is_no_target_any_more(rig: Rig) -> None:
    hosts = nodes(rig, lambda: routed(ROUND_ROBIN), 2)
    hosts[1].stop()
    rig.run(2)
    assert all(visit(rig, hosts[0], str(number)).stays for number in range(4))


def test_least_connections_fill_up(rig: Rig) -> None:
    def quick(config: RouterConfig, pool: PoolConfig) -> None:
        pool.check_period_ms = 200

    hosts = nodes(rig, lambda: routed(LEAST_CONNECTIONS, quick), 2)
    for _ in range(6):
        rig.client(hosts[1])
    rig.run(1)
    assert all(visit(rig, hosts[0], str(number)).stays for number in range(3))


def test_the_cache_keeps_a_key_where_it_was_over_a_restart(rig: Rig) -> None:
    def cached(config: RouterConfig, pool: PoolConfig) -> None:
        config.cache = CacheConfig(persisted=True)

    hosts = nodes(rig, lambda: routed(ROUND_ROBIN, cached))
    first = place(visit(rig, hosts[0], "sticky"), hosts[0])
    assert {place(visit(rig, hosts[0], "sticky"), hosts[0]) for _ in range(4)} == {first}
    rig.run(1)
    hosts[0].crash()
    hosts[0].start()
    rig.formed()
    rig.run(2)
    assert {place(visit(rig, hosts[0], "sticky"), hosts[0]) for _ in range(4)} == {first}


def test_a_key_of_the_cache_is_forgotten_in_time(rig: Rig) -> None:
    def cached(config: RouterConfig, pool: PoolConfig) -> None:
        config.cache = CacheConfig(persisted=True, timeout_ms=5_000)

    hosts = nodes(rig, lambda: routed(ROUND_ROBIN, cached), 1)
    visit(rig, hosts[0], "sticky")
    broker = node_of(hosts[0]).broker
    assert broker.values.keys("router:") == ["router:router:sticky"]
    rig.run(70)
    assert not broker.values.keys("router:")


def test_old_clients_are_told_that_they_are(rig: Rig) -> None:
    hosts = nodes(rig, routed, 1)
    visitor = Visitor(rig, hosts[0], "x", 130)
    rig.run(0.1)
    assert visitor.error == INCOMPATIBLE


def test_other_doors_do_not_ask(rig: Rig) -> None:
    hosts = nodes(rig, lambda: routed(change=lambda config, _: setattr(config, "pool", None)), 1)
    assert rig.client(hosts[0]).ready
    assert visit(rig, hosts[0], "x").error == REMOTE_DISCONNECT


def use_discovery_group(config: RouterConfig, pool: PoolConfig) -> None:
    pool.cluster_connection = None
    pool.discovery_group = "group"


@pytest.mark.parametrize("resumed", [False, True])
def test_a_node_with_a_pool_by_discovery_group_may_leave(rig: Rig, resumed: bool) -> None:
    hosts = [
        rig.node(discovery=True, router=routed(CONSISTENT_HASH, use_discovery_group)) for _ in range(2)
    ]
    rig.form(*hosts)
    part = begin(rig, hosts[1])
    rig.until(lambda: part.phase == MOVING)
    if resumed:
        hosts[1].crash()
        hosts[1].start()
        part = departure(hosts[1])
        assert part.frozen
    rig.until(part.over)
    hosts[1].stop()
    assert part.phase == DONE


def test_a_pool_by_discovery_group(rig: Rig) -> None:
    hosts = [
        rig.node(discovery=True, router=routed(CONSISTENT_HASH, use_discovery_group)) for _ in range(2)
    ]
    rig.form(*hosts)
    rig.run(4)
    for key in ("a", "b", "c", "d"):
        assert len({place(visit(rig, host, key), host) for host in hosts}) == 1
    part = node_of(hosts[0]).parts["routers"]
    assert isinstance(part, Routers)
    hosts[1].crash()
    rig.run(15)
    pool = part.routers["router"].pool
    assert pool is not None and len(pool.targets) == 1
