"""CORE after an HTTP upgrade, as WildFly's http-connector and http-acceptor use it: both ends, without sockets.

The client sends `GET /` with `Upgrade: activemq-remoting` and a key. The answer 101 proves by a hash of the key that
it comes from a broker. Then both ends speak CORE (Artemis' NettyConnector.HttpUpgradeHandler). h11 reads and writes
HTTP. Each end imports h11 when it is used: the import takes longer than the rest of a client's start.
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
    """The broker's end of the upgrade: `feed` until `done`; then `answer` is to be written and `rest` is CORE."""

    def __init__(self) -> None:
        import h11

        self.done: bool = False
        self.answer: bytes = b""
        self.rest: bytes = b""
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)

    def feed(self, data: bytes) -> None:
        """Takes bytes of the client. ProtocolError for any request but an upgrade to CORE."""
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
    if params.get(ENABLED, "").lower() != "true":
        return None
    return UpgradeRequest(host, nonce, params.get(ENDPOINT, ""), params.get(SERVER_NAME, ""))
