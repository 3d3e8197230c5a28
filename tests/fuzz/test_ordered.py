"""Fuzz in order sees its faults: worlds with one right too many, or with a planted exception, are found out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.kernel.journal import records
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.security.security import CONSUME, MANAGE
from atalanta.wire.openwire.bridge_filter import TTL_MAX
from atalanta.wire.openwire.commands.brokers import NetworkBridgeFilter
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from atalanta.wire.openwire.options import INT_MAX, INT_MIN
from tests.fuzz.ordered_bridge import BridgeSessions
from tests.fuzz.ordered_core import CHANNEL, CoreSessions
from tests.fuzz.ordered_openwire import OpenWireSessions
from tests.fuzz.ordered_stomp import StompSessions
from tests.fuzz.ordered_targets import Sessions
from tests.fuzz.ordered_victims import AFTER_RESTART, CLOSED, SHARED, confirmed
from tests.fuzz.ordered_world import COMMANDS_OF_AN_INPUT, LOW, Choices, OrderedWorld

INPUTS_MAX = 300
Made = Callable[[OrderedWorld, Choices], Sessions]


def attack(world: OrderedWorld, made: Made, inputs: int = INPUTS_MAX, user: str = LOW) -> None:
    """Runs inputs of a user. AssertionError: what must hold does not."""
    for number in range(inputs):
        choices = Choices(b"%d" % number)
        world.begin(user)
        one = made(world, choices)
        for _ in range(COMMANDS_OF_AN_INPUT):
            if one.conn in world.server.connections:
                one.step()
        world.end([one.conn])


def allow(world: OrderedWorld, address: str, permission: str) -> None:
    """Gives the user with few rights one more."""
    world.server.security.add_rule(address, {permission: ["admin", "victim", "bridge", "low"]})


@pytest.mark.parametrize("made", [CoreSessions, OpenWireSessions, BridgeSessions, StompSessions])
def test_a_user_with_few_rights_changes_nothing(made: Made) -> None:
    attack(OrderedWorld(), made, 10)


# -- bridges of a network -------------------------------------------------------------------------
def test_a_bridge_that_takes_a_queue_is_seen() -> None:
    world = OrderedWorld()
    allow(world, "secret.a", CONSUME)
    with pytest.raises(AssertionError, match=r"got .*SECRETBODY|changed secret.a"):
        attack(world, BridgeSessions)


def test_a_bridge_that_is_told_of_a_subscription_is_seen() -> None:
    world = OrderedWorld()
    allow(world, "hidden.t", CONSUME)
    with pytest.raises(AssertionError, match="SECRETNAME"):
        attack(world, BridgeSessions)


def test_a_bridge_that_takes_up_a_subscription_is_seen() -> None:
    """It is one of an older build, which belongs to everybody."""
    world = OrderedWorld()
    changes = QueueChanges()
    changes.user = ""
    world.server.broker.queue_registry.update(world.server.now, world.victims.kept, changes)
    with pytest.raises(AssertionError, match=r"got .*SECRETBODY|changed NC_near"):
        attack(world, BridgeSessions)


def test_a_neighbour_that_clients_are_told_of_is_seen() -> None:
    world = OrderedWorld()
    allow(world, "activemq.management", MANAGE)
    with pytest.raises(AssertionError, match="changed neighbours"):
        attack(world, LoggedIn)


class LoggedIn(BridgeSessions):
    """A bridge that only logs in."""

    def step(self) -> None:
        return None


# -- transactions -----------------------------------------------------------------------------------
@pytest.mark.parametrize("made", [CoreSessions, OpenWireSessions])
def test_a_branch_that_somebody_else_ends_is_seen(made: Made) -> None:
    world = OrderedWorld()
    allow(world, "activemq.management", MANAGE)
    with pytest.raises(AssertionError, match=r"changed (branch|heuristic)|got .*SECRETNAME|changed secret.(in|out)"):
        attack(world, made)


# -- ids --------------------------------------------------------------------------------------------
def test_the_id_of_an_application_that_is_used_before_is_seen() -> None:
    for made in (CoreMessages, StompSessions):
        world = OrderedWorld()
        allow(world, CLOSED, "send")
        with pytest.raises(AssertionError, match=f"an application was confirmed and is not in {CLOSED}"):
            attack(world, made)


def test_the_id_of_a_failover_client_that_is_used_before_is_seen() -> None:
    with pytest.raises(AssertionError, match="of a failover client was confirmed and is not in shared.in"):
        attack(OrderedWorld(), Messages, user="victim")


class Messages(OpenWireSessions):
    """A client that sends to one queue only."""

    def step(self) -> None:
        made = self._message()
        made.destination, made.transaction_id = ActiveMQQueue(SHARED), None
        self._send(made)


def test_the_id_of_a_bridges_message_that_is_used_before_is_seen() -> None:
    world = OrderedWorld()
    allow(world, "ActiveMQ.Advisory.Consumer", CONSUME)
    with pytest.raises(AssertionError, match="of a bridge was confirmed and is not in shared.in"):
        attack(world, BroughtMessages)


class BroughtMessages(BridgeSessions):
    """A bridge that brings messages only."""

    def step(self) -> None:
        self._send(self._brought())


def test_the_id_of_a_members_message_that_is_used_before_is_seen() -> None:
    world = OrderedWorld()
    allow(world, "activemq.management", MANAGE)
    with pytest.raises(AssertionError, match="of a member was confirmed and is not in shared.in"):
        attack(world, CoreMessages)


class CoreMessages(CoreSessions):
    """A client that sends messages only."""

    def step(self) -> None:
        self.client.send(self._message(), CHANNEL)


@pytest.mark.parametrize(("user", "address", "header", "lost"), [
    ("admin", CLOSED, "DUPL_ID", "an application"), ("cluster", SHARED, "BRIDGE_DUP", "a member"),
])  # fmt: skip
def test_an_id_that_was_used_before_a_restart_is_seen(user: str, address: str, header: str, lost: str) -> None:
    world = OrderedWorld()
    client = world.server.login(user, "secret" if user == "cluster" else user)
    word: str | bytes = f"once-{AFTER_RESTART}" if user == "admin" else f"member-{AFTER_RESTART}".encode()
    confirmed(client, address, header, word)
    with pytest.raises(AssertionError, match=f"{lost} was confirmed and is not in {address}"):
        world.victims.restart()


def test_a_restart_that_loses_something_is_seen() -> None:
    world = OrderedWorld()
    journal = world.server.journal
    journal.records = [record for record in journal.records if record[1] != records.XA_PREPARED]
    with pytest.raises(AssertionError, match="a restart changed branch 4"):
        world.victims.restart()


# -- numbers ----------------------------------------------------------------------------------------
def test_numbers_at_the_edges_are_sent() -> None:
    """In the filter of a consumer, in the options of a network and in paths."""
    ttls: dict[int, bool] = {}
    options: dict[tuple[str, str], bool] = {}
    paths: dict[int, bool] = {}
    one = BridgeSessions(OrderedWorld(), Choices(b"1"))
    for _ in range(2_000):
        options.update(dict.fromkeys(one._properties().items(), True))
        for info in (one._consumer(), one._demand()):
            predicate = info.additional_predicate
            if isinstance(predicate, NetworkBridgeFilter):
                ttls.update(dict.fromkeys((predicate.message_ttl, predicate.consumer_ttl, predicate.network_ttl), True))
            paths[len(info.broker_path or [])] = True
    for name in ("messageTTL", "consumerTTL", "networkTTL", "prefetchSize", "advisoryPrefetchSize"):
        values = {value for key, value in options if key == name}
        assert {str(INT_MAX), "-1", str(INT_MIN)} <= values, name
    assert {INT_MAX, -1, INT_MIN, TTL_MAX, TTL_MAX + 1} <= set(ttls)
    assert {0, 64, 999, 1_000, 1_001, 1_500} <= set(paths)


def test_an_exception_for_a_number_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a selector of that many parts were made: the commands of the session reach it."""
    world = OrderedWorld()
    plain = OpenWireSessions._send

    def send(self: OpenWireSessions, command: object) -> None:
        if isinstance(command, ConsumerInfo) and isinstance(command.additional_predicate, NetworkBridgeFilter):
            assert command.additional_predicate.message_ttl <= TTL_MAX, "too many parts"
        plain(self, command)  # type: ignore[arg-type]

    monkeypatch.setattr(OpenWireSessions, "_send", send)
    with pytest.raises(AssertionError, match="too many parts"):
        attack(world, OpenWireSessions)
