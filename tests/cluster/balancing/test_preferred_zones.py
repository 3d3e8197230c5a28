"""The zones that a client prefers, by what it names and by the tables of atalanta.toml."""

from __future__ import annotations

import pytest

from atalanta.cluster.balancing.preferred_zones import PreferredZones
from atalanta.cluster.native_config import OwnZone
from atalanta.kernel.sessions.client import Client
from tests.cluster.balancing.balancing_rig import settings


def preferred(**zones: OwnZone) -> PreferredZones:
    own = settings()
    own.zones = zones
    return PreferredZones(own)


@pytest.mark.parametrize(
    ("client_id", "user", "remote", "zones"),
    [
        ("east-17", "", "10.2.0.1:5", ("east", "west", "north")),
        ("northeast-17", "", "10.2.0.1:5", ()),
        ("x.orders.y", "", "10.2.0.1:5", ("east", "west", "north")),
        (None, "billing", "10.2.0.1:5", ("east", "west", "north")),
        (None, "bill", "10.1.255.1:5", ("west",)),
        (None, "bill", "[2001:db8::7]:5", ("west",)),
        (None, "bill", "[fe80::7%eth0]:5", ()),
        (None, "bill", "[::ffff:10.1.0.9]:5", ("west",)),
        (None, "bill", "a host:5", ()),
        ("east-17", "", "10.1.0.1:5", ("east", "west", "north")),  # the first table of the file
    ],
)
def test_the_first_table_that_matches_decides(
    client_id: str | None, user: str, remote: str, zones: tuple[str, ...]
) -> None:
    found = preferred(
        east=OwnZone(client_ids="east-*, *orders*", users="sales,billing", fallback="west, north"),
        west=OwnZone(networks="10.1.0.0/16, 2001:db8::/32"),
    )
    assert found.at_login(Client(1, remote), client_id, user) == zones


def test_without_tables_nobody_prefers_a_zone() -> None:
    assert preferred().at_login(Client(1, "10.1.0.1:5"), "a", "b") == ()


def test_what_the_client_names_counts_more_than_the_tables() -> None:
    client = Client(1, "10.1.0.1:5")
    client.zones = "north, ,south"
    assert preferred(east=OwnZone(users="b")).at_login(client, "a", "b") == ("north", "south")
