"""Messages of JGroups channels, JGroups stack files, and names for the DNS."""

from __future__ import annotations

from atalanta.cluster.discovery.dns import dns_names
from atalanta.files.jgroups_stack import StackError, parse_stack
from atalanta.wire.connection import ProtocolError
from atalanta.wire.jgroups_discovery import (
    decode_answer,
    decode_channel_message,
    decode_posted,
    encode_answer,
    encode_channel_message,
    encode_posted,
)
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
            b"tcp://a:1,srv://_core._tcp.b",
        ]

    def run(self, data: bytes) -> None:
        if not data.lstrip().startswith(b"<"):
            dns_names(data.decode("utf-8", "surrogateescape"))
            return
        stack = parse_stack(data, "channel", {})
        stack.describe()
        stack.targets(stack.hosts)
