"""STOMP clients of a server without sockets, beside its CORE clients: frames in, frames out."""

from __future__ import annotations

from atalanta.kernel.routing.wildcard import WildcardConfiguration
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.message import Message
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.stomp.acceptor import StompAcceptor
from atalanta.wire.stomp.protocol import StompProtocol
from tests.wire.core.server.server_rig import Client, Server


class Reply:
    """A frame of the server. `raw` is the head as sent; headers are unescaped as STOMP 1.2 wants it."""

    def __init__(self, raw: bytes, body: bytes) -> None:
        self.raw = raw
        lines = raw.decode().split("\n")
        self.command = lines[0]
        self.headers: dict[str, str] = {}
        for line in lines[1:]:
            if line:
                name, _, value = line.partition(":")
                self.headers.setdefault(plain(name), plain(value))
        self.body = body

    def __getitem__(self, name: str) -> str:
        return self.headers[name]

    def __repr__(self) -> str:
        return f"{self.command} {self.headers} {self.body!r}"


def plain(text: str) -> str:
    """The text without escapes."""
    parts = text.split("\\\\")
    for code, value in (("\\n", "\n"), ("\\c", ":"), ("\\r", "\r")):
        parts = [part.replace(code, value) for part in parts]
    return "\\".join(parts)


def replies(data: bytes) -> list[Reply]:
    """The frames of a server's output, without heart-beats."""
    found = []
    data = data.lstrip(b"\n")
    while data:
        raw, rest = data[: data.index(b"\n\n")], data[data.index(b"\n\n") + 2 :]
        size = rest.find(b"\0")
        for line in raw.split(b"\n"):
            if line.startswith(b"content-length:"):
                size = int(line[15:])
        assert rest[size : size + 1] == b"\0", raw
        found.append(Reply(raw, rest[:size]))
        data = rest[size + 1 :].lstrip(b"\n")
    return found


def frame(command: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """A frame as a client sends it; the values are escaped by the caller."""
    lines = [command, *(f"{name}:{value}" for name, value in headers.items())]
    return "\n".join(lines).encode() + b"\n\n" + body + b"\0"


def publish(core: Client, message: Message) -> None:
    """Sends a message of a CORE client, which gets an answer."""
    core.succeeds(SendMessage(message, requires_response=True, correlation=1, sender_id=0))


def received(core: Client) -> list[Message]:
    """The messages that a CORE client got since the last look."""
    core.server.settle()
    return [delivery.message for delivery in core.deliveries()]


class StompServer(Server):
    """A broker with CORE and STOMP at one acceptor."""

    def _host(self) -> None:
        super()._host()
        self.stomp = StompProtocol(self.host, self.timers)
        self.host.protocols.append(self.stomp)

    def stomp_client(self, version: str = "1.2", **more: str) -> StompClient:
        """A client that has logged in."""
        client = StompClient(self)
        headers = {"login": "admin", "passcode": "admin", "host": "h", **more}
        if version:
            headers["accept-version"] = version
        client.send("CONNECT", **headers)
        answer = client.one()
        assert answer.command == "CONNECTED", answer
        client.connected = answer
        return client

    def beat(self) -> None:
        """The timers of the protocol that are due."""
        for key, due in list(self.timers.due.items()):
            if key.startswith("wire.stomp") and due <= self.now:
                self.timers.cancel(key)
                self.stomp.on_timer(self.now, key)


def door(**options: object) -> AcceptorConfig:
    """An acceptor with these options of STOMP."""
    acceptor = AcceptorConfig("front", "0.0.0.0", 1)
    acceptor.options_by_protocol[StompAcceptor] = StompAcceptor(**options)  # type: ignore[arg-type]
    return acceptor


def classic_server(settings: AddressSettingsRepository | None = None, **options: object) -> StompServer:
    """A server as an activemq.xml makes it: Classic's wildcards, and its STOMP."""
    config = BrokerConfig(wildcard=WildcardConfiguration(any_words=">"))
    settings = AddressSettingsRepository(config.wildcard) if settings is None else settings
    return StompServer(config, settings, door(classic=True, **options))


class StompClient:
    """One STOMP connection, seen from its other end. Header names in small letters are written with `_` for `-`."""

    connected: Reply

    def __init__(self, server: StompServer) -> None:
        self.server = server
        self.conn = server.connect().conn
        self.pending: list[Reply] = []  # messages that came with a receipt

    def feed(self, data: bytes) -> None:
        self.server.data(self.conn, data)

    def send(self, command: str, body: bytes | str = b"", **headers: str) -> None:
        data = body.encode() if isinstance(body, str) else body
        named = {name.replace("_", "-") if name.islower() else name: value for name, value in headers.items()}
        self.feed(frame(command, named, data))

    @property
    def closed(self) -> str | None:
        """The reason why the server closed this connection, None if it did not."""
        return self.server.wire.closed.get(self.conn)

    def output(self) -> bytes:
        """The bytes since the last call; ends the turn first."""
        self.server.turn()
        return b"".join(self.server.wire.written.pop(self.conn, []))

    def frames(self) -> list[Reply]:
        """The frames since the last call, when everything is on disk."""
        self.server.settle()
        found = self.pending + replies(self.output())
        self.pending = []
        return found

    def one(self) -> Reply:
        """The only frame since the last call."""
        found = self.frames()
        assert len(found) == 1, found
        return found[0]

    def messages(self) -> list[Reply]:
        """The messages since the last call, and nothing else."""
        found = self.frames()
        assert all(each.command == "MESSAGE" for each in found), found
        return found

    def texts(self) -> list[str]:
        """The bodies of the messages since the last call."""
        return [message.body.decode() for message in self.messages()]

    def receipt(self, command: str, body: bytes | str = b"", **headers: str) -> None:
        """Sends a frame and gets its receipt; messages that come with it are seen later."""
        self.send(command, body, receipt="r", **headers)
        found = self.frames()
        receipts = [answer for answer in found if answer.command == "RECEIPT"]
        assert [answer["receipt-id"] for answer in receipts] == ["r"], found
        self.pending = [answer for answer in found if answer.command != "RECEIPT"]

    def error(self, command: str, body: bytes | str = b"", **headers: str) -> str:
        """Sends a frame that is refused; returns the sentence. The connection is closed."""
        self.send(command, body, **headers)
        answer = self.one()
        assert answer.command == "ERROR", answer
        assert self.closed is not None
        return answer["message"]

    def subscribe(self, destination: str, sub_id: str = "1", **headers: str) -> None:
        self.receipt("SUBSCRIBE", destination=destination, id=sub_id, **headers)
