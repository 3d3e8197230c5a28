"""Nodes in zones, and clients that prefer a zone."""

from __future__ import annotations

from atalanta.cluster.native_config import OwnZone
from atalanta.sim.host import Host
from atalanta.wire.core.packets.session import ZONES_ADDRESS
from tests.cluster.balancing.balancing_rig import settings
from tests.cluster.balancing.constant_clients import Accounts, Roamer
from tests.cluster.cluster_rig import Rig

STABILITY_MS = 10_000


class Resident(Roamer):
    """A client as `connect("…?zone=…")`: it tells in each connection that it reconnects, and which zones it prefers."""


def in_zones(rig: Rig, *zones: str, **options: object) -> list[Host]:
    """Started nodes, one in each of the zones named."""
    tables = {name: table for name, table in options.items() if isinstance(table, OwnZone)}
    plain = {name: value for name, value in options.items() if name not in tables}
    for zone in zones:
        own = settings(zone=zone, zone_stability_ms=STABILITY_MS, **plain)
        own.zones = tables
        rig.node(delay_ms=0, own=own)
    rig.form()
    rig.run(STABILITY_MS / 1_000 + 1)  # every zone is known, and was there for long enough
    return rig.hosts


def residents(
    rig: Rig, zones: str, target: str, count: int, accounts: Accounts, period_ns: int = 0
) -> list[Resident]:
    """Clients that connect to `target` and prefer these zones."""
    names = [host.name for host in rig.hosts]
    made = []
    for _ in range(count):
        rig.clients += 1
        one = Resident(rig, f"r{rig.clients}", target, names, accounts, period_ns=period_ns)
        one.default_address = f"{ZONES_ADDRESS}{zones}"
        one.was_at = ""
        one.start()
        made.append(one)
    rig.until(lambda: all(one.ready for one in made))
    return made
