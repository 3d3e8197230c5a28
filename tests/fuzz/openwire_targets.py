"""Decoders of OpenWire: a connection in any version and encoding, and the bodies of messages."""

from __future__ import annotations

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.connection import ProtocolError
from atalanta.wire.openwire import bodies
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.messages import (
    ActiveMQBytesMessage,
    ActiveMQMessage,
    ActiveMQTextMessage,
)
from atalanta.wire.openwire.encoding.structure import EncodeError
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of, options_of
from atalanta.wire.openwire.wire_format import WireFormat
from tests.fuzz.target import Target
from tests.wire.openwire.samples import conversations, lines

WORDS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x7f\xff", b"\xff\xff", b"\xc0\x80", b"\x01\x7b\x01\x00\x01a")
INFLATED_BYTES_MAX = 64 << 10


class OpenWireTarget(Target):
    """u8: version in four bits, then tight, cache, stack traces, logged in · frames behind the negotiation."""

    name = "openwire"
    refusals = (DecodeError, ProtocolError)
    # The smallest structures have 1 byte, and a few hundred as objects.
    bytes_per_byte = 512
    words = WORDS

    def seeds(self) -> list[bytes]:
        found = []
        for given in conversations():
            options = given.options
            if not given.prefix_bytes or options.version not in (1, 5, 12):
                continue
            head = options.version | options.tight << 4 | options.cache << 5 | options.stack_traces << 6 | 0x80
            frames = given.frames[:48]
            found += [bytes((head,)) + b"".join(frames[at : at + 6]) for at in range(0, len(frames), 6)]
        return found

    def run(self, data: bytes) -> None:
        if not data:
            return
        head = data[0]
        options = WireFormatOptions(
            version=max(head & 15, 1),
            tight=bool(head & 0x10),
            cache=bool(head & 0x20),
            stack_traces=bool(head & 0x40),
        )
        decoder = FrameDecoder(options)
        decoder.feed(WireFormat(HANDSHAKE).encode(info_of(options)))
        decoder.next()
        if head & 0x80:
            decoder.open()
        there, back = WireFormat(decoder.format.options), WireFormat(decoder.format.options)
        decoder.feed(data[1:])
        while (command := decoder.next()) is not None:
            repr(command)
            try:
                frame = there.encode(command)
            except EncodeError:
                continue
            assert back.decode(frame, 4) == command, command


class OpenWireHelloTarget(Target):
    """The first bytes of a connection."""

    name = "openwire hello"
    refusals = (DecodeError, ProtocolError)
    words = WORDS

    def seeds(self) -> list[bytes]:
        options = (WireFormatOptions(host="h"), WireFormatOptions(version=1, tight=False), HANDSHAKE)
        return [WireFormat(HANDSHAKE).encode(info_of(each)) for each in options]

    def run(self, data: bytes) -> None:
        decoder = FrameDecoder(WireFormatOptions())
        for at in range(0, len(data), 50):
            decoder.feed(data[at : at + 50])
            while decoder.next() is not None:
                assert decoder.theirs is not None
                assert options_of(info_of(decoder.theirs)) == decoder.theirs


class OpenWireBodyTarget(Target):
    """u8: kind, compressed · the body."""

    name = "openwire bodies"
    refusals = (DecodeError,)
    base_bytes = 8 << 20
    words = WORDS

    def seeds(self) -> list[bytes]:
        kinds = {"text": 0, "bytes": 1, "map": 2, "stream": 3}
        found = []
        for entry in lines("bodies"):
            content = bytes.fromhex(str(entry["content"]))
            found.append(bytes((kinds[str(entry["kind"])] | bool(entry["compressed"]) << 2,)) + content)
        return found

    def run(self, data: bytes) -> None:
        if not data:
            return
        kind = data[0] & 3
        made = (ActiveMQTextMessage, ActiveMQBytesMessage, ActiveMQMessage, ActiveMQMessage)[kind]
        content = bodies.content_of(made(content=data[1:], compressed=bool(data[0] & 4)), INFLATED_BYTES_MAX)
        if kind == 0:
            text = bodies.text_of(content)
            assert text is None or bodies.text_of(bodies.text_content(text)) == text
        elif kind == 1 and content is not None:
            bodies.compressed(codes.BYTES_MESSAGE, content)
        elif kind == 2:
            values = bodies.map_of(content)
            assert repr(bodies.map_of(bodies.map_content(values))) == repr(values)
        elif kind == 3:
            stream = bodies.stream_of(content)
            assert repr(bodies.stream_of(bodies.stream_content(stream))) == repr(stream)
