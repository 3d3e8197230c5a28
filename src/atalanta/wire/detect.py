"""Protocols by the first bytes of a connection: one acceptor serves all of them, as port 61616 of Artemis does.

The names are also known for protocols that this broker does not implement, so that the log can name them.
"""

from __future__ import annotations

from typing import Final

NEED_MORE: Final = ""
HTTP: Final = "HTTP"
TLS: Final = "TLS"
UNKNOWN: Final = "unknown"
FIRST_BYTES_MAX: Final = 16  # enough to recognise every protocol

_FIRST: Final[list[tuple[bytes, str]]] = [
    (b"ARTEMIS", "CORE"),
    (b"AMQP", "AMQP"),
    (b"CONNECT\n", "STOMP"),
    (b"CONNECT\r\n", "STOMP"),
    (b"STOMP\n", "STOMP"),
    (b"STOMP\r\n", "STOMP"),
    (b"GET ", HTTP),
    (b"POST ", HTTP),
    (b"HEAD ", HTTP),
    (b"PUT ", HTTP),
    (b"OPTIONS ", HTTP),
    (b"\x16\x03", TLS),  # a ClientHello
]


def detect(prefix: bytes) -> str:
    """Returns the name of the protocol, NEED_MORE, or UNKNOWN.

    OpenWire begins with an int32 size, type 1 and `ActiveMQ`, MQTT with 0x10 and the name of the protocol.
    """
    possible = False
    for start, name in _FIRST:
        if prefix.startswith(start):
            return name
        if start.startswith(prefix):
            possible = True
    if len(prefix) >= 5 and prefix[0] == 0 and prefix[4] == 1:
        return "OPENWIRE"
    if prefix[:1] == b"\x10" and len(prefix) >= 8:
        return "MQTT" if b"MQTT" in prefix or b"MQIsdp" in prefix else UNKNOWN
    if possible or (len(prefix) < 8 and prefix[:1] in (b"\x00", b"\x10")):
        return NEED_MORE
    return UNKNOWN
