"""The handshake between two members of a group: both prove that they know the cluster password.

    follower → active   magic · u8 version · 32 random bytes
    active → follower   magic · u8 version · 32 random bytes
    follower → active   proof · u16 size · hello
    active → follower   proof · u16 size · welcome

    proof     HMAC-SHA256 of a label, both random numbers, and what follows, with a key from user and password
    hello     16 bytes node id, zeros without one · u16 version of the segments · bool primary · bool asynchronous ·
              member name · group name · u16 count · count * (name of a cluster connection · connector)
    welcome   16 bytes node id · u64 epoch · member name · refusal, "" if the follower is accepted

Before the follower's proof the active node reads nothing but fixed sizes and one frame of at most 16 KiB, and shows
nothing that helps to guess the password. Frames follow (member_codec.py). They are not encrypted; a connector with
TLS does that.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

from atalanta.ha.register import NAME_SIZE_MAX
from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.wire.core.transport import TransportConfiguration, decode_transport, encode_transport
from atalanta.wire.protocol_error import ProtocolError

MAGIC: Final = b"ATLR"
VERSION: Final = 3
NONCE_SIZE: Final = 32
PROOF_SIZE: Final = 32
HEAD_SIZE: Final = len(MAGIC) + 1 + NONCE_SIZE
BODY_SIZE_SIZE: Final = 2
BODY_SIZE_MAX: Final = 16 * 1024
NODE_ID_SIZE: Final = 16
NO_NODE_ID: Final = bytes(NODE_ID_SIZE)
HANDSHAKE_NS: Final = 10_000_000_000
# The first words of a refusal between groups that have a group-name each: that is no fault of anybody.
ANOTHER_GROUP: Final = "another group"
# Data are never to be deleted for it: both groups may be in order.
ANOTHER_NODE_ID: Final = (
    "these are two groups. Give each a group-name of its own, or correct the connectors; if this member is to join the "
    "other group, give it another data folder, and keep the one that it has"
)
# It makes guesses slow for whoever has recorded a handshake; 30 ms once for each process.
SCRYPT_COST: Final = 1 << 14


@dataclass(frozen=True)
class Hello:
    """A follower: its member name, the node id of its folder, its group, the segments that it reads, its connectors.

    `connectors` go by the name of the cluster connection, as for `NodeInputs.on_backups`. `primary` is the configured
    role: an active node of role backup may hand over to it. `asynchronous`: it is never in sync, unless it asks for
    the service.
    """

    member: str
    node_id: bytes
    group: str
    segment_version: int
    connectors: dict[str, TransportConfiguration] = field(default_factory=dict)
    primary: bool = False
    asynchronous: bool = False


@dataclass(frozen=True)
class Welcome:
    """The answer of the active node: the node id of the group, its epoch and its member name.

    `refusal` is "" if the follower is accepted, else the reason.
    """

    node_id: bytes
    epoch: int
    active: str
    refusal: str = ""


def member_key(user: str, password: str) -> bytes:
    """Returns the key of the handshake from cluster-user and cluster-password. It takes tens of milliseconds."""
    secret = user.encode() + b"\0" + password.encode()
    return hashlib.scrypt(secret, salt=b"atalanta replication 1", n=SCRYPT_COST, r=8, p=1, dklen=32)


class _Handshake:
    """The part that both ends share: the received bytes, the two random numbers, the proofs."""

    def __init__(self, key: bytes, nonce: bytes) -> None:
        self._key = key
        self._own_head = MAGIC + bytes([VERSION]) + nonce
        self._peer_head = b""
        self._received = b""
        self.complete = False

    def rest(self) -> bytes:
        """Returns the bytes behind the handshake, which belong to the first frame."""
        return self._received

    def _read_head(self) -> bool:
        """Takes the peer's head. Returns whether it is there. ProtocolError for another magic or version."""
        if self._peer_head:
            return True
        received = self._received
        if not received.startswith(MAGIC[: len(received)]):
            raise ProtocolError("no member of a group of Atalanta")
        if len(received) > len(MAGIC) and received[len(MAGIC)] != VERSION:
            raise ProtocolError(
                f"it speaks version {received[len(MAGIC)]} of the replication, this program {VERSION}: run the same "
                "release on all members"
            )
        if len(received) < HEAD_SIZE:
            return False
        self._peer_head = received[:HEAD_SIZE]
        self._received = received[HEAD_SIZE:]
        if self._peer_head[-NONCE_SIZE:] == self._own_head[-NONCE_SIZE:]:
            raise ProtocolError("it repeats what was sent to it")
        return True

    def _read_body(self, label: bytes, follower: bytes, active: bytes) -> bytes:
        """Takes a proven body. Returns b"" until it is complete. ProtocolError for a wrong proof or size."""
        received = self._received
        start = PROOF_SIZE + BODY_SIZE_SIZE
        if len(received) < start:
            return b""
        size = int.from_bytes(received[PROOF_SIZE:start], "big")
        if not 0 < size <= BODY_SIZE_MAX:
            raise ProtocolError(f"{size} bytes in a handshake, 1 to {BODY_SIZE_MAX} are possible")
        if len(received) < start + size:
            return b""
        body = received[start : start + size]
        if not hmac.compare_digest(received[:PROOF_SIZE], self._proof(label, follower, active, body)):
            raise ProtocolError("it does not have this node's cluster-user and cluster-password")
        self._received = received[start + size :]
        self.complete = True
        return body

    def _proof(self, label: bytes, follower: bytes, active: bytes, body: bytes) -> bytes:
        return hmac.digest(self._key, label + follower + active + body, "sha256")

    def _proven(self, label: bytes, follower: bytes, active: bytes, body: bytes) -> bytes:
        if len(body) > BODY_SIZE_MAX:
            raise ValueError(f"{len(body)} bytes in a handshake, at most {BODY_SIZE_MAX}")
        proof = self._proof(label, follower, active, body)
        return proof + len(body).to_bytes(BODY_SIZE_SIZE, "big") + body


