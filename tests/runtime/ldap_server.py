"""A small LDAP server in threads of the test: entries in memory, binds and searches, faults on demand."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from ldap3.protocol.rfc4511 import (
    BindResponse,
    LDAPMessage,
    PartialAttribute,
    PartialAttributeList,
    SearchResultDone,
    SearchResultEntry,
    SearchResultReference,
    Vals,
)
from pyasn1.codec.ber import decoder, encoder

from tests.ports import free_port

SUFFIX = "dc=example,dc=org"
SERVICE = f"uid=broker,{SUFFIX}"
SERVICE_PASSWORD = "broker's password"
INVALID_CREDENTIALS, UNWILLING, NO_SUCH_OBJECT, SIZE_LIMIT = 49, 53, 32, 4


@dataclass
class Entry:
    """An entry: attributes by name in small letters."""

    name: str
    values: dict[str, list[str]]
    password: str = ""


def person(name: str, password: str, folder: str = "ou=people", **more: list[str]) -> Entry:
    """The entry of a user."""
    return Entry(f"uid={name},{folder},{SUFFIX}", {"uid": [name], **more}, password)


def group(name: str, *members: str, folder: str = "ou=groups") -> Entry:
    """The entry of a group."""
    return Entry(f"cn={name},{folder},{SUFFIX}", {"cn": [name], "member": list(members)})


@dataclass
class LdapServer:
    """`with LdapServer() as server:` listens at `port` meanwhile. `binds` are the names of all binds, in order.

    `silent`: it takes requests and gives no answers. `code`: of every bind of a user. `refers`: answers of searches
    have a reference to another server, too. `endless`: a search's answer goes on until the client closes, slowly if
    `drips`. `search_code`: of every search.
    """

    entries: list[Entry] = field(default_factory=list)
    binds: list[str] = field(default_factory=list)
    empty_passwords: int = 0
    silent: bool = False
    code: int = -1
    refers: bool = False
    endless: bool = False
    drips: bool = False
    search_code: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self.entries.append(Entry(SERVICE, {"uid": ["broker"]}, SERVICE_PASSWORD))
        self._sockets: list[socket.socket] = []
        self._server: socketserver.ThreadingTCPServer | None = None

    @property
    def url(self) -> str:
        return f"ldap://127.0.0.1:{self.port}"

    def __enter__(self) -> LdapServer:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listens, at the same port as before."""
        serve = self._serve

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                serve(self.request)

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        self.port = self.port or free_port()
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Listens no longer, and cuts all connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        self.cut()

    def connected(self) -> bool:
        """Says whether somebody has connected."""
        return bool(self._sockets)

    def cut(self) -> None:
        """Cuts all connections."""
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def _serve(self, connection: socket.socket) -> None:
        self._sockets.append(connection)
        data = b""
        with contextlib.suppress(OSError):
            while more := connection.recv(65_536):
                data += more
                while (size := _size(data)) and len(data) >= size:
                    message, _ = decoder.decode(data[:size], asn1Spec=LDAPMessage())
                    data = data[size:]
                    for answer in [] if self.silent else self._answers(message):
                        connection.sendall(answer)
                        while self.endless and message["protocolOp"].getName() == "searchRequest":
                            connection.sendall(answer)
                            time.sleep(0.1 if self.drips else 0)

    def _answers(self, message: Any) -> list[bytes]:
        operation = message["protocolOp"]
        kind, request = operation.getName(), operation.getComponent()
        if kind == "bindRequest":
            return [_message(message, "bindResponse", _result(BindResponse(), self._bind(request)))]
        if kind == "searchRequest":
            return self._search(message, request)
        return []

    def _bind(self, request: Any) -> int:
        name, password = str(request["name"]), bytes(request["authentication"]["simple"]).decode()
        self.binds.append(name)
        if not password:
            self.empty_passwords += 1
            return 0  # an anonymous bind
        if self.code >= 0 and name != SERVICE:
            return self.code
        known = [entry for entry in self.entries if entry.name == name]
        return 0 if known and known[0].password == password else INVALID_CREDENTIALS

    def _search(self, message: Any, request: Any) -> list[bytes]:
        base, whole = str(request["baseObject"]), int(request["scope"]) == 2
        folders = {SUFFIX, *(entry.name.split(",", 1)[1] for entry in self.entries)}
        if base not in folders:
            return [_message(message, "searchResDone", _result(SearchResultDone(), NO_SUCH_OBJECT))]
        found: list[bytes] = []
        limit, code = int(request["sizeLimit"]), self.search_code
        wanted = [str(name).lower() for name in request["attributes"]]
        for entry in self.entries:
            below = entry.name.removesuffix(f",{base}")
            if below == entry.name or (not whole and "," in below) or not _matches(request["filter"], entry):
                continue
            if len(found) == limit:
                code = SIZE_LIMIT
                break
            found.append(_message(message, "searchResEntry", _entry(entry, wanted)))
        if self.refers:
            reference = SearchResultReference()
            reference[0] = "ldap://elsewhere.example.org/"
            found.append(_message(message, "searchResRef", reference))
        return [*found, _message(message, "searchResDone", _result(SearchResultDone(), code))]


def _size(data: bytes) -> int:
    """The length of the first message with its head; 0 if that is not known yet."""
    if len(data) < 2:
        return 0
    if data[1] < 0x80:
        return 2 + data[1]
    count = data[1] & 0x7F
    return 2 + count + int.from_bytes(data[2 : 2 + count], "big") if len(data) >= 2 + count else 0


def _message(to: Any, kind: str, body: Any) -> bytes:
    answer = LDAPMessage()
    answer["messageID"] = int(to["messageID"])
    answer["protocolOp"] = answer["protocolOp"].clone().setComponentByName(kind, body)
    return bytes(encoder.encode(answer))


def _result(body: Any, code: int) -> Any:
    body["resultCode"] = code
    body["matchedDN"] = ""
    body["diagnosticMessage"] = ""
    return body


def _entry(entry: Entry, wanted: list[str]) -> Any:
    body = SearchResultEntry()
    body["object"] = entry.name
    attributes = PartialAttributeList()
    for name in wanted:
        if name in entry.values:
            attribute = PartialAttribute()
            attribute["type"] = name
            attribute["vals"] = Vals().setComponents(*entry.values[name])
            attributes.append(attribute)
    body["attributes"] = attributes
    return body


def _matches(condition: Any, entry: Entry) -> bool:
    """Says whether the entry matches (name=value): pyasn1 cannot decode more."""
    kind, inside = condition.getName(), condition.getComponent()
    assert kind == "equalityMatch", kind
    value = bytes(inside["assertionValue"]).decode()
    return value in entry.values.get(str(inside["attributeDesc"]).lower(), ())
