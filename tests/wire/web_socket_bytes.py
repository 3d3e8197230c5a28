"""The bytes of a client of a WebSocket, written out by hand."""

from __future__ import annotations

from atalanta.wire.web_socket import BINARY, FIN

MASK = b"\x37\xfa\x21\x3d"
REQUEST = (
    b"GET /stomp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v10.stomp, v12.stomp\r\n\r\n"
)


def sent(payload: bytes, opcode: int = BINARY, fin: bool = True) -> bytes:
    """A frame of a client."""
    size = len(payload)
    if size <= 125:
        length = bytes([0x80 | size])
    elif size < 65_536:
        length = b"\xfe" + size.to_bytes(2, "big")
    else:
        length = b"\xff" + size.to_bytes(8, "big")
    masked = bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))
    return bytes([(FIN if fin else 0) | opcode]) + length + MASK + masked
