"""Decoders of high availability: the register, which anybody with access to the manager can write, and what the
members of a group send to each other.
"""

from __future__ import annotations

from atalanta.cluster.replication.member_codec import (
    MemberFramer,
    decode_from_active,
    decode_from_follower,
    encode_message,
)
from atalanta.cluster.replication.member_handshake import (
    Welcome,
    decode_hello,
    decode_welcome,
    encode_hello,
    encode_welcome,
)
from atalanta.ha.register import (
    Register,
    RegisterDamaged,
    decode_register,
    encode_register,
    found,
    take_over,
)
from atalanta.message.encoding.buffer import DecodeError
from tests.cluster.replication.member_samples import FROM_ACTIVE, FROM_FOLLOWER, HELLO, NODE_ID
from tests.fuzz.target import Target

TOKEN = bytes(range(16))


class RegisterTarget(Target):
    """A register: what is accepted is encoded to the same bytes."""

    name = "register"
    refusals = (RegisterDamaged,)

    def seeds(self) -> list[bytes]:
        first = found("A", 0, TOKEN)
        whole = Register(7, "B", ("A", "B", "Zürich"), 3, TOKEN)
        return [encode_register(each) for each in (first, take_over(first, "A", TOKEN), whole)]

    def run(self, data: bytes) -> None:
        assert encode_register(decode_register(data)) == data


class MemberTarget(Target):
    """u8 direction · frames: what is accepted is encoded to the same bytes."""

    name = "members"
    refusals = (DecodeError,)

    def seeds(self) -> list[bytes]:
        frames = [b"\0" + encode_message(message) for message in FROM_ACTIVE]
        frames += [b"\1" + encode_message(message) for message in FROM_FOLLOWER]
        frames += [b"\2" + encode_hello(HELLO), b"\3" + encode_welcome(Welcome(NODE_ID, 7, "A", "the group is full"))]
        return frames

    def run(self, data: bytes) -> None:
        kind, rest = data[:1], data[1:]
        if kind == b"\2":
            hello = decode_hello(rest)
            assert decode_hello(encode_hello(hello)) == hello
        elif kind == b"\3":
            welcome = decode_welcome(rest)
            assert decode_welcome(encode_welcome(welcome)) == welcome
        else:
            decode = decode_from_active if kind == b"\0" else decode_from_follower
            framer = MemberFramer()
            framer.feed(rest)
            while (frame := framer.next()) is not None:
                assert encode_message(decode(frame))[4:] == frame
