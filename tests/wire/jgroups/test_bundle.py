"""Datagrams of real members (captured.jsonl: JGroups 3.6.13 to 5.5.6, one node of Artemis 2.44), and lists of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atalanta.wire.core.broadcast_datagram import decode_announcement
from atalanta.wire.jgroups.bundle import (
    BUNDLE_BYTES_MAX,
    PAYLOADS_MAX,
    decode_datagram,
    encode_answer,
    encode_bundle,
)
from atalanta.wire.jgroups.version import VersionError, line_of, version_of, version_text
from atalanta.wire.protocol_error import ProtocolError

CAPTURED = [json.loads(line) for line in (Path(__file__).parent / "captured.jsonl").read_text().splitlines()]
SENDER = bytes(range(16))
VERSIONS = ("3.6.13", "4.2.21", "5.2.0", "5.3.13", "5.5.6")


def cluster_of(captured: dict[str, str]) -> str:
    return "active_broadcast_channel" if "Artemis" in captured["from"] else "vchan"


@pytest.mark.parametrize("captured", CAPTURED, ids=[f"{i}-{each['from']}" for i, each in enumerate(CAPTURED)])
def test_what_a_real_member_sends_tells_its_version_and_its_application_s_messages(captured: dict[str, str]) -> None:
    found = decode_datagram(cluster_of(captured), bytes.fromhex(captured["datagram"]))
    assert version_text(found.version) in captured["from"]
    assert [payload.hex() for payload in found.payloads] == list(captured["application"])
    assert found.named and not found.ours


@pytest.mark.parametrize("captured", CAPTURED, ids=[f"{i}-{each['from']}" for i, each in enumerate(CAPTURED)])
def test_another_cluster_s_datagram_is_none_of_ours(captured: dict[str, str]) -> None:
    found = decode_datagram("other", bytes.fromhex(captured["datagram"]))
    assert not found.named and not found.payloads


def test_a_real_node_s_announcement_is_read() -> None:
    [payload] = decode_datagram("active_broadcast_channel", bytes.fromhex(CAPTURED[-1]["datagram"])).payloads
    [connector] = decode_announcement(payload).connectors
    assert (connector.host, connector.port) == ("127.0.0.1", 29002)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_list_comes_back_as_it_was_and_is_known_as_ours(version: str) -> None:
    for payloads in ([], [b"abc"], [b"abc", b"", b"d" * 300]):
        found = decode_datagram("c", encode_bundle(version_of(version), "c", SENDER, payloads))
        assert found.ours and found.named and found.payloads == payloads
        assert version_text(found.version) == version


def test_the_bytes_are_those_that_real_members_took() -> None:
    """Taken by members of 3.6.13 to 5.5.6 (../shared/facts/jgroups.md, section 3): two bytes and one flag differ."""
    sender = "0201020304050607081112131415161718"
    before = f"01{sender}0001{b'c'.hex()}00000001"
    uuid = bytes.fromhex("11121314151617180102030405060708")
    late, early = (encode_bundle(version_of(text), "c", uuid, [b"xy"]).hex() for text in ("5.3.13", "3.6.13"))
    assert late == f"28cd03{before}0000000075000000000002{b'xy'.hex()}"
    assert early == f"198d03{before}040075000000000002{b'xy'.hex()}"


def test_an_answer_is_bounded() -> None:
    answer = encode_answer(version_of("5.3"), "c", SENDER, [bytes(1_000)] * 500)
    found = decode_datagram("c", answer)
    assert 100 < len(found.payloads) <= PAYLOADS_MAX and len(answer) <= BUNDLE_BYTES_MAX and found.ours
    many = decode_datagram("c", encode_answer(version_of("5.3"), "c", SENDER, [b"x"] * 500))
    assert len(many.payloads) == PAYLOADS_MAX


def test_a_header_that_is_not_known_hides_what_is_behind_it_and_not_the_version() -> None:
    datagram = bytearray(bytes.fromhex(CAPTURED[-1]["datagram"]))
    at = datagram.index(b"\x00\x29\x00\x4e")
    datagram[at + 2 : at + 4] = b"\x03\xe7"
    found = decode_datagram("active_broadcast_channel", bytes(datagram))
    assert found.named and not found.payloads and version_text(found.version) == "5.3.13"


@pytest.mark.parametrize(
    "data",
    [b"", b"\x28", b"ATLMEET1", b"\x28\xcd", b"\x28\xcd\x04", b"\x18\x40\x03", b"\x30\x00\x03", b"\xff\xff\xff"],
)
def test_what_is_no_datagram_of_a_spoken_version_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_datagram("c", data)


def test_any_part_of_a_datagram_is_harmless() -> None:
    whole = bytes.fromhex(CAPTURED[-1]["datagram"])
    for size in range(3, len(whole)):
        assert decode_datagram("active_broadcast_channel", whole[:size]).payloads == []
    many = encode_bundle(version_of("5.3"), "c", SENDER, [b"abc"])
    many = many.replace(b"\x00\x00\x00\x01\x00\x00", b"\x7f\xff\xff\xff\x00\x00", 1)
    found = decode_datagram("c", many)
    assert not found.payloads and not found.ours


def test_versions() -> None:
    numbers = {"5.3.13": 0x28CD, "5.2.0": 0x2880, "4.2.21": 0x2095, "3.6.13": 0x198D, "5.5.6": 0x2946}
    for text, number in numbers.items():
        assert version_of(text) == number and version_text(number) == text
        assert line_of(version_of(text.rpartition(".")[0])) == line_of(number)
    assert version_of("3.6") == 0x198D, "the micro version that ships: the greeting differs before 3.6.7"
    for wrong in ("", "5", "5.x", "3.5", "6.0", "5.32", "5.3.64", "5.3.1.2", "-5.3"):
        with pytest.raises(VersionError):
            version_of(wrong)