class FollowerHandshake(_Handshake):
    """The end that dials. `welcome` is set, and `complete`, when the active node has proven itself."""

    def __init__(self, key: bytes, nonce: bytes, hello: Hello) -> None:
        """`nonce` has 32 random bytes."""
        super().__init__(key, nonce)
        self._hello = hello
        self._sent = False
        self.welcome: Welcome | None = None

    def begin(self) -> bytes:
        """Returns the bytes to send first."""
        return self._own_head

    def feed(self, data: bytes) -> bytes:
        """Takes received bytes. Returns the bytes to send. After ProtocolError or DecodeError the caller closes."""
        self._received += data
        output = b""
        if not self._read_head():
            return output
        if not self._sent:
            self._sent = True
            output = self._proven(b"hello", self._own_head, self._peer_head, encode_hello(self._hello))
        if self.welcome is None:
            body = self._read_body(b"welcome", self._own_head, self._peer_head)
            if body:
                self.welcome = decode_welcome(body)
        return output


class ActiveHandshake(_Handshake):
    """The end that was dialled. `hello` is set when the follower has proven itself; then `answer` follows."""

    def __init__(self, key: bytes, nonce: bytes) -> None:
        """`nonce` has 32 random bytes."""
        super().__init__(key, nonce)
        self.hello: Hello | None = None

    def feed(self, data: bytes) -> bytes:
        """Takes received bytes. Returns the bytes to send. After ProtocolError or DecodeError the caller closes."""
        self._received += data
        output = b""
        if not self._peer_head:
            if not self._read_head():
                return output
            output = self._own_head
        if self.hello is None:
            body = self._read_body(b"hello", self._peer_head, self._own_head)
            if body:
                self.hello = decode_hello(body)
        return output

    def answer(self, welcome: Welcome) -> bytes:
        """Returns the bytes that end the handshake. After a refusal the connection is closed."""
        return self._proven(b"welcome", self._peer_head, self._own_head, encode_welcome(welcome))


# --- bytes ------------------------------------------------------------------------------------------


def encode_hello(hello: Hello) -> bytes:
    """Encodes a hello."""
    writer = Writer()
    writer.raw(hello.node_id)
    writer.int16(hello.segment_version)
    writer.boolean(hello.primary)
    writer.boolean(hello.asynchronous)
    writer.string(hello.member)
    writer.string(hello.group)
    writer.int16(len(hello.connectors))
    for name, connector in hello.connectors.items():
        writer.string(name)
        encode_transport(writer, connector)
    return writer.getvalue()


def decode_hello(body: bytes) -> Hello:
    """Decodes a hello. DecodeError."""
    reader = Reader(body)
    node_id = reader.take(NODE_ID_SIZE, "node id")
    segment_version = reader.int16("segment version")
    primary = reader.boolean("primary")
    asynchronous = reader.boolean("asynchronous")
    member = reader.string("member")
    if not 0 < len(member.encode("utf-8", "replace")) <= NAME_SIZE_MAX or not member.isprintable():
        raise DecodeError("member", int(reader.position), f"{member!r} is no name for the register")
    group = reader.string("group")
    connectors: dict[str, TransportConfiguration] = {}
    for _ in range(reader.int16("connectors")):
        name = reader.string("connection")
        connectors[name] = decode_transport(reader, "connector")
    _end(reader)
    return Hello(member, node_id, group, segment_version, connectors, primary, asynchronous)


def encode_welcome(welcome: Welcome) -> bytes:
    """Encodes a welcome."""
    writer = Writer()
    writer.raw(welcome.node_id)
    writer.int64(welcome.epoch)
    writer.string(welcome.active)
    writer.string(welcome.refusal)
    return writer.getvalue()


def decode_welcome(body: bytes) -> Welcome:
    """Decodes a welcome. DecodeError."""
    reader = Reader(body)
    node_id = reader.take(NODE_ID_SIZE, "node id")
    epoch = reader.int64("epoch")
    if epoch < 0:
        raise DecodeError("epoch", NODE_ID_SIZE, f"{epoch} is negative")
    welcome = Welcome(node_id, epoch, reader.string("active"), reader.string("refusal"))
    _end(reader)
    return welcome


def _end(reader: Reader) -> None:
    if reader.left():
        raise DecodeError("handshake", int(reader.position), f"{reader.left()} bytes are left over")
