"""A server of every protocol for fuzz in order: users with no, few and all rights, and what belongs to others.

A victim of each protocol has what `ordered_victims.py` lists. Whatever the other users do with well-formed commands:
nothing is raised, nobody gets a message or makes a destination without the right to, what is the victims' stays as it
is, and the messages that they send afterwards are confirmed and there. So it is after a restart.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.security.security import PERMISSIONS
from tests.fuzz.ordered_victims import SECRETS, SHARED, Victims
from tests.kernel.broker_rig import SECOND
from tests.wire.mixed_server import MixedServer

T = TypeVar("T")
# Users: no rights, those on `pub.#`, all.
NONE, LOW, ALL = "guest", "low", "admin"
USERS = (NONE, LOW, LOW, LOW, LOW, ALL)
# Texts of a message may be longer than every client of OpenWire can be told: the advisory of its expiry is left out.
EXPIRED = "advisory with DeliveredMessage"
# What the node reports when an exception has been caught, or something could not be told to somebody.
FAILURES = ("command_failed", "command_left_out", "node_bug")
COMMANDS_OF_AN_INPUT = 50

NUMBERS = (
    0, 1, 2, 4, 9, -1, -2, 100, 127, 128, -128, 255, 1 << 15, (1 << 15) - 1, 1 << 16, 1 << 30, (1 << 31) - 1, 1 << 31,
    -(1 << 31), (1 << 32) + 1, 1_700_000_000_000, 1 << 53, (1 << 62), (1 << 63) - 1, -(1 << 63),
    64, 65, -129, (1 << 16) - 1, -(1 << 31) + 1,
)  # fmt: skip
NAMES = (
    "pub.a", "pub.b", "pub.t", "pub.*", "pub.#", "pub.>", "pub.a::pub.b", "pub.a,pub.b", SHARED, "secret.a",
    "pub.a?x=1", "secret.in", "secret.once", "ID:victim-3:1",
    "secret.t", "secret.a::secret.a", "secret.#", "secret.>", "#", ">", "*", "victim.sub", "secret.t::victim.sub",
    "activemq.management", "activemq.notifications", "$.artemis.internal.sf.x", "$sys.x", "DLQ", "ActiveMQ.DLQ",
    "ActiveMQ.Advisory.>", "ActiveMQ.Advisory.Consumer.Queue.secret.a", "Consumer.a.VirtualTopic.b", "VirtualTopic.b",
    "ID:victim:1:1", "a", "::", "a::", "::a", "pub." + "x" * 1_100, "x" * 2_000, "pub." + "é" * 1_000, "\u0000",
    "\ud800", "pub.\n:\\", "pub.a,queue://secret.a", "queue://secret.a", "topic://secret.t", "temp-queue://ID:victim:1:1",
)  # fmt: skip
TEXTS = (
    *NAMES[:12], "", "text", "é" * 400, "x" * 40_000, "victim", "ID:victim:1", "admin", "\u0000\ud800", "true", "-1",
)  # fmt: skip
SELECTORS = (
    None, None, "", "n = 1", "n > 1 AND", "JMSPriority > 3", "x LIKE '%a%'", "n = '" + "x" * 20_000 + "'", "(" * 300,
    "AMQUserID = 'victim'", "NOT " * 200 + "TRUE", "n BETWEEN -9223372036854775808 AND 1e308", "é = 'é'",
    "JMSTimestamp + 9223372036854775807 > 0", "n = 1 / 0",
)  # fmt: skip


class Choices:
    """Decisions: the bytes of an input, one each, then those of a generator that the input seeds."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._random = random.Random(data)

    def below(self, count: int) -> int:
        if self._at < len(self._data):
            self._at += 1
            return self._data[self._at - 1] % count
        return self._random.randrange(count)

    def of(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def flag(self) -> bool:
        return self.below(2) == 1

    def number(self, bits: int = 64) -> int:
        """A number that a signed field of so many bits can have."""
        value = self.of(NUMBERS)
        return value if -(1 << (bits - 1)) <= value < 1 << (bits - 1) else self.below(5)

    def name(self) -> str:
        """A destination: the user with few rights has some on every second one."""
        return self.of(NAMES[:9]) if self.flag() else self.of(NAMES)

    def text(self) -> str:
        return self.of(TEXTS)

    def selector(self) -> str | None:
        return self.of(SELECTORS)


class OrderedWorld:
    """The server with its victims. `user` is that of the input in progress."""

    def __init__(self) -> None:
        self.server = server = MixedServer()
        security = server.security
        security.add_user("low", "low", ["low"])
        security.add_rule("pub.#", {permission: ["admin", "low"] for permission in PERMISSIONS})
        self.victims = Victims(server)
        self.user = ALL
        self.addresses: dict[str, bool] = {}
        self.queues: dict[str, bool] = {}
        self.noted: dict[str, object] = {}
        self.present: list[int] = []

    # -- one input ------------------------------------------------------------------------------
    def begin(self, user: str) -> None:
        """Notes what there is before the input of that user."""
        self.user = user
        broker = self.server.broker
        self.addresses = dict.fromkeys(broker.addresses, True)
        self.queues = dict.fromkeys(broker.queues, True)
        self.present = [conn for conn in self.victims.conns if conn in self.server.connections]
        self.noted = self.victims.state()
        self.victims.begin(user != ALL)

    def turn(self) -> None:
        """Ends a turn. The commands of the input so far have their effect; what is sent to its user is looked at."""
        server = self.server
        if server.passwords.waiting:
            server.verify()
        server.settle()
        for conn, written in server.wire.written.items():
            if conn not in self.victims.conns and self.user != ALL:
                sent = b"".join(written)
                found = [secret for secret in SECRETS if secret in sent]
                assert not found, f"{self.user} got {found} of a victim"

    def end(self, conns: list[int]) -> None:
        """Ends the connections of the input, and checks what must hold."""
        server = self.server
        self.turn()
        server.now += SECOND
        server.beat()
        self.turn()
        self._check_destinations()
        self._check_victims()
        for conn in conns:
            if conn in server.connections:
                server.lost(conn)
        server.settle()
        self._check_victims()
        if self.user != ALL and self.victims.can_send():
            self.victims.send()
        failures = [
            (name, fields)
            for name, fields in server.trace.events
            if name in FAILURES and fields.get("command") != EXPIRED
        ]
        assert not failures, failures
        server.trace.events.clear()
        server.wire.written.clear()
        validate(server.broker)

    def _check_victims(self) -> None:
        """The victims are connected, and have what they had."""
        if self.user == ALL:
            return
        server = self.server
        for conn in self.present:
            assert conn in server.connections, f"{self.user} ended a victim: {server.wire.closed.get(conn)}"
        state = self.victims.state()
        for name, value in self.noted.items():
            assert state.get(name) == value, f"{self.user} changed {name}: {value} to {state.get(name)}"

    def _check_destinations(self) -> None:
        """The destinations that are new: the user must have the right to make them."""
        if self.user == ALL:
            return
        broker = self.server.broker
        allowed = "pub." if self.user == LOW else None
        for name in broker.addresses:
            assert name in self.addresses or (allowed and name.startswith(allowed)), f"{self.user} made address {name}"
        for name, queue in broker.queues.items():
            address = queue.spec.address
            assert name in self.queues or (allowed and address.startswith(allowed)), f"{self.user} made queue {name}"
