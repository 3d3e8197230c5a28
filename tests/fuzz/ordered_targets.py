"""Fuzz in order: sessions of well-formed commands by users with no, few and all rights, over each protocol."""

from __future__ import annotations

import random
from typing import Protocol

from tests.fuzz.ordered_bridge import BridgeSessions
from tests.fuzz.ordered_core import CoreSessions
from tests.fuzz.ordered_openwire import OpenWireSessions
from tests.fuzz.ordered_stomp import StompSessions
from tests.fuzz.ordered_world import COMMANDS_OF_AN_INPUT, USERS, Choices, OrderedWorld
from tests.fuzz.target import Target

INPUTS_OF_A_WORLD = 40
RESTARTED_EVERY = 24
SEEDS = 40


class Sessions(Protocol):
    """A connection of the user of an input."""

    conn: int

    def step(self) -> None:
        """Sends one command."""


class OrderedTarget(Target):
    """The decisions of a session, a byte each. The world lives on; what must hold is checked after every input."""

    base_bytes = 8 << 20
    bytes_per_byte = 1024
    size_max = 400
    seconds = 5.0

    def __init__(self) -> None:
        self.inputs = 0
        self.commands = 0  # over all worlds
        self.world = OrderedWorld()

    def seeds(self) -> list[bytes]:
        source = random.Random(self.name)
        return [source.randbytes(4 + number % 20) for number in range(SEEDS)]

    def fresh(self) -> None:
        self.inputs = 0
        self.world = OrderedWorld()

    def stale(self) -> bool:
        """Also when users with all rights have left too little to the victims."""
        return self.inputs >= INPUTS_OF_A_WORLD or not self.world.victims.complete()

    def sessions(self, choices: Choices) -> Sessions:
        """Returns a new connection of the user, which has logged in."""
        raise NotImplementedError

    def summary(self) -> str:
        return f"{self.commands} commands"

    def run(self, data: bytes) -> None:
        self.inputs += 1
        choices = Choices(data)
        world = self.world
        world.begin(choices.of(USERS))
        connected = [self.sessions(choices)]
        for _ in range(COMMANDS_OF_AN_INPUT):
            one = choices.of(connected)
            if one.conn not in world.server.connections:
                connected = [each for each in connected if each.conn in world.server.connections]
                connected.append(self.sessions(choices))
                continue
            one.step()
            self.commands += 1
            if choices.below(4) == 0:
                world.turn()
        world.end([each.conn for each in connected])
        if choices.below(RESTARTED_EVERY) == 0 and world.victims.complete():
            world.victims.restart()
            self.inputs = INPUTS_OF_A_WORLD  # it has ended


class CoreOrderedTarget(OrderedTarget):
    """CORE in order."""

    name = "core in order"

    def sessions(self, choices: Choices) -> Sessions:
        return CoreSessions(self.world, choices)


class OpenWireOrderedTarget(OrderedTarget):
    """OpenWire in order."""

    name = "openwire in order"

    def sessions(self, choices: Choices) -> Sessions:
        return (OpenWireSessions if choices.below(3) else BridgeSessions)(self.world, choices)


class StompOrderedTarget(OrderedTarget):
    """STOMP in order."""

    name = "stomp in order"

    def sessions(self, choices: Choices) -> Sessions:
        return StompSessions(self.world, choices)
