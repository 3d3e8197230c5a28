"""Cluster connections that are allowed, and most likely not meant: told at start and by `atalanta check`."""

from __future__ import annotations

from pathlib import Path

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.config.checks.cluster_connections import link_warnings
from atalanta.config.configuration import Configuration
from atalanta.kernel.settings.broker_config import AddressConfig
from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig


def configured(
    *connections: tuple[str, str], addresses: tuple[str, ...] = (), doors: tuple[str | None, ...] = ()
) -> list[str]:
    configuration = Configuration(Path("broker.xml"), Path())
    for name, address in connections:
        configuration.cluster_connections.append(ClusterConnectionConfig(name, address))
    configuration.broker.addresses = [AddressConfig(name) for name in addresses]
    for number, connection in enumerate(doors):
        acceptor = AcceptorConfig(f"a{number}", "0.0.0.0", 61616 + number)
        acceptor.cluster_connection = connection
        configuration.acceptors.append(acceptor)
    return link_warnings(configuration)


def test_one_connection_for_everything_is_what_most_have() -> None:
    assert configured(("all", ""), addresses=("orders",), doors=(None,)) == []


def test_overlapping_addresses() -> None:
    (told,) = configured(("a", "eu"), ("b", "eu.uk"), addresses=("eu.uk.x",), doors=("a", "b"))
    assert "'a' and 'b' share addresses that begin with 'eu.uk'" in told


def test_an_address_that_covers_no_configured_queue() -> None:
    (told,) = configured(("all", "eu"), addresses=("orders",), doors=(None,))
    assert "no configured queue has an address that 'eu' covers" in told
    assert configured(("all", "eu"), addresses=("eu.orders",), doors=(None,)) == []
    assert configured(("all", "!eu"), addresses=("eu.orders",), doors=(None,)) == []
    assert configured(("all", "eu"), doors=(None,)) == []


def test_a_second_connection_without_an_acceptor() -> None:
    (told,) = configured(("a", "eu"), ("b", "us"), addresses=("eu.x", "us.x"), doors=(None,))
    assert "cluster-connection 'b' has no acceptor (clusterConnection=b)" in told


def test_a_connector_that_leads_to_the_other_connections_acceptor() -> None:
    configuration = Configuration(Path("broker.xml"), Path())
    for name, address in (("east", "eu"), ("west", "us")):
        configuration.cluster_connections.append(ClusterConnectionConfig(name, address, name))
    for name, serves, port in (("a", "west", 61616), ("b", "east", 61617)):
        acceptor = AcceptorConfig(name, "0.0.0.0", port)
        acceptor.cluster_connection = serves
        configuration.acceptors.append(acceptor)
    configuration.connectors["east"] = ConnectorConfig("east", "host", 61616)
    configuration.connectors["west"] = ConnectorConfig("west", "host", 61617)
    first, second = link_warnings(configuration)
    assert first.endswith("leads to acceptor 'a' of cluster-connection 'west'")
    assert second.endswith("leads to acceptor 'b' of cluster-connection 'east'")
    configuration.connectors["east"].port, configuration.connectors["west"].port = 61617, 61616
    assert link_warnings(configuration) == []
