"""The XML of `artemis data exp` (XmlDataExporter), read in pieces: no message body needs to fit into memory.

    <activemq-journal>
      <bindings>  <address-binding name routing-types/> …
                  <queue-binding address name filter-string routing-type id/> …
      <messages>  <message id priority expiration timestamp type user-id>
                    <properties> <property name value type/> …   bytes in base64, _AMQ_NULL for null
                    <queues> <queue name/> …
                    <body isLarge> one CDATA section of base64; a large body has many
"""

from __future__ import annotations

import base64
import binascii
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final
from xml.parsers import expat

from atalanta.cli.data.export import IDENTITY_BYTES, Binding, ExportedAddress
from atalanta.cli.messages.json_lines import TYPE_NUMBERS
from atalanta.cli.messages.typed_properties import typed
from atalanta.cli.output.outcome import Refused
from atalanta.client import Message, Property
from atalanta.client.message import ROUTING_NAMES
from atalanta.runtime.process.exit_codes import BAD_DATA

READ_BYTES: Final = 1 << 16
BODY_IN_MEMORY_BYTES: Final = 1 << 20
NULL: Final = "_AMQ_NULL"
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
ROUTING_TYPE: Final = "_AMQ_ROUTING_TYPE"
URL_SAFE: Final = str.maketrans("-_", "+/")


@dataclass
class Exported:
    """A message of the export. Its body is in `body`, a file that is in memory up to 1 MiB; `digest` is over it."""

    attributes: dict[str, str]
    body: BinaryIO
    large: bool = False
    properties: dict[str, Property] = field(default_factory=dict)
    queues: list[str] = field(default_factory=list)
    address: str | None = None  # the form has no address of messages
    digest: blake2b = field(default_factory=blake2b)

    def identity(self, queue: str) -> bytes:
        """Returns an id of the message in that queue.

        The form names no node, so everything that it says of a message is in the id. Ids of messages begin anew with
        each data folder: two exports may have the same id for different messages.
        """
        found = blake2b(self.digest.digest(), digest_size=IDENTITY_BYTES)
        entries = [*self.attributes.items(), *((name, repr(value)) for name, value in self.properties.items())]
        for one in ("artemis", queue, *(text for entry in sorted(entries) for text in entry)):
            text = one.encode("utf-8", "surrogatepass")
            found.update(len(text).to_bytes(8, "big") + text)
        return found.digest()

    @property
    def routing(self) -> str | None:
        number = self.properties.get(ROUTING_TYPE)
        return ROUTING_NAMES[number] if isinstance(number, int) and number in (0, 1) else None

    def message(self) -> Message:
        """Returns the message to send; the export has no flag for durable ones, so all are durable."""
        given = self.attributes
        self.body.seek(0)
        properties = {n: v for n, v in self.properties.items() if n not in (DUPLICATE_ID, ROUTING_TYPE)}
        duplicate = self.properties.get(DUPLICATE_ID)
        user = given.get("user-id", "").removeprefix("ID:")
        return Message(
            None if self.large else self.body.read(),
            stream=self.body if self.large else None,
            type=TYPE_NUMBERS.get(given.get("type", "default"), 0),
            properties=properties,
            priority=int(given.get("priority", "4")),
            expires_at_ms=int(given.get("expiration", "0")),
            timestamp_ms=int(given.get("timestamp", "0")) or None,
            user_id=uuid.UUID(user) if len(user) == 36 else None,
            duplicate_id=duplicate if isinstance(duplicate, (str, bytes)) else None,
        )


class ArtemisExport:
    """Reads an export. `addresses` and `bindings` are complete before the first message."""

    def __init__(self, path: Path) -> None:
        self.addresses: dict[str, ExportedAddress] = {}
        self.bindings: dict[str, Binding] = {}
        self._path = path
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EndCdataSectionHandler = self._piece
        parser.StartDoctypeDeclHandler = self._doctype
        self._root = ""
        self._text: list[str] | None = None  # base64 of the current piece of a body
        self._message: Exported | None = None
        self._finished: list[Exported] = []

    def messages(self) -> Iterator[Exported]:
        """Iterates over the messages in the order of the file. Refused (65) names the line."""
        try:
            with self._path.open("rb") as file:
                while data := file.read(READ_BYTES):
                    self._parser.Parse(data, False)
                    finished, self._finished = self._finished, []
                    yield from finished
                self._parser.Parse(b"", True)
        except (expat.ExpatError, ValueError, KeyError) as error:
            raise self._refused(str(error)) from error

    def _refused(self, why: str) -> Refused:
        return Refused(f"{self._path}:{self._parser.CurrentLineNumber}: {why}", BAD_DATA)

    def _doctype(self, *declaration: object) -> None:
        raise self._refused("a document type (DOCTYPE) is not allowed here")

    def _begin(self, name: str, given: dict[str, str]) -> None:
        if not self._root:
            self._root = name
            if name != "activemq-journal":
                raise self._refused(f"<{name}> is not the root of an export of `artemis data exp`")
        message = self._message
        if name == "address-binding":
            types = [one for one in given["routing-types"].lower().split(",") if one]
            self.addresses[given["name"]] = ExportedAddress(types)
        elif name == "queue-binding":
            self.bindings[given["name"]] = Binding(
                given["name"],
                given["address"],
                given["routing-type"].lower(),
                given.get("filter-string") or None,
            )
        elif name == "message":
            body = tempfile.SpooledTemporaryFile(BODY_IN_MEMORY_BYTES)
            self._message = Exported(given, body)  # type: ignore[arg-type]
        elif message is not None and name == "property":
            self._property(message, given)
        elif message is not None and name == "queue":
            message.queues.append(given["name"])
        elif message is not None and name == "body":
            message.large = given.get("isLarge") == "true"
            self._text = []

    def _property(self, message: Exported, given: dict[str, str]) -> None:
        name, value, kind = given["name"], given["value"], given.get("type", "char")
        if value == NULL:
            message.properties[name] = None
        elif kind == "bytes":
            message.properties[name] = decoded(value)
        else:
            try:
                message.properties[name] = typed(name, kind.removeprefix("simple-"), value)
            except Refused as error:
                raise self._refused(str(error)) from error

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _piece(self) -> None:
        """Ends a CDATA section: each is base64 of its own."""
        if self._text is not None and self._message is not None:
            piece = decoded("".join(self._text))
            self._message.body.write(piece)
            self._message.digest.update(piece)
            self._text = []

    def _end(self, name: str) -> None:
        if name == "body":
            self._piece()
            self._text = None
        elif name == "message" and self._message is not None:
            self._finished.append(self._message)
            self._message = None


def decoded(text: str) -> bytes:
    """Decodes Java's base64: of the URL-safe alphabet, with blanks in between. ValueError."""
    try:
        return base64.b64decode("".join(text.split()).translate(URL_SAFE), validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error
