"""Packets of every type, in every version of the protocol where layouts differ."""

from __future__ import annotations

import pytest

from atalanta.message.message import Message
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import BackupRegistration
from atalanta.wire.core.packets.codec import decode, encode
from atalanta.wire.core.packets.connection import (
    ExceptionResponse,
    NullResponse,
    PacketsConfirmed,
    Ping,
)
from atalanta.wire.core.packets.consumer import CreateConsumer, IndividualAcknowledge
from atalanta.wire.core.packets.log_chunk import LogReadResponse, decode_entries
from atalanta.wire.core.packets.logview import LogBodyResponse, LogReadLargeResponse
from atalanta.wire.core.packets.message import SendContinuation, SendMessage
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import AddMetadataV2
from atalanta.wire.core.packets.topology import ClusterTopologyV2
from atalanta.wire.core.packets.transaction import Commit
from atalanta.wire.protocol_error import ProtocolError
from tests.wire.core.samples import all_packets, sample_message


def round_trip(packet: Packet, version: int = 136, channel: int = 10) -> Packet:
    frame = encode(packet, channel, version)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[4] == packet.type & 0xFF
    assert int.from_bytes(frame[5:13], "big") == channel
    return decode(packet.type, frame[13:], version)


def test_every_type_has_a_sample() -> None:
    assert sorted({packet.type for packet in all_packets()}) == sorted(packet_types.NAMES)


@pytest.mark.parametrize("packet", all_packets(), ids=lambda packet: packet_types.NAMES[packet.type])
def test_every_packet_comes_back_with_all_its_fields(packet: Packet) -> None:
    again = round_trip(packet)
    assert type(again) is type(packet)
    assert again == packet
    assert encode(again, 10) == encode(packet, 10)


def test_an_old_version_has_no_correlation() -> None:
    assert round_trip(NullResponse(-8), 129) == NullResponse(-1)
    assert len(encode(NullResponse(-8), 10, 129)) == 13
    answer = ExceptionResponse(100, "no such queue", -8)
    assert round_trip(answer, 129) == ExceptionResponse(100, "no such queue", -1)
    assert round_trip(Commit(-8), 131) == Commit(-1)
    assert round_trip(Commit(-8), 132) == Commit(-8)


@pytest.mark.parametrize(
    ("version", "correlation", "sender"), [(129, -1, -1), (133, -5, -1), (134, -5, 3), (0, -5, 3)]
)
def test_the_tail_of_a_send_grew_with_the_versions(
    version: int, correlation: int, sender: int
) -> None:
    again = round_trip(
        SendMessage(sample_message(), requires_response=True, correlation=-5, sender_id=3), version
    )
    assert again == SendMessage(
        sample_message(), requires_response=True, correlation=correlation, sender_id=sender
    )
    last = round_trip(
        SendContinuation(
            b"x", continues=False, body_size=99, requires_response=True, correlation=-5, sender_id=3
        ),
        version,
    )
    assert last == SendContinuation(
        b"x",
        continues=False,
        body_size=99,
        requires_response=True,
        correlation=correlation,
        sender_id=sender,
    )


def test_a_consumer_has_a_priority_from_version_130_on() -> None:
    assert round_trip(CreateConsumer(consumer_id=1, queue="q", priority=4), 130) == CreateConsumer(
        consumer_id=1, queue="q", priority=4
    )
    assert round_trip(CreateConsumer(consumer_id=1, queue="q", priority=4), 129) == CreateConsumer(
        consumer_id=1, queue="q"
    )


def test_an_exception_on_channel_1_is_the_short_form() -> None:
    answer = ExceptionResponse(105, "no", -1)
    assert len(encode(answer, 1)) == len(encode(answer, 10)) - 8
    assert round_trip(answer, 136, 1) == answer


def test_packets_that_grew_may_end_early_or_late() -> None:
    packet = CreateQueueV2(address="address", queue="queue", ring_size=5)
    payload = encode(packet, 10)[13:]
    # 15 nullable fields ends a packet of 2.44; those of the oldest peers end before them.
    old = decode(packet_types.CREATE_QUEUE_V2, payload[: -15 - 8])
    assert isinstance(old, CreateQueueV2)
    assert (old.queue, old.ring_size, old.exclusive) == ("queue", None, None)
    newer = decode(packet_types.CREATE_QUEUE_V2, payload + b"\x01\x02")
    assert isinstance(newer, CreateQueueV2)
    assert newer.ring_size == 5
    assert encode(newer, 10)[13:] == payload + b"\x01\x02"


def test_who_left_has_no_connectors() -> None:
    packet = round_trip(ClusterTopologyV2(exit=True, node_id="node", event_id=12))
    assert packet == ClusterTopologyV2(exit=True, node_id="node", event_id=12)


def test_what_counts_for_a_reattach() -> None:
    assert not Ping(60_000).counts()
    assert not PacketsConfirmed(3).counts()
    assert NullResponse().counts()
    assert AddMetadataV2("a", "b", True).counts()
    assert not AddMetadataV2("a", "b", False).counts()
    assert IndividualAcknowledge(0, 1).counts()


def test_a_chunk_gives_its_messages() -> None:
    chunk = next(packet for packet in all_packets() if isinstance(packet, LogReadResponse))
    again = round_trip(chunk)
    assert isinstance(again, LogReadResponse)
    entries = decode_entries(again)
    assert [(entry.sequence, entry.delivery_count) for entry in entries] == [(41, 0), (42, 2)]
    message = entries[0].message
    assert (message.id, message.body, message.address) == (4711, b"a body", "orders")
    assert message.properties.get("carrier") == "UA"


def test_an_empty_body_keeps_its_form() -> None:
    for body in (b"", bytes(4)):
        again = round_trip(SendMessage(sample_message(body)))
        assert isinstance(again, SendMessage)
        assert again.message.body == body


def test_a_message_without_address_stays_without() -> None:
    message = Message(1, b"x")
    again = round_trip(SendMessage(message))
    assert isinstance(again, SendMessage)
    assert again.message.address == ""
    assert again == SendMessage(message)


def test_unknown_types_are_named() -> None:
    with pytest.raises(ProtocolError, match="packet type 99 is not known"):
        decode(99, b"")


def test_bytes_left_over_are_refused() -> None:
    for packet in all_packets():
        if hasattr(packet, "more") or hasattr(packet, "vote") or isinstance(packet, SendMessage):
            continue
        if isinstance(packet, LogReadLargeResponse | LogBodyResponse | BackupRegistration):
            continue  # their last field has all that is left
        payload = encode(packet, 10)[13:]
        with pytest.raises(ProtocolError, match=packet_types.NAMES[packet.type]):
            decode(packet.type, payload + b"\x00")


def test_an_error_names_packet_field_and_place() -> None:
    payload = encode(CreateConsumer(consumer_id=1, queue="queue"), 10)[13:]
    with pytest.raises(ProtocolError, match="SESS_CREATECONSUMER: queue at byte 12: needs 10 byte"):
        decode(packet_types.SESS_CREATECONSUMER, payload[:16])
    with pytest.raises(ProtocolError, match="SESS_SEND: "):
        decode(packet_types.SESS_SEND, b"\x00\x00\x00\xff" + bytes(40))


def test_a_number_out_of_range_is_the_callers_mistake() -> None:
    with pytest.raises((OverflowError, ValueError, TypeError)):
        encode(PacketsConfirmed(1 << 31), 10)
