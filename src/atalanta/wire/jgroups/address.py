"""Addresses of JGroups members: logical ones (UUID), and physical ones (an IP address and a port)."""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.message.encoding.digits import all_digits

NULL: Final = 1
UUID: Final = 2
IP: Final = 16
IP_UUID: Final = 32
IP4_BYTES: Final = 4
IP6_BYTES: Final = 16
PORT_MAX: Final = 65_535

Place = tuple[str, int]  # IP address, port


def read_address(reader: Reader, field: str) -> Place | None:
    """Reads an address (Util.readAddress). Returns the place of a plain physical one, None for any other. DecodeError
    for an address that is not known: its length is not, either."""
    kind = reader.uint8(field)
    if kind == NULL:
        return None
    if kind == UUID:
        reader.take(16, field)
        return None
    if kind == IP:
        return read_place(reader, field)
    if kind == IP_UUID:
        reader.take(16, field)
        read_place(reader, field)
        return None
    raise DecodeError(field, reader.position, f"an address of kind {kind}")


def read_place(reader: Reader, field: str) -> Place:
    """Reads a physical address (IpAddress.readFrom). DecodeError."""
    size = reader.uint8(field)
    if size == IP4_BYTES:
        host = ".".join(str(part) for part in reader.take(size, field))
    elif size == IP6_BYTES:
        from ipaddress import IPv6Address  # Imported here: nodes start without it.

        host = str(IPv6Address(reader.take(size, field)))
        reader.take(4, field)  # scope
    else:
        raise DecodeError(field, reader.position, f"an IP address of {size} bytes")
    return host, reader.int16(field) & 0xFFFF


def place_bytes(place: Place) -> bytes:
    """Encodes a physical address (IpAddress.writeTo). ValueError: the host is no IP address."""
    from ipaddress import IPv4Address, IPv6Address  # Imported here: nodes start without it.

    host, port = place
    writer = Writer()
    if ":" in host:
        raw = IPv6Address(host.partition("%")[0]).packed + bytes(4)
        writer.uint8(IP6_BYTES)
    else:
        raw = IPv4Address(host).packed
        writer.uint8(IP4_BYTES)
    writer.raw(raw)
    writer.raw(port.to_bytes(2, "big"))
    return writer.getvalue()


def place_of(text: str) -> Place | None:
    """Returns the place of a text "host:port" or "[host]:port"; None if it is no such text."""
    host, separator, port = text.strip().lstrip("/").rpartition(":")
    host = host.removeprefix("[").removesuffix("]").removeprefix("::ffff:")
    if not separator or not host or not all_digits(port, 5) or not 0 < int(port) <= PORT_MAX:
        return None
    return host, int(port)


def write_name(writer: Writer, name: str) -> None:
    """Writes a name with its length, one byte a character, as JGroups does (Bits.writeString of AsciiString)."""
    raw = name_bytes(name)
    writer.raw(len(raw).to_bytes(2, "big"))
    writer.raw(raw)


def name_bytes(name: str) -> bytes:
    """Returns a name, one byte a character."""
    return name.encode("latin-1", "replace")


def read_name(reader: Reader, field: str) -> bytes | None:
    """Reads a name; None if there is none."""
    size = reader.int16(field)
    return reader.take(size, field) if size >= 0 else None
