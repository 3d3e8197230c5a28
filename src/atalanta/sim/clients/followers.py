"""The choice of clients that connect to the target of a scale-down and return later (SimClient.on_disconnect_notice).

Log readers do not follow, since their checkpoints are of one node's queue. Managers of XA branches do not either.
"""

from __future__ import annotations

from typing import Final

from atalanta.sim.clients.client import SimClient
from atalanta.sim.clients.jobs import SimConsumer
from atalanta.sim.clients.mover import OrderMover
from atalanta.sim.clients.senders import Sender
from atalanta.sim.world.world import World

WORLDS: Final = 0.5  # of the simulations with scale-down
CLIENTS: Final = 0.7  # of the clients in such a simulation


def choose_followers(world: World, clients: list[SimClient], departures: bool) -> bool:
    """Draws the clients that follow. Returns True if this simulation has any."""
    draw = world.random("followers")
    if not departures or draw.random() >= WORLDS:
        return False
    for client in clients:
        if isinstance(client, Sender | SimConsumer | OrderMover):
            client.follows = draw.random() < CLIENTS
    return True
