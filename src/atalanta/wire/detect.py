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
MQTT_CONNECT: Final = b"\x10"
LENGTH_BYTES_MAX: Final = 4  # of the remaining length, 7 bits in each byte
MQTT_NAMES: Final = (b"\x00\x04MQTT", b"\x00\x06MQIsdp")  # of 3.1.1 and 5, of 3.1
# Protocols by the name of their subprotocol in a WebSocket.
_SUBPROTOCOLS: Final[list[tuple[str, str]]] = [("mqtt", "MQTT"), ("amqp", "AMQP")]


def detect(prefix: bytes) -> str:
    """Returns the name of the protocol, NEED_MORE, or UNKNOWN.

    OpenWire begins with an int32 size, type 1 and `ActiveMQ`.
    """
    possible = False
    for start, name in _FIRST:
        if prefix.startswith(start):
            return name
        if start.startswith(prefix):
            possible = True
    if len(prefix) >= 5 and prefix[0] == 0 and prefix[4] == 1:
        return "OPENWIRE"
    if prefix[:1] == MQTT_CONNECT:
        return _detect_mqtt(prefix)
    if possible or (len(prefix) < 8 and prefix[:1] == b"\x00"):
        return NEED_MORE
    return UNKNOWN


def _detect_mqtt(prefix: bytes) -> str:
    """Returns MQTT for the begin of a CONNECT packet: its type, the remaining length, the name of the protocol."""
    at = 1
    while at < len(prefix) and at <= LENGTH_BYTES_MAX and prefix[at] & 0x80:
        at += 1
    name = prefix[at + 1 :]
    for known in MQTT_NAMES:
        if name.startswith(known):
            return "MQTT"
        if known.startswith(name) and at <= LENGTH_BYTES_MAX:
            return NEED_MORE
    return UNKNOWN


def protocol_of(subprotocol: str) -> str:
    """Returns the protocol that a WebSocket names by its subprotocol, "" for an unknown one."""
    for start, name in _SUBPROTOCOLS:
        if subprotocol.lower().startswith(start):
            return name
    return "STOMP" if subprotocol.lower().endswith(".stomp") else ""
