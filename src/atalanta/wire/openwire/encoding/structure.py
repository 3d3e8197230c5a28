"""The base of OpenWire's commands and data structures, and what they read and write their fields with."""

from __future__ import annotations

from typing import Final, TypeVar

from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.wire.openwire.encoding.throwable import Throwable

VERSION_MAX: Final = 12
# How ActiveMQ begins the text of a destination, by the code of its type; and the code of MessageId.
DESTINATION_PREFIXES: Final = {100: "queue://", 101: "topic://", 102: "temp-queue://", 103: "temp-topic://"}
MESSAGE_ID: Final = 110

S = TypeVar("S", bound="DataStructure")


class EncodeError(Exception):
    """A value that OpenWire cannot carry: `field` names it. Nothing was written, and the connection goes on."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field
        self.text = text


class FieldReader(Reader):
    """The fields of a frame in the order of the wire. Every method raises DecodeError, which names the field `what`.

    `version` is that of the connection: structures skip the fields that it does not have.
    """

    version: int = VERSION_MAX

    def flag(self, what: str) -> bool:
        raise NotImplementedError

    def long(self, what: str) -> int:
        raise NotImplementedError

    def text(self, what: str) -> str | None:
        raise NotImplementedError

    def octets(self, what: str) -> bytes | None:
        raise NotImplementedError

    def octets8(self, what: str) -> bytes:
        """Returns the next 8 bytes."""
        return self.take(8, what)

    def structure(self, what: str, kind: type[S]) -> S | None:
        """Reads a structure of class `kind` or of one below it. Another class is a DecodeError."""
        raise NotImplementedError

    def cached(self, what: str, kind: type[S]) -> S | None:
        """Reads a structure that is sent once. Later ones with its index are the same object: nobody changes it."""
        raise NotImplementedError

    def structures(self, what: str, kind: type[S]) -> list[S] | None:
        raise NotImplementedError

    def throwable(self, what: str) -> Throwable | None:
        raise NotImplementedError


class FieldWriter(Writer):
    """The counterpart of FieldReader. A value that does not fit raises EncodeError."""

    version: int = VERSION_MAX

    def flag(self, value: bool) -> None:
        raise NotImplementedError

    def long(self, value: int) -> None:
        raise NotImplementedError

    def text(self, what: str, value: str | None) -> None:
        raise NotImplementedError

    def octets(self, value: bytes | None) -> None:
        raise NotImplementedError

    def octets8(self, value: bytes) -> None:
        """Writes 8 bytes, shorter ones with zeros behind them."""
        self.raw(value[:8].ljust(8, b"\0"))

    def structure(self, value: DataStructure | None) -> None:
        raise NotImplementedError

    def cached(self, value: Identifier | None) -> None:
        raise NotImplementedError

    def structures(self, what: str, values: list[S] | None) -> None:
        raise NotImplementedError

    def throwable(self, what: str, value: Throwable | None) -> None:
        raise NotImplementedError


class DataStructure:
    """A structure of OpenWire; two are equal if class and fields are equal. Its class has `code`, the type on the wire.

    `aware` is Java's MarshallAware: in tight form such a structure has one more bit when it is inside another.
    """

    def code(self) -> int:
        """Returns the type on the wire."""
        raise NotImplementedError

    def fresh(self) -> DataStructure:
        """Returns a new structure of the class. A call of the class itself would be slow in the compiled build."""
        raise NotImplementedError

    def aware(self) -> bool:
        return False

    def read(self, source: FieldReader) -> None:
        """Reads the fields, those of the base first."""
        return None

    def write(self, out: FieldWriter) -> None:
        """Writes the fields, those of the base first."""
        return None

    def names(self) -> tuple[str, ...]:
        """Returns the names of the fields, those of the base first."""
        return ()

    def secrets(self) -> tuple[str, ...]:
        """Returns the names of the fields that are never printed."""
        return ()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DataStructure)
            and self.code() == other.code()
            and all(getattr(self, name) == getattr(other, name) for name in self.names())
        )

    def __hash__(self) -> int:
        raise TypeError(f"{self.__class__.__name__} has no hash")

    def __repr__(self) -> str:
        secrets = self.secrets()
        parts = [
            f"{name}={'***' if name in secrets else repr(getattr(self, name))}"
            for name in self.names()
            if getattr(self, name)
        ]
        return f"{self.__class__.__name__}({', '.join(parts)})"

    def __str__(self) -> str:
        """Returns the name of its type: a text for a client quotes no fields."""
        return self.__class__.__name__


class Identifier(DataStructure):
    """A structure that can be a key: an identifier or a destination. Nobody changes it, as others may share it."""

    _hash: int = 0  # once it is known

    def key(self) -> tuple[object, ...]:
        """Returns its fields, which distinguish it from others of its class."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Identifier)
            and self.code() == other.code()
            and self.key() == other.key()
        )

    def __hash__(self) -> int:
        found = self._hash
        if found == 0:
            found = hash(self.key())
            self._hash = found
        return found


    def __str__(self) -> str:
        """Returns it as the classes of ActiveMQ write it (toString): `queue://orders`, `ID:host-1:2:3`."""
        fields = self.key()
        prefix = DESTINATION_PREFIXES.get(self.code(), "")
        if self.code() == MESSAGE_ID:  # the id that the broker has given is no part of the text
            fields = fields[:1] if fields[0] else fields[1:3]
        return prefix + ":".join(
            [each.hex() if isinstance(each, bytes) else str(each) for each in fields if each is not None]
        )


class Command(DataStructure):
    """A structure that is sent on its own. With `response_required` the answer has its `command_id`."""

    def __init__(self, command_id: int = 0, response_required: bool = False) -> None:
        self.command_id = command_id
        self.response_required = response_required

    def read(self, source: FieldReader) -> None:
        self.command_id = source.int32("command_id")
        self.response_required = source.flag("response_required")

    def write(self, out: FieldWriter) -> None:
        out.int32(self.command_id)
        out.flag(self.response_required)

    def names(self) -> tuple[str, ...]:
        return ("command_id", "response_required")
