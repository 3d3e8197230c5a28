"""The bytes of the quorum register: requests and answers on the wire, states in files.

    ballot   u64 number · u8 size · life
    value    u64 version · u32 size · data
    state    promised ballot · accepted ballot · value
    request  u8 kind · u8 size · name of the register · ballot · value
    answer   u8 kind · ballot · u8 agreed · state       or  u8 0 · text: refused, with the reason
"""

from __future__ import annotations

import zlib
from typing import Final

from atalanta.ha.voter import Ballot, Kind, VoterAnswer, VoterRequest, VoterState

# Twice as many characters are the name of its file.
NAME_SIZE_MAX: Final = 100
LIFE_SIZE_MAX: Final = 16
# A register of 16 members with the longest names has less than 5 KiB.
DATA_SIZE_MAX: Final = 16 * 1024
PAYLOAD_SIZE_MAX: Final = DATA_SIZE_MAX + 512
REFUSED: Final = 0
FILE_HEAD: Final = b"atalanta voter 1\n"
CHECKSUM_SIZE: Final = 4


class VoterBytesDamaged(Exception):
    """Bytes that no proposer, voter or file of this format has."""


class VoterRefused(Exception):
    """A voter refuses a request for good; the text is its reason."""


class _Reader:
    """A cursor over received bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise VoterBytesDamaged(f"{len(self.data)} bytes end too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def sized(self, digits: int, size_max: int) -> bytes:
        """Returns bytes with their size before them, in `digits` bytes."""
        size = self.number(digits)
        if size > size_max:
            raise VoterBytesDamaged(f"a field of {size} bytes, at most {size_max}")
        return self.take(size)

    def kind(self) -> Kind:
        number = self.number(1)
        if number not in (kind.value for kind in Kind):
            raise VoterBytesDamaged(f"kind {number}")
        return Kind(number)

    def ballot(self) -> Ballot:
        return self.number(8), self.sized(1, LIFE_SIZE_MAX)

    def state(self) -> VoterState:
        return VoterState(self.ballot(), self.ballot(), self.number(8), self.sized(4, DATA_SIZE_MAX))

    def end(self) -> None:
        if self.at != len(self.data):
            raise VoterBytesDamaged(f"{len(self.data) - self.at} bytes are left over")


def encode_request(name: str, request: VoterRequest) -> bytes:
    """Encodes a request about the register `name`. ValueError beyond the limits."""
    text = name.encode()
    if not text or len(text) > NAME_SIZE_MAX or len(request.data) > DATA_SIZE_MAX:
        raise ValueError(
            f"a register's name has 1 to {NAME_SIZE_MAX} bytes, its value at most {DATA_SIZE_MAX}"
        )
    return b"".join(
        [
            bytes([request.kind.value, len(text)]),
            text,
            _ballot(request.ballot),
            _value(request.version, request.data),
        ]
    )


def decode_request(payload: bytes) -> tuple[str, VoterRequest]:
    """Decodes a request: the register's name, and the request. VoterBytesDamaged."""
    reader = _Reader(payload)
    kind = reader.kind()
    try:
        name = reader.sized(1, NAME_SIZE_MAX).decode()
    except UnicodeDecodeError:
        raise VoterBytesDamaged("a register's name is not UTF-8") from None
    if not name:
        raise VoterBytesDamaged("a register without a name")
    ballot = reader.ballot()
    request = VoterRequest(kind, ballot, reader.number(8), reader.sized(4, DATA_SIZE_MAX))
    reader.end()
    return name, request


def encode_answer(answer: VoterAnswer) -> bytes:
    """Encodes an answer."""
    head = bytes([answer.kind.value]) + _ballot(answer.ballot) + bytes([answer.agreed])
    return head + encode_state(answer.state)


def encode_refusal(why: str) -> bytes:
    """Encodes the refusal of a request."""
    return bytes([REFUSED]) + why.encode()[:DATA_SIZE_MAX]


def decode_answer(payload: bytes) -> VoterAnswer:
    """Decodes an answer. VoterRefused with the voter's reason; VoterBytesDamaged."""
    if payload[:1] == bytes([REFUSED]):
        raise VoterRefused(payload[1:].decode(errors="replace"))
    reader = _Reader(payload)
    answer = VoterAnswer(reader.kind(), reader.ballot(), reader.number(1) == 1, reader.state())
    reader.end()
    return answer


def encode_state(state: VoterState) -> bytes:
    """Encodes a state."""
    return _ballot(state.promised) + _ballot(state.accepted) + _value(state.version, state.data)


def encode_state_file(state: VoterState) -> bytes:
    """Encodes the file of a state: a line with the format, the state, its CRC-32."""
    body = FILE_HEAD + encode_state(state)
    return body + zlib.crc32(body).to_bytes(CHECKSUM_SIZE, "big")


def decode_state_file(data: bytes) -> VoterState:
    """Decodes the file of a state. VoterBytesDamaged."""
    body = data[:-CHECKSUM_SIZE]
    if not body.startswith(FILE_HEAD):
        raise VoterBytesDamaged("no file of a voter, or of another format")
    if zlib.crc32(body).to_bytes(CHECKSUM_SIZE, "big") != data[-CHECKSUM_SIZE:]:
        raise VoterBytesDamaged("the checksum is wrong")
    reader = _Reader(body[len(FILE_HEAD) :])
    state = reader.state()
    reader.end()
    return state


def _ballot(ballot: Ballot) -> bytes:
    return ballot[0].to_bytes(8, "big") + bytes([len(ballot[1])]) + ballot[1]


def _value(version: int, data: bytes) -> bytes:
    return version.to_bytes(8, "big") + len(data).to_bytes(4, "big") + data
