"""Sessions of STOMP in a valid order, with hostile values."""

from __future__ import annotations

from atalanta.wire.stomp.frame import V12, encoded_frame
from tests.fuzz.ordered_victims import CLOSED, SHARED
from tests.fuzz.ordered_world import Choices, OrderedWorld
from tests.wire.stomp.stomp_rig import StompClient

COMMANDS = (
    "SEND", "SEND", "SEND", "SUBSCRIBE", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT",
    "DISCONNECT",
)  # fmt: skip
PREFIXES = ("", "/queue/", "/topic/", "/temp-queue/", "/temp-topic/", "queue://", "/remote-temp-queue/", "/dsub/")
# Headers by command, with those that the broker understands.
HEADERS = {
    "SEND": ("persistent", "expires", "priority", "reply-to", "correlation-id", "type", "receipt", "transaction",
             "destination-type", "JMSXGroupID", "JMSXGroupSeq", "AMQ_SCHEDULED_DELAY", "_AMQ_GROUP_ID", "n",
             "content-type", "amq-msg-type", "_AMQ_ROUTING_TYPE", "_AMQ_SCHED_DELIVERY", "timestamp", "message-id"),
    "SUBSCRIBE": ("ack", "selector", "receipt", "durable-subscription-name", "activemq.subscriptionName", "no-local",
                  "activemq.prefetchSize", "consumer-window-size", "subscription-type", "client-id", "browser",
                  "activemq.noLocal", "activemq.exclusive", "activemq.priority"),
    "UNSUBSCRIBE": ("receipt", "durable-subscription-name", "destination"),
    "ACK": ("transaction", "receipt", "subscription", "message-id"),
    "NACK": ("transaction", "receipt", "requeue", "subscription"),
    "DISCONNECT": ("receipt",),
}  # fmt: skip
IDS = ("1", "2", "3", "victim", "x" * 2_000)
TRANSACTIONS = ("t", "u", "x" * 2_000)


class StompSessions:
    """One connection of a user."""

    def __init__(self, world: OrderedWorld, choices: Choices) -> None:
        self.world = world
        self.choices = choices
        self.client = StompClient(world.server)
        self.conn = self.client.conn
        headers = [("login", world.user), ("passcode", world.user)]
        headers.append(("accept-version", choices.of(("1.0", "1.1", "1.2"))))
        for name in ("client-id", "request-id"):
            if choices.below(4) == 0:
                headers.append((name, choices.of(("victim", "failover", choices.text()))))
        if choices.below(4) == 0:
            beats = choices.of(("9223372036854775807,1", "-1,0", choices.text()))
            headers.append(("heart-beat", choices.of(("1,1", "0,500")) if choices.below(4) else beats))
        self._send("CONNECT", headers)
        world.turn()

    def step(self) -> None:
        """Sends one frame."""
        choices = self.choices
        command = choices.of(COMMANDS) if choices.below(40) else "DISCONNECT"
        if command == "DISCONNECT" and choices.below(5):
            command = "SEND"
        headers: list[tuple[str, str]] = []
        if command in ("SEND", "SUBSCRIBE"):
            headers.append(("destination", choices.of(PREFIXES) + choices.name()))
        if command in ("SUBSCRIBE", "UNSUBSCRIBE"):
            headers.append(("id", choices.of(IDS)))
        if command in ("ACK", "NACK"):
            live = list(self.world.server.broker.store.messages) or [1]
            headers.append(("id", f"{choices.below(4)},{choices.of(live) if choices.flag() else choices.number()}"))
        if command in ("BEGIN", "COMMIT", "ABORT"):
            headers.append(("transaction", choices.of(TRANSACTIONS)))
        if command == "SEND" and choices.below(3) == 0:
            headers[0] = ("destination", choices.of((SHARED, CLOSED)))
            ids = [each for each in self.world.victims.ids() if isinstance(each, str)]
            headers.append((choices.of(("_AMQ_DUPL_ID", "_AMQ_DUPL_ID", "_AMQ_BRIDGE_DUP")), choices.of(ids)))
        offered = HEADERS.get(command, ("receipt",))
        for _ in range(choices.below(4)):
            name = choices.of(offered)
            headers.append((name, self._value(name)))
        body = choices.of((b"", b"text", b"\x00\xff", b"x" * 4_000)) if command == "SEND" else b""
        self._send(command, headers, body)

    def _value(self, name: str) -> str:
        choices = self.choices
        if name == "selector":
            return choices.selector() or ""
        if name == "transaction":
            return choices.of(TRANSACTIONS)
        if name == "ack":
            return choices.of(("auto", "client", "client-individual", "x"))
        if name == "reply-to":
            return choices.of(PREFIXES) + choices.name()
        return choices.of((str(choices.number()), choices.text(), "true", "ANYCAST", "MULTICAST", "0"))

    def _send(self, command: str, headers: list[tuple[str, str]], body: bytes = b"") -> None:
        if b"\0" in body:
            headers.append(("content-length", str(len(body))))
        self.client.feed(encoded_frame(command, headers, body, V12))
