"""Messages of JGroups channels, JGroups stack files, and names for the DNS."""

from __future__ import annotations

import json
from pathlib import Path

from atalanta.cluster.discovery.dns import dns_names
from atalanta.files.jgroups_stack import StackError, parse_stack
from atalanta.wire.jgroups.bundle import decode_datagram, encode_bundle
from atalanta.wire.jgroups.connection_start import (
    MemberFrames,
    decode_greeting,
    encode_frame,
    encode_greeting,
)
from atalanta.wire.jgroups.member_list import decode_member_list
from atalanta.wire.jgroups.member_request import decode_member_request, encode_member_request
from atalanta.wire.jgroups.version import version_of
from atalanta.wire.jgroups_discovery import (
    decode_answer,
    decode_channel_message,
    decode_posted,
    encode_answer,
    encode_channel_message,
    encode_posted,
)
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.uri import UriError
from tests.fuzz.target import Target


class JgroupsTarget(Target):
    name = "jgroups"
    refusals = (ProtocolError,)
    words = (b"ATLMEET1", b"\x00\x01c", b"\x7f\xff\xff\xff")

    def seeds(self) -> list[bytes]:
        return [
            encode_channel_message("c", b"abc"),
            encode_posted("c", 1, b"abc"),
            encode_answer([b"abc", b"", b"d" * 50]),
        ]

    def run(self, data: bytes) -> None:
        refused = 0
        for decode in (
            lambda: decode_channel_message("c", data),
            lambda: decode_posted("c", data),
            lambda: decode_answer(data),
        ):
            try:
                decode()
            except ProtocolError:
                refused += 1
        if refused == 3:
            raise ProtocolError("nothing of the kind")


CAPTURED = Path(__file__).parents[1] / "wire" / "jgroups" / "captured.jsonl"


class MembersTarget(Target):
    """What members of JGroups send: datagrams, greetings and frames, questions of MPING, files of FILE_PING."""

    name = "jgroups members"
    refusals = (ProtocolError,)
    words = (
        b"vchan", b"active_broadcast_channel", b"\x28\xcd\x03\x01", b"\x19\x8d", b"bela", b"\x00\x39\x00\x3c",
        b"\x00\x29\x00\x4e", b"\x10\x04\x7f\x00\x00\x01", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        captured = [json.loads(line)["datagram"] for line in CAPTURED.read_text().splitlines()]
        version, place = version_of("5.3"), ("127.0.0.1", 7800)
        return [
            *(bytes.fromhex(datagram) for datagram in captured),
            encode_bundle(version, "vchan", bytes(16), [b"abc", b""]),
            encode_greeting(version, place) + encode_frame(encode_bundle(version, "vchan", bytes(16), [b"abc"])),
            encode_member_request(version, "vchan", place),
            b"name 11-22 127.0.0.1:7800 T\n",
        ]

    def run(self, data: bytes) -> None:
        decode_member_list(data)
        refused = 0
        for decode in (
            lambda: decode_datagram("vchan", data),
            lambda: decode_datagram("active_broadcast_channel", data),
            lambda: self._connection(data),
            lambda: decode_member_request("vchan", data),
        ):
            try:
                decode()
            except ProtocolError:
                refused += 1
        if refused == 4:
            raise ProtocolError("nothing of the kind")

    def _connection(self, data: bytes) -> None:
        greeting = decode_greeting(data)
        if greeting is not None:
            for frame in MemberFrames().feed(data[greeting.size :]):
                decode_datagram("vchan", frame)


class StackTarget(Target):
    name = "stacks"
    refusals = (StackError, UriError)
    words = (
        b"<config>", b"</config>", b"<TCP ", b"/>", b"<TCPPING ", b"initial_hosts=", b"${", b":", b"}",
        b"[7800]", b"bind_port=", b"<DNS_PING ", b"dns_query=", b"<!DOCTYPE ", b"&", b"xmlns=",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [
            b'<config xmlns="urn:org:jgroups"><TCP bind_port="7800"/>'
            b'<TCPPING initial_hosts="${hosts:a[7800],b[7801]}" port_range="2"/></config>',
            b'<config><UDP mcast_addr="231.1.1.1" mcast_port="5"/><PING/></config>',
            b'<config><TCP/><dns.DNS_PING dns_query="a,b" dns_record_type="SRV"/></config>',
            b'<config><TCP/><FILE_PING location="/shared"/></config>',
            b'<config><TCP tls.enabled="true"/><MPING/><SYM_ENCRYPT/></config>',
            b"tcp://a:1,srv://_core._tcp.b",
        ]

    def run(self, data: bytes) -> None:
        if not data.lstrip().startswith(b"<"):
            dns_names(data.decode("utf-8", "surrogateescape"))
            return
        stack = parse_stack(data, "channel", {})
        stack.describe()
        stack.targets(stack.hosts)
