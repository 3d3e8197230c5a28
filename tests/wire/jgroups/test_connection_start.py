"""The greeting and the frames of JGroups' TCP connections, MPING's questions, and FILE_PING's files."""

from __future__ import annotations

import pytest

from atalanta.wire.jgroups.connection_start import (
    FRAME_BYTES_MAX,
    READ_BYTES_MAX,
    MemberFrames,
    decode_greeting,
    encode_frame,
    encode_greeting,
)
from atalanta.wire.jgroups.member_list import MEMBERS_MAX, decode_member_list
from atalanta.wire.jgroups.member_request import decode_member_request, encode_member_request
from atalanta.wire.jgroups.version import version_of
from atalanta.wire.protocol_error import ProtocolError

PLACES = [("127.0.0.1", 7800), ("fe80::1", 65_535)]
# A member's question as it is on the wire: its source is a UUID, its physical address is in the payload.
OF_A_MEMBER = bytes.fromhex("020000" + "02" + "11" * 16 + "0001" + "0006" + "0035" + "0101" + "000163" + "01")


@pytest.mark.parametrize("version", ["3.6.13", "4.2.21", "5.3.13"])
@pytest.mark.parametrize("place", PLACES)
def test_a_greeting_comes_back_in_any_pieces(version: str, place: tuple[str, int]) -> None:
    data = encode_greeting(version_of(version), place)
    for size in range(len(data)):
        assert decode_greeting(data[:size]) is None
    greeting = decode_greeting(data + b"more")
    assert greeting is not None and greeting.size == len(data)
    assert (greeting.version, greeting.place) == (version_of(version), place)


def test_the_bytes_of_a_greeting() -> None:
    assert encode_greeting(version_of("5.3.13"), PLACES[0]) == b"bela\x28\xcd\x00\x07\x04\x7f\x00\x00\x01\x1e\x78"
    assert encode_greeting(version_of("3.6.6"), PLACES[0]) == b"bela\x19\x86\x04\x7f\x00\x00\x01\x1e\x78"


@pytest.mark.parametrize(
    "data",
    [
        b"ATLMEET1", b"belb", b"GET / ", b"bela\x45\x14", b"bela\x00\x00", b"bela\x28\xcd\x7f\xff\x04",
        b"bela\x28\xcd\x00\x05\x05abcde",
    ],
)
def test_what_is_no_greeting_is_refused_at_once(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_greeting(data)


def test_frames_come_in_any_pieces_and_a_long_one_is_skipped() -> None:
    data = encode_frame(b"abc") + encode_frame(bytes(READ_BYTES_MAX + 1)) + encode_frame(b"") + encode_frame(b"d" * 500)
    for pieces in (1_000, 65_536, len(data)):
        frames = MemberFrames()
        found = [each for at in range(0, len(data), pieces) for each in frames.feed(data[at : at + pieces])]
        assert found == [b"abc", b"", b"d" * 500]


@pytest.mark.parametrize("size", [FRAME_BYTES_MAX + 1, 0xFFFFFFFB])
def test_the_end_and_a_frame_too_long_end_the_connection(size: int) -> None:
    with pytest.raises(ProtocolError):
        MemberFrames().feed(size.to_bytes(4, "big"))


@pytest.mark.parametrize(("version", "late"), [("3.6.13", False), ("4.2.21", True), ("5.3.13", True)])
@pytest.mark.parametrize("place", PLACES)
def test_a_question_of_ours_says_where_we_listen(version: str, late: bool, place: tuple[str, int]) -> None:
    data = encode_member_request(version_of(version), "c", place)
    assert decode_member_request("c", data) == (late, place)
    assert decode_member_request("other", data) is None


def test_a_member_s_question_names_no_address_to_dial() -> None:
    assert decode_member_request("c", OF_A_MEMBER) == (True, None)


def test_the_bytes_of_a_question_are_those_that_members_answered() -> None:
    expected = "020001" + "10047f0000011e78" + "0001" + "0006" + "0035" + "01" + "01" + "000163" + "01" + "ffffffff"
    assert encode_member_request(version_of("5.3.13"), "c", PLACES[0]).hex() == expected


@pytest.mark.parametrize("data", [b"", b"ATLMEET1", b"\x02\x00", b"\x02\x00\x01\x10\x05abcde", b"\x00" * 3_000])
def test_what_is_no_question_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_member_request("c", data)


def test_the_addresses_in_a_file_of_file_ping() -> None:
    text = b"""vm-1 \t b1-22 \t 127.0.0.1:7800 \t T
    vm-2 b1-23 [fe80::1]:7801 F
    vm-1 b1-22 127.0.0.1:7800 T
    short 127.0.0.1:1
    none x nowhere F
    bad x 127.0.0.1:99999 F
    """
    assert decode_member_list(text) == [("127.0.0.1", 7800), ("fe80::1", 7801)]
    assert decode_member_list(b"\xff\x00" * 100) == []
    many = "".join(f"n u h{number}:1 F\n" for number in range(MEMBERS_MAX + 50))
    assert len(decode_member_list(many.encode())) == MEMBERS_MAX
