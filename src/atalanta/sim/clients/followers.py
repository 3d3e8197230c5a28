"""Which clients follow a node that leaves to its target, and come home later (SimClient.on_goodbye).

Not those with a place in mind: log readers, whose checkpoints are of one node's queue, and managers of XA branches.
"""

from __future__ import annotations

from typing import Final

from atalanta.sim.clients.client import SimClient
from atalanta.sim.clients.jobs import Consumer
from atalanta.sim.clients.mover import Mover
from atalanta.sim.clients.senders import Sender
from atalanta.sim.loads.groups import GroupSender
from atalanta.sim.world.world import World

WORLDS: Final = 0.5  # of those where nodes leave
CLIENTS: Final = 0.7  # of such a world


def choose_followers(world: World, clients: list[SimClient], departures: bool) -> bool:
    """Whether any do in this world."""
    draw = world.random("followers")
    if not departures or draw.random() >= WORLDS:
        return False
    for client in clients:
        if isinstance(client, Sender | Consumer | Mover | GroupSender):
            client.follows = draw.random() < CLIENTS
    return True
