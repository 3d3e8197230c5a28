"""A client engine and a fake broker back to back: whatever one writes, the other gets at `run`."""

from __future__ import annotations

from typing import Any

from atalanta.message.codec import text_body
from atalanta.message.message import Message
from atalanta.wire.core.client.connection import BrokerConnection
from atalanta.wire.core.client.consumer import ClientConsumer, Delivery
from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.client.events import ClientEvents
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.session import ClientSession
from atalanta.wire.core.client.settings import ConnectionSettings, SessionSettings
from atalanta.wire.core.transport import TransportConfiguration
from tests.wire.core.client.fake_broker import PASSWORD, FakeBroker, FakeConnection

SECOND = 1_000_000_000


class Events(ClientEvents):
    """Notes what the engine says."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.errors: list[ClientError] = []

    def ready(self) -> None:
        self.told.append("ready")

    def broken(self, why: str) -> None:
        self.told.append(f"broken: {why}")

    def disconnected(
        self, reason: int, target_node_id: str | None, target: TransportConfiguration | None
    ) -> None:
        self.told.append(f"disconnected: {reason}")

    def session_error(self, channel: int, error: ClientError) -> None:
        self.errors.append(error)


class Pair:
    """`run` moves bytes until both are silent; `cut` loses the connection, `dial` makes a new one."""

    def __init__(self, resume: bool = True, **settings: Any) -> None:
        self.now = 0
        self.broker = FakeBroker()
        self.events = Events()
        self._out: list[bytes] = []
        self.client = BrokerConnection(
            self._out.append, ConnectionSettings(resume=resume, **settings), self.events
        )
        self.link: FakeConnection = self.broker.accept()

    def dial(self) -> None:
        self.link = self.broker.accept()
        self._out.clear()
        self.client.start(self.now)
        self.run()

    def cut(self, deliver: bool = False) -> None:
        """Lose the connection; with `deliver` what the client wrote still reaches the broker."""
        self.client.flush()
        if deliver:
            self.link.feed(b"".join(self._out))
        self._out.clear()
        self.link.close()
        self.client.lost(self.now, "cut")

    def run(self) -> None:
        while True:
            self.client.flush()
            if self._out:
                data = b"".join(self._out)
                self._out.clear()
                self.link.feed(data)
            elif self.link.out:
                data = b"".join(self.link.out)
                self.link.out.clear()
                self.client.feed(self.now, data)
            else:
                return

    def tick(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)
        self.client.on_timer(self.now)

    def session(self, transacted: bool = False, **settings: Any) -> ClientSession:
        wanted = SessionSettings(
            name="test",
            user="u",
            password=PASSWORD,
            auto_commit_sends=not transacted,
            auto_commit_acks=not transacted,
            **settings,
        )
        return self.client.session(wanted)


def connected(resume: bool = True, **settings: Any) -> Pair:
    """A pair whose connection stands."""
    pair = Pair(resume, **settings)
    pair.dial()
    return pair


def encoded(text: str, address: str = "q", duplicate_id: str | None = None) -> Message:
    """A text message, as the engine takes it."""
    message = Message.create(address, text_body(text), 3)
    if duplicate_id is not None:
        message.put_property("_AMQ_DUPL_ID", duplicate_id)
    return message


def taken(consumer: ClientConsumer) -> Delivery:
    """The next message, which must be there."""
    delivery = consumer.take()
    assert delivery is not None
    return delivery


def pending(reply: Reply) -> bool:
    """No answer yet."""
    return not reply.done
