"""The connection between a proposer and a voter: both prove that they know the password, then frames follow.

    proposer → voter   magic · u16 version · 32 random bytes
    voter → proposer   magic · u16 version · 32 random bytes · 8 bytes that name the voter
    proposer → voter   HMAC-SHA256 of both, with a key from the password
    voter → proposer   the same, with another label
    frames             u32 size · payload · HMAC-SHA256 of direction, number of the frame and payload

Frames are not encrypted: a register has no secrets. Before the proof a voter reads nothing but these fixed sizes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
from typing import Final

from atalanta.runtime.ha.managers.voter_codec import PAYLOAD_SIZE_MAX, VoterBytesDamaged

MAGIC: Final = b"atalanta-voter"
PROTOCOL: Final = 1
NONCE_SIZE: Final = 32
VOTER_ID_SIZE: Final = 8
PROOF_SIZE: Final = 32
SIZE_SIZE: Final = 4
# The cost makes it slow to guess a password from a recorded handshake; 30 ms once for each process.
SCRYPT_COST: Final = 1 << 14


class VoterConnectionError(Exception):
    """A connection that cannot be used. The text says why."""


def password_key(password: str) -> bytes:
    """Returns the key of a password, "" included. It takes tens of milliseconds."""
    return hashlib.scrypt(password.encode(), salt=MAGIC, n=SCRYPT_COST, r=8, p=1, dklen=32)


class VoterConnection:
    """A connection after the handshake. `voter_id` names the voter."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        keys: tuple[bytes, bytes],
        voter_id: bytes,
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.voter_id = voter_id
        self._sending, self._receiving = keys
        self._sent = 0
        self._received = 0

    def send(self, payload: bytes) -> None:
        """Writes one frame, without waiting."""
        mac = _mac(self._sending, self._sent.to_bytes(8, "big"), payload)
        self._sent += 1
        self.writer.write(len(payload).to_bytes(SIZE_SIZE, "big") + payload + mac)

    async def receive(self) -> bytes:
        """Returns the next payload. VoterBytesDamaged, EOFError, OSError."""
        size = int.from_bytes(await self.reader.readexactly(SIZE_SIZE), "big")
        if size > PAYLOAD_SIZE_MAX:
            raise VoterBytesDamaged(f"a frame of {size} bytes, at most {PAYLOAD_SIZE_MAX}")
        payload = await self.reader.readexactly(size)
        mac = await self.reader.readexactly(PROOF_SIZE)
        if not hmac.compare_digest(mac, _mac(self._receiving, self._received.to_bytes(8, "big"), payload)):
            raise VoterBytesDamaged("a frame was changed on its way")
        self._received += 1
        return payload


async def connect_voter(host: str, port: int, key: bytes) -> VoterConnection:
    """Connects a voter and logs in. VoterConnectionError, OSError."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        hello = _head() + os.urandom(NONCE_SIZE)
        writer.write(hello)
        head = await reader.readexactly(len(_head()))
        if head != _head():
            raise VoterConnectionError(_stranger(head))
        challenge = head + await reader.readexactly(NONCE_SIZE + VOTER_ID_SIZE)
        writer.write(_mac(key, b"proposer", hello + challenge))
        proof = await reader.readexactly(PROOF_SIZE)
    except EOFError:
        writer.close()
        raise VoterConnectionError("it closed the connection: is the password right?") from None
    except BaseException:
        writer.close()
        raise
    if not hmac.compare_digest(proof, _mac(key, b"voter", hello + challenge)):
        writer.close()
        raise VoterConnectionError("it does not know the password")
    to_voter, to_proposer = _frame_keys(key, hello + challenge)
    return VoterConnection(reader, writer, (to_voter, to_proposer), challenge[-VOTER_ID_SIZE:])


async def accept_proposer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes, voter_id: bytes
) -> VoterConnection:
    """Lets a proposer log in. VoterConnectionError, EOFError, OSError."""
    hello = await reader.readexactly(len(_head()) + NONCE_SIZE)
    challenge = _head() + os.urandom(NONCE_SIZE) + voter_id
    writer.write(challenge)
    if not hello.startswith(_head()):
        raise VoterConnectionError(_stranger(hello[: len(_head())]))
    proof = await reader.readexactly(PROOF_SIZE)
    if not hmac.compare_digest(proof, _mac(key, b"proposer", hello + challenge)):
        raise VoterConnectionError("wrong password")
    writer.write(_mac(key, b"voter", hello + challenge))
    to_voter, to_proposer = _frame_keys(key, hello + challenge)
    return VoterConnection(reader, writer, (to_proposer, to_voter), voter_id)


def _head() -> bytes:
    return MAGIC + PROTOCOL.to_bytes(2, "big")


def _stranger(head: bytes) -> str:
    if head.startswith(MAGIC):
        return f"it speaks version {int.from_bytes(head[len(MAGIC) :], 'big')} of the protocol, not {PROTOCOL}"
    return "it is no voter of Atalanta, nor a proposer"


def _frame_keys(key: bytes, handshake: bytes) -> tuple[bytes, bytes]:
    return _mac(key, b"frames to the voter", handshake), _mac(key, b"frames to the proposer", handshake)


def _mac(key: bytes, label: bytes, data: bytes) -> bytes:
    return hmac.digest(key, label + data, "sha256")
