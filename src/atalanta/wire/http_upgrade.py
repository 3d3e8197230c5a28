"""CORE behind an HTTP request, as WildFly's http-connector and http-acceptor have it: both ends, without sockets.

The client asks `GET /` with `Upgrade: activemq-remoting` and a key; the answer 101 proves by a hash of the key that it
comes from a broker, and then both speak CORE (Artemis' NettyConnector.HttpUpgradeHandler). h11 reads and writes HTTP;
it is imported by who speaks HTTP: that takes longer than all the rest of a client's start.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final

from atalanta.wire.connection import ProtocolError

if TYPE_CHECKING:
    import h11

PROTOCOL: Final = "activemq-remoting"
KEY: Final = b"sec-activemqremoting-key"
ACCEPT: Final = b"sec-activemqremoting-accept"
MAGIC: Final = "CF70DEB8-70F9-4FBA-8B4F-DFC3E723B4CD"
HEAD_BYTES_MAX: Final = 8 * 1024
KEY_BYTES_MAX: Final = 128
NONCE_BYTES: Final = 16

ENABLED: Final = "httpUpgradeEnabled"
ENDPOINT: Final = "httpUpgradeEndpoint"
SERVER_NAME: Final = "activemqServerName"


def accept_of(key: str) -> str:
    """What a broker answers to `key`."""
    digest = hashlib.sha1((key + MAGIC).encode("utf-8"), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode("ascii")


def _next_event(http: h11.Connection, data: bytes | None = None) -> object:
    """What the other side says, with these bytes of it. ProtocolError if it is no HTTP."""
    import h11

    try:
        if data is not None:
            http.receive_data(data)
        return http.next_event()
    except h11.RemoteProtocolError as error:
        raise ProtocolError(f"HTTP: {error}") from error


class UpgradeAnswer:
    """The broker's end: `feed` until `done`; then `answer` is to be written and `rest` is CORE."""

    def __init__(self) -> None:
        import h11

        self.done: bool = False
        self.answer: bytes = b""
        self.rest: bytes = b""
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)

    def feed(self, data: bytes) -> None:
        """Bytes of the client. ProtocolError for any request but the one that asks for CORE."""
        import h11

        event = _next_event(self._http, data)
        if event is h11.NEED_DATA:
            return
        if not isinstance(event, h11.Request):
            raise ProtocolError("HTTP: no request")
        headers = dict(event.headers)
        wanted = headers.get(b"upgrade", b"").decode("latin-1").lower()
        if event.method != b"GET" or wanted != PROTOCOL:
            raise ProtocolError(f"HTTP: a request without 'Upgrade: {PROTOCOL}'")
        key = headers.get(KEY, b"")
        if not key or len(key) > KEY_BYTES_MAX:
            raise ProtocolError("HTTP: the upgrade has no key, or one that is too long")
        body = _next_event(self._http)
        if not isinstance(body, h11.EndOfMessage):
            raise ProtocolError("HTTP: an upgrade request has no body")
        answer = h11.InformationalResponse(
            status_code=101,
            reason=b"Switching Protocols",
            headers=[
                ("Upgrade", PROTOCOL),
                ("Connection", "Upgrade"),
                ("Sec-ActiveMQRemoting-Accept", accept_of(key.decode("latin-1"))),
            ],
        )
        self.answer = self._http.send(answer) or b""
        self.rest, _ = self._http.trailing_data
        self.done = True


class UpgradeRequest:
    """The dialling end: write `request`, `feed` until `done`; then `rest` is CORE."""

    def __init__(self, host: str, nonce: bytes, endpoint: str = "", server_name: str = "") -> None:
        import h11

        self.done: bool = False
        self.rest: bytes = b""
        self._key = base64.b64encode(nonce).decode("ascii")
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX)
        headers = [
            ("Host", f"[{host}]" if ":" in host else host),
            ("Upgrade", PROTOCOL),
            ("Connection", "Upgrade"),
            ("Sec-ActiveMQRemoting-Key", self._key),
        ]
        if endpoint:
            headers.append((ENDPOINT, endpoint))
        if server_name:
            headers.append((SERVER_NAME, server_name))
        try:
            request = h11.Request(method="GET", target="/", headers=headers)
            self.request: bytes = self._http.send(request) or b""
            self.request += self._http.send(h11.EndOfMessage()) or b""
        except (h11.LocalProtocolError, UnicodeEncodeError) as error:
            raise ProtocolError(f"HTTP: the connector cannot be written as a request: {error}") from error

    def feed(self, data: bytes) -> None:
        """Bytes of the other side. ProtocolError if it does not go on with CORE."""
        import h11

        event = _next_event(self._http, data)
        if event is h11.NEED_DATA:
            return
        if not isinstance(event, h11.InformationalResponse) or event.status_code != 101:
            status = getattr(event, "status_code", "nothing")
            raise ProtocolError(f"HTTP: {status} in answer to the upgrade, not 101")
        headers = dict(event.headers)
        if headers.get(ACCEPT, b"").decode("latin-1") != accept_of(self._key):
            raise ProtocolError("HTTP: the answer to the upgrade does not prove a broker")
        self.rest, _ = self._http.trailing_data
        self.done = True


def upgrade_of(params: dict[str, str], host: str, nonce: bytes) -> UpgradeRequest | None:
    """What a connector with these parameters begins with; None without `httpUpgradeEnabled=true`."""
    if params.get(ENABLED, "").lower() != "true":
        return None
    return UpgradeRequest(host, nonce, params.get(ENDPOINT, ""), params.get(SERVER_NAME, ""))
