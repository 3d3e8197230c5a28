"""Commands that fail by an unexpected exception before they change anything: each may cost its connection only."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from atalanta.kernel import CurrentCommand

if TYPE_CHECKING:
    from atalanta.sim.world.world import World

SHARE: Final = 0.15  # of the simulations
# The generator that draws them. With this number no seed of tests/sim/seeds.txt has such commands: they stay the same.
DRAW: Final = "commands 234"
RATES: Final = (0.0005, 0.003)  # of the commands


class PlantedException(Exception):
    """The exception that is planted."""


class PlantedCommands(CurrentCommand):
    """The commands of a node of which some fail: before they are decoded, or when all is checked.

    `receiving`: the node processes what a connection sent. Timers and commits have no commands.
    """

    def __init__(self, random: Random, rate: float) -> None:
        super().__init__()
        self.random = random
        self.rate = rate
        self.receiving = False
        self.fails_late = False

    def begin(self) -> None:
        super().begin()
        self.fails_late = False
        if self.receiving and self.random.random() < self.rate:
            if self.random.random() < 0.5:
                raise PlantedException("planted before a command")
            self.fails_late = True

    def begin_change(self) -> None:
        if self.fails_late and not self.changing:
            self.fails_late = False
            raise PlantedException("planted at the change")
        super().begin_change()

    def end(self) -> None:
        super().end()
        self.fails_late = False

    def heal(self) -> None:
        """Ends the failures."""
        self.rate = 0.0
        self.fails_late = False

    def receive(self, receiving: bool) -> None:
        """Records whether the node processes what a connection sent."""
        self.receiving = receiving
        self.fails_late = False


def draw_commands(world: World, name: str) -> PlantedCommands | None:
    """Returns the commands of a node of that name; None if the seed plants no exceptions."""
    draw = Random(f"{world.seed}/{DRAW}")
    if draw.random() >= SHARE:
        return None
    return PlantedCommands(Random(f"{world.seed}/commands/{name}"), draw.choice(RATES))
