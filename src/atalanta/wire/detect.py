"""Which protocol a client speaks, from its first bytes: one acceptor serves them all (as Artemis' 61616 does)."""

from __future__ import annotations

from typing import Final

NEED_MORE: Final = ""
CORE: Final = "CORE"
HTTP: Final = "HTTP"
UNKNOWN: Final = "unknown"

_FIRST: Final[list[tuple[bytes, str]]] = [
    (b"ARTEMIS", CORE),
    (b"AMQP", "AMQP"),
    (b"CONNECT\n", "STOMP"),
    (b"CONNECT\r\n", "STOMP"),
    (b"STOMP\n", "STOMP"),
    (b"STOMP\r\n", "STOMP"),
    (b"GET ", HTTP),
]


def detect(prefix: bytes) -> str:
    """Name of the protocol, NEED_MORE, or UNKNOWN. OpenWire: int32 size, type 1, `ActiveMQ`; MQTT: 0x10 and a name."""
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
