"""Connection routers while the node runs: the management API, and a configuration that is read again."""

from __future__ import annotations

import copy
import json

import pytest

from atalanta.cluster.connection_routers.config import RouterConfig
from atalanta.cluster.connection_routers.routers import Routers
from atalanta.kernel.errors import REMOTE_DISCONNECT, BrokerError
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Rig, node_of
from tests.cluster.connection_routers.router_rig import nodes, place, routed, visit

ROUTER = "connectionrouter.router"


def reload(rig: Rig, host: Host, *routers: RouterConfig) -> None:
    node = node_of(host)
    config = copy.copy(node.config)
    config.routers = copy.copy(config.routers)
    assert config.routers is not None
    config.routers.routers = list(routers)
    node.on_reload(rig.world.now, config)
    host.flush_later()
    rig.run(1)


def test_the_target_of_a_key_is_the_one_a_client_is_sent_to(rig: Rig) -> None:
    hosts = nodes(rig, routed)
    ids = {node_of(host).broker.node_id: host.name for host in hosts}
    seen = {}
    for key in (f"{7 ** number} client" for number in range(12)):
        told = json.loads(rig.ask(hosts[0], ROUTER, "getTargetAsJSON", key))
        assert ids[told["nodeID"]] == place(visit(rig, hosts[0], key), hosts[0])
        seen[told["local"]] = told
    assert seen[True]["connector"] is None and seen[True]["nodeID"] == "node-0"
    connector = seen[False]["connector"]
    assert connector["name"] and connector["factoryClassName"].endswith("NettyConnectorFactory")
    assert connector["params"]["host"] == ids[seen[False]["nodeID"]]
    with pytest.raises(BrokerError, match="nobody"):
        rig.ask(hosts[0], "connectionrouter.nobody", "getTargetAsJSON", "key")


def test_a_key_that_is_refused_has_no_target(rig: Rig) -> None:
    def local() -> RouterConfig:
        config = RouterConfig("router", "CLIENT_ID", None, "ours.*")
        return config

    (host,) = nodes(rig, local, 1)
    assert json.loads(rig.ask(host, ROUTER, "getTargetAsJSON", "ours-1"))["local"] is True
    assert rig.ask(host, ROUTER, "getTargetAsJSON", "theirs") is None
    assert rig.ask(host, ROUTER, "getTarget", "theirs") is None


def test_filters_are_shown_and_changed(rig: Rig) -> None:
    (host,) = nodes(rig, lambda: RouterConfig("router", "CLIENT_ID", "^[^-]+", "ours"), 1)
    assert rig.get(host, ROUTER, "LocalTargetFilter") == "ours"
    assert rig.get(host, ROUTER, "TargetKeyFilter") == "^[^-]+"
    assert visit(rig, host, "ours-7").stays
    rig.ask(host, ROUTER, "setLocalTargetFilter", "theirs")
    assert visit(rig, host, "ours-7").error == REMOTE_DISCONNECT
    rig.ask(host, ROUTER, "setTargetKeyFilter", "their.*")
    assert visit(rig, host, "the theirs").stays
    for impossible in ("(", "(" * 5_000 + ")" * 5_000, "a{4294967295}"):
        with pytest.raises(BrokerError, match="not a regular expression"):
            rig.ask(host, ROUTER, "setTargetKeyFilter", impossible)
    rig.ask(host, ROUTER, "setLocalTargetFilter", "")
    assert rig.get(host, ROUTER, "LocalTargetFilter") is None
    rig.ask(host, ROUTER, "setTargetKeyFilter", None)
    assert rig.get(host, ROUTER, "TargetKeyFilter") is None


def test_a_changed_router_counts_at_the_next_reload(rig: Rig) -> None:
    hosts = nodes(rig, routed)
    keys = [f"{7 ** number} client" for number in range(12)]
    away = next(key for key in keys if not visit(rig, hosts[0], key).stays)
    changed = routed()
    changed.local_target_filter = ".*"
    links = len(node_of(hosts[0]).connections)
    reload(rig, hosts[0], changed)
    assert visit(rig, hosts[0], away).stays
    assert rig.get(hosts[0], ROUTER, "LocalTargetFilter") == ".*"
    assert len(node_of(hosts[0]).connections) <= links + 1, "the old pool's links are gone"
    reload(rig, hosts[0], routed())
    rig.run(2)
    assert not visit(rig, hosts[0], away).stays


def test_an_unchanged_router_and_one_that_is_gone_from_the_file_go_on(rig: Rig) -> None:
    hosts = nodes(rig, routed, 2)
    part = node_of(hosts[0]).parts["routers"]
    assert isinstance(part, Routers)
    before = part.routers["router"]
    reload(rig, hosts[0], routed(), RouterConfig("another", "CLIENT_ID"))
    assert part.routers["router"] is before and "another" in part.routers
    reload(rig, hosts[0])
    assert part.routers["router"] is before


def test_who_waits_for_the_old_router_is_decided_by_the_new_one(rig: Rig) -> None:
    def alone() -> RouterConfig:
        config = routed()
        assert config.pool is not None
        config.pool.quorum_size = 5
        config.pool.quorum_timeout_ms = 60_000
        return config

    (host,) = nodes(rig, alone, 1)
    waits = visit(rig, host, "client")
    assert not waits.stays and waits.error is None
    reload(rig, host, routed())
    assert waits.stays
