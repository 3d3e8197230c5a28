"""Cluster connections that a reload adds and removes, seen by clients of both clusters."""

from __future__ import annotations

import copy

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Rig, count, node_of
from tests.cluster.several_clusters_rig import (
    WEST_PORT,
    clusters,
    connection,
    make,
    only,
    orders,
    ready,
)

WEST = "clusterconnection.west"


def reload(rig: Rig, host: Host, *connections: ClusterConnectionConfig) -> None:
    node = node_of(host)
    config = copy.copy(node.config)
    config.cluster = copy.copy(config.cluster)
    assert config.cluster is not None
    config.cluster.cluster_connections = list(connections)
    node.on_reload(rig.world.now, config)
    host.flush_later()
    rig.run(1)


def east() -> ClusterConnectionConfig:
    return connection("east", "n0", [], "east")


def west() -> ClusterConnectionConfig:
    return connection("west", "n0west", [], "west")


def names(rig: Rig) -> list[str]:
    return list(rig.get(rig.hosts[0], "broker", "ClusterConnectionNames"))


def forwards(rig: Rig, side: str, there: Host, body: bytes) -> None:
    """A message from n0 reaches a consumer of that cluster."""
    reader = rig.client(there)
    reader.consume(f"{side}.orders")
    rig.run(1)
    rig.stored(rig.hosts[0], f"{side}.orders", [body])
    rig.until(lambda: body in reader.bodies)
    reader.close()
    rig.run(1)


def test_one_is_removed_when_it_is_empty_and_added_again(rig: Rig) -> None:
    here, there, beyond = make(rig)
    forwards(rig, "west", beyond, b"first")
    reload(rig, here, east())
    assert names(rig) == ["east"]
    assert not [name for name in node_of(here).broker.queues if ".sf.west." in name]
    rig.stored(here, "west.orders", [b"stays"])
    rig.run(5)
    assert count(here, "west.orders") == 1
    forwards(rig, "east", there, b"second")
    reload(rig, here, east(), west())
    assert names(rig) == ["east", "west"] and rig.get(here, WEST, "Started") is True
    rig.until(lambda: all(ready(host) for host in rig.hosts))
    forwards(rig, "west", beyond, b"third")
    forwards(rig, "east", there, b"fourth")
    here.crash()
    here.start()
    rig.run(5)
    assert names(rig) == ["east", "west"]


def test_one_whose_members_have_messages_to_come_stays_until_they_are_gone(rig: Rig) -> None:
    here, _, beyond = make(rig)
    beyond.crash()
    rig.run(1)
    [cluster] = [each for each in clusters(here) if each.config.name == "west"]
    forward = cluster.forward_name("node-2")
    rig.ask(here, f"queue.{forward}", "pause")
    message = rig.client(here)
    message.publish(forward, b"coffee")
    rig.until(lambda: count(here, forward) == 1)
    reload(rig, here, east())
    assert names(rig) == ["east", "west"]
    [line] = rig.events("cluster_connection_kept")
    assert f"{forward} (1)" in line and "read the configuration again" in line
    rig.ask(here, f"queue.{forward}", "removeAllMessages")
    rig.run(1)
    reload(rig, here, east())
    assert names(rig) == ["east"]


def test_the_first_one_and_what_members_know_the_node_by_wait_for_a_restart(rig: Rig) -> None:
    here = make(rig)[0]
    reload(rig, here, west())
    changed = west()
    changed.max_hops = 2
    reload(rig, here, east(), changed)
    assert names(rig) == ["east", "west"] and rig.get(here, WEST, "MaxHops") == 1
    assert len(rig.events("cluster_connection_kept")) == 2


def test_a_node_of_a_pair_takes_no_other_one(rig: Rig) -> None:
    here = rig.node(whole=only(east()), doors={"east": WEST_PORT}, queues=orders("east"))
    here.start()
    settings = node_of(here).config.cluster
    assert settings is not None
    settings.backed_up = True
    reload(rig, here, east(), west())
    assert names(rig) == ["east"]
