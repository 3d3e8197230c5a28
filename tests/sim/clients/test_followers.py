"""Clients of a node that leaves go to its target in the simulator, and come home."""

from __future__ import annotations

from atalanta.sim.checks.ledger import ORDERS, Ledger
from atalanta.sim.clients.senders import Sender
from atalanta.sim.scenario import Scenario
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.wire.core.packets.connection import REASON_SCALE_DOWN, REASON_SHUTDOWN
from atalanta.wire.core.transport import TransportConfiguration


def test_clients_follow_and_come_home() -> None:
    scenario = Scenario(7, 3, 12.0)
    outcome = scenario.run()
    clients = scenario._clients()
    assert outcome.departures > 0 and outcome.followed > 4
    assert any(each.followed and not each.abroad and each.target == each.home for each in clients)
    assert any(each.followed for each in scenario.producers)
    assert any(each.followed for each in scenario.consumers)


def sender(follows: bool) -> Sender:
    world = World(1)
    made = Sender(world, Network(world), "p", "n0", Ledger(world), ORDERS, 10, 1.0)
    made.follows = follows
    made.up = True
    return made


TARGET = TransportConfiguration.tcp("n1", "n1", 61616)


def test_only_a_departure_is_followed() -> None:
    for follows, reason in ((True, REASON_SHUTDOWN), (False, REASON_SCALE_DOWN)):
        made = sender(follows)
        made.on_disconnect_notice(reason, TARGET)
        assert made.target == "n0"


def test_a_sender_goes_home_when_nothing_is_open() -> None:
    made = sender(True)
    made.on_disconnect_notice(REASON_SCALE_DOWN, TARGET)
    assert made.target == "n1"
    made.open[3] = True
    made.world.run_until(made.world.now + 10_000_000_000)
    assert made.target == "n1" and made.leaving  # and begins nothing new
    made.open.clear()
    made.world.run_until(made.world.now + 1_000_000_000)
    assert made.target == "n0" and not made.leaving
