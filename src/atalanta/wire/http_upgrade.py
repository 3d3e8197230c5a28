"""CORE after an HTTP upgrade, as WildFly's http-connector and http-acceptor use it: both ends, without sockets.

The client sends `GET /` with `Upgrade: activemq-remoting` and a key. The answer 101 proves by a hash of the key that
it comes from a broker. Then both ends speak CORE (Artemis' NettyConnector.HttpUpgradeHandler). h11 reads and writes
HTTP. Each end imports h11 when it is used: the import takes longer than the rest of a client's start.

The broker's end also answers the upgrade to a WebSocket.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final

from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.web_socket import WebSocket

if TYPE_CHECKING:
    import h11

PROTOCOL: Final = "activemq-remoting"
KEY: Final = b"sec-activemqremoting-key"
ACCEPT: Final = b"sec-activemqremoting-accept"
MAGIC: Final = "CF70DEB8-70F9-4FBA-8B4F-DFC3E723B4CD"
HEAD_BYTES_MAX: Final = 8 * 1024
KEY_BYTES_MAX: Final = 128
NONCE_BYTES: Final = 16

WEB_SOCKET: Final = "websocket"
WEB_SOCKET_VERSION: Final = b"13"
WEB_SOCKET_MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
WEB_SOCKET_KEY_BYTES: Final = 24  # 16 bytes in base64

UPGRADE_ENABLED: Final = "httpUpgradeEnabled"
UPGRADE_ENDPOINT: Final = "httpUpgradeEndpoint"
UPGRADE_SERVER_NAME: Final = "activemqServerName"


def accept_of(key: str) -> str:
    """Returns the broker's accept value for `key`."""
    digest = hashlib.sha1((key + MAGIC).encode("utf-8"), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode("ascii")


def _next_event(http: h11.Connection, data: bytes | None = None) -> object:
    """Returns the next HTTP event of the peer, given these bytes. ProtocolError if the bytes are no HTTP."""
    import h11

    try:
        if data is not None:
            http.receive_data(data)
        return http.next_event()
    except h11.RemoteProtocolError as error:
        raise ProtocolError(f"HTTP: {error}") from error


class UpgradeAnswer:
    """The broker's end of the upgrade: `feed` until `done`; then `answer` is to be written and `rest` is CORE.

    `core`: upgrades to CORE are answered. Unless `subprotocols` is None those to a WebSocket are; then `web_socket`
    takes `rest`. `offered`: the subprotocols that the client asks for.
    """

    def __init__(self, core: bool = True, subprotocols: tuple[str, ...] | None = None) -> None:
        import h11

        self.core = core
        self.subprotocols = subprotocols
        self.web_socket: WebSocket | None = None
        self.offered: list[str] = []
        self.done: bool = False
        self.answer: bytes = b""
        self.rest: bytes = b""
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)

    def feed(self, data: bytes) -> None:
        """Takes bytes of the client. ProtocolError for any request but an upgrade that is served."""
        import h11

        event = _next_event(self._http, data)
        if event is h11.NEED_DATA:
            return
        if not isinstance(event, h11.Request):
            raise ProtocolError("HTTP: no request")
        headers = dict(event.headers)
        wanted = headers.get(b"upgrade", b"").decode("latin-1").lower()
        served = [PROTOCOL] * self.core + [WEB_SOCKET] * (self.subprotocols is not None)
        if event.method != b"GET" or wanted not in served:
            raise ProtocolError(f"HTTP: a request without 'Upgrade: {' or '.join(served)}'")
        if wanted == PROTOCOL:
            found = _core_headers(headers)
        else:
            self.offered = _offered(headers)
            found = _web_socket_headers(headers, self.offered, self.subprotocols or ())
        if wanted == WEB_SOCKET:
            self.web_socket = WebSocket()
        body = _next_event(self._http)
        if not isinstance(body, h11.EndOfMessage):
            raise ProtocolError("HTTP: an upgrade request has no body")
        answer = h11.InformationalResponse(status_code=101, reason=b"Switching Protocols", headers=found)
        self.answer = self._http.send(answer) or b""
        self.rest, _ = self._http.trailing_data
        self.done = True


def _core_headers(headers: dict[bytes, bytes]) -> list[tuple[str, str]]:
    """Returns the headers of the answer to an upgrade to CORE. ProtocolError without a key."""
    key = headers.get(KEY, b"")
    if not key or len(key) > KEY_BYTES_MAX:
        raise ProtocolError("HTTP: the upgrade has no key, or one that is too long")
    return [
        ("Upgrade", PROTOCOL),
        ("Connection", "Upgrade"),
        ("Sec-ActiveMQRemoting-Accept", accept_of(key.decode("latin-1"))),
    ]


def _offered(headers: dict[bytes, bytes]) -> list[str]:
    """Returns the subprotocols that the client of a WebSocket asks for."""
    names = headers.get(b"sec-websocket-protocol", b"").decode("latin-1").split(",")
    return [name.strip() for name in names if name.strip()]


def _web_socket_headers(
    headers: dict[bytes, bytes], names: list[str], subprotocols: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Returns the headers of the answer to an upgrade to a WebSocket (RFC 6455, section 4.2.2). ProtocolError.

    `names`: the subprotocols that the client offers; `subprotocols`: those served, the preferred ones first.
    """
    key = headers.get(b"sec-websocket-key", b"").strip()
    if len(key) != WEB_SOCKET_KEY_BYTES or headers.get(b"sec-websocket-version", b"").strip() != WEB_SOCKET_VERSION:
        raise ProtocolError("HTTP: a WebSocket needs version 13 and a key of 16 bytes")
    digest = hashlib.sha1(key + WEB_SOCKET_MAGIC, usedforsecurity=False).digest()
    answer = [
        ("Upgrade", WEB_SOCKET),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", base64.b64encode(digest).decode("ascii")),
    ]
    chosen = next((name for name in subprotocols if name in names), None)
    if names and chosen is None:
        offered = ", ".join(names)[:80]
        raise ProtocolError(f"HTTP: a WebSocket of {offered!r}, none of {', '.join(subprotocols)}")
    if chosen is not None:
        answer.append(("Sec-WebSocket-Protocol", chosen))
    return answer


class UpgradeRequest:
    """The connecting end of the upgrade: write `request`, `feed` until `done`; then `rest` is CORE."""

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
            headers.append((UPGRADE_ENDPOINT, endpoint))
        if server_name:
            headers.append((UPGRADE_SERVER_NAME, server_name))
        try:
            request = h11.Request(method="GET", target="/", headers=headers)
            self.request: bytes = self._http.send(request) or b""
            self.request += self._http.send(h11.EndOfMessage()) or b""
        except (h11.LocalProtocolError, UnicodeEncodeError) as error:
            raise ProtocolError(f"HTTP: the connector cannot be written as a request: {error}") from error

    def feed(self, data: bytes) -> None:
        """Takes bytes of the broker. ProtocolError if the broker does not accept the upgrade to CORE."""
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
    """Returns the upgrade request of a connector with these parameters; None without `httpUpgradeEnabled=true`."""
    if params.get(UPGRADE_ENABLED, "").lower() != "true":
        return None
    return UpgradeRequest(host, nonce, params.get(UPGRADE_ENDPOINT, ""), params.get(UPGRADE_SERVER_NAME, ""))
