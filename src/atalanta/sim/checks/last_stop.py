"""The end of some simulations: one node stops for good, and all others must forget it."""

from __future__ import annotations

from typing import Final

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.checks.views import wrong_views
from atalanta.sim.clients.client import SimClient
from atalanta.sim.host import Host
from atalanta.sim.world.world import SECOND, World

SHARE: Final = 0.2
SECONDS_MAX: Final = 30


def check_last_stop(world: World, hosts: list[Host], clients: list[SimClient]) -> None:
    """Raises Violation if a node or a client still knows the stopped node after SECONDS_MAX virtual seconds.

    A node on several machines does not stop: the other one goes on.
    """
    draw = world.random("farewell")  # the name decides the draws: a new one changes every listed seed
    if len(hosts) < 2 or draw.random() >= SHARE:
        return
    single = [each for each in hosts if not each.paired]
    if not single:
        return
    host = draw.choice(single)
    host.stop()
    wrong: list[str] = []
    for _ in range(SECONDS_MAX):
        world.run_until(world.now + SECOND)
        wrong = wrong_views(hosts, clients)
        if not wrong:
            return
    raise Violation(f"{host.name} has left {SECONDS_MAX} s ago: {wrong}")
