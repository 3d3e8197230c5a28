"""Targets of answers: to an HTTP upgrade and to management, of the DNS, a broker's messages,
and what a client is told."""

from __future__ import annotations

import base64

import dns.message
import dns.name
import dns.rdataclass
import dns.rdatatype
import dns.resolver

from atalanta.client.management import ManagementFailed, page_of, result_of
from atalanta.client.message import ReceivedMessage
from atalanta.client.options import parse_url
from atalanta.cluster.scale_down.phase import reported_phase
from atalanta.message.codec import decode_message, encode_message
from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.message.message import Message
from atalanta.runtime.net.resolver import services_of
from atalanta.tls.errors import TlsError
from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.client.management import answer_of
from atalanta.wire.http_upgrade import UpgradeAnswer, UpgradeRequest, accept_of
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.uri import UriError
from tests.fuzz.target import Target
from tests.fuzz.wire_targets import PROPERTY_WORDS, wide
from tests.wire.core.samples import sample_message
from tests.wire.core.server.server_rig import text_message

NONCE = bytes(16)
MIB = 1 << 20


class UpgradeTarget(Target):
    """u8 end and pieces · what the other end says."""

    name = "upgrade"
    refusals = (ProtocolError,)
    words = (
        b"GET / HTTP/1.1\r\n", b"HTTP/1.1 101 X\r\n", b"\r\n\r\n", b"Upgrade: activemq-remoting\r\n",
        b"Connection: Upgrade\r\n",
        b"Sec-ActiveMQRemoting-Key: x\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
        b"Host: h\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 204 X\r\n", b"Connection: close\r\n",
        b"CONNECT / HTTP/1.1\r\n",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        key = base64.b64encode(NONCE).decode()
        answer = (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: activemq-remoting\r\nConnection: Upgrade\r\n"
            f"Sec-ActiveMQRemoting-Accept: {accept_of(key)}\r\n\r\nARTEMIS"
        )
        return [
            b"\x00" + UpgradeRequest("h", NONCE, "end", "name").request + b"ARTEMIS",
            b"\x01" + answer.encode(),
            b"\x07HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        ]

    def run(self, data: bytes) -> None:
        what, stream = (data[0] if data else 0), data[1:]
        end = UpgradeRequest("h", NONCE) if what & 1 else UpgradeAnswer()
        step = max(1, len(stream) // ((what >> 1) % 8 + 1))
        for at in range(0, len(stream), step):
            if end.done:
                break
            end.feed(stream[at : at + step])
        assert len(end.rest) <= len(stream)


class AnswerTarget(Target):
    """u8 who asked · the text of a management answer."""

    name = "answers"
    refusals = (ManagementFailed, ProtocolError)
    words = (
        b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"[", b"]", b"{", b"}", b'"', b"\\ud800", b"[" * 2000,
        b"9" * 5000,
        b'{"data":[', b'"count":', b'{"phase":"gone"}', b'"{\\"data\\":[{}],\\"count\\":1}"',
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        page = b'{"data":[{"name":"a"},{"name":"b"}],"count":7}'
        return [b'\x00["a"]', b"\x01" + page, b"\x02[5]", b'\x03{"phase":"moving"}', b'\x04["no"]', b"\x00[]"]

    def run(self, data: bytes) -> None:
        what, text = (data[0] % 5 if data else 0), data[1:].decode("utf-8", "replace")
        if what == 1:
            repr(page_of(text, "listQueues"))
            return
        if what == 3:
            repr(reported_phase(text))
            return
        writer = Writer()
        writer.nullable_simple_string(text)
        message = Message.create("a", writer.getvalue(), 3, False, 0, 4)
        message.put_property("_AMQ_OperationSucceeded", what != 4)
        if what == 2:
            repr(answer_of(message))
        else:
            repr(result_of(ReceivedMessage(message, "q"), "broker", "x"))


class Unreadable(Exception):
    """The bytes of a server are no answer."""


class DnsTarget(Target):
    """An answer about SRV records. What dnspython cannot read counts as no answer; it tells so in many ways."""

    name = "dns"
    refusals = (Unreadable,)
    words = (b"\x00\x21\x00\x01", b"\x00\x05\x00\x01", b"\xc0\x0c", b"\xc0\x00", b"\x3f" + b"a" * 63, b"\x00")

    def seeds(self) -> list[bytes]:
        query = dns.message.make_query("_core._tcp.b", dns.rdatatype.SRV, id=1)
        made = []
        for lines in (
            ["_core._tcp.b. 5 IN SRV 1 2 61616 a.b.", "_core._tcp.b. 5 IN SRV 1 2 61617 c.b."],
            ["_core._tcp.b. 5 IN SRV 0 0 0 ."],
            ["_core._tcp.b. 5 IN CNAME x.b.", "x.b. 5 IN SRV 1 2 3 a\\.b\\032c.d."],
        ):
            text = f"id 1\nopcode QUERY\nrcode NOERROR\nflags QR RD RA\n;QUESTION\n{query.question[0]}\n;ANSWER\n"
            made.append(dns.message.from_text(text + "\n".join(lines)).to_wire())
        return made

    def run(self, data: bytes) -> None:
        try:
            heard = dns.message.from_wire(data)
            assert isinstance(heard, dns.message.QueryMessage)
            answer = dns.resolver.Answer(
                dns.name.from_text("_core._tcp.b"), dns.rdatatype.SRV, dns.rdataclass.IN, heard
            )
        except Exception as error:  # as dnspython's resolver does with what a server says
            raise Unreadable from error
        for host, port in services_of(answer):
            assert host and 0 < port < 65536


class ReceivedTarget(Target):
    """A message that a broker delivers, and all that a program may ask it for."""

    name = "received"
    refusals = (DecodeError, ClientError)
    base_bytes = 4 * MIB
    bytes_per_byte = 2100  # deflate stands for a thousand times its length
    words = (
        *map(wide, PROPERTY_WORDS), wide(b"_AMQ_LARGE_COMPRESSED"), b"\x01", b"\x05", b"\x02", b"\x04", b"\x03",
        b"\x78\x9c\x4b\x4c\x04\x00\x01\x25\x00\xc3", b"\xff\xff\xff\xff",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        made = [text_message("a", "text"), sample_message()]
        for kind in (0, 2, 3, 4, 5, 6):
            message = text_message("a", "x" * kind)
            message.kind = kind
            made.append(message)
        entries = sample_message()
        writer = Writer()
        entries.properties.encode(writer)
        made[6].body = writer.getvalue()
        packed = text_message("a", "x")
        packed.put_property("_AMQ_LARGE_COMPRESSED", True)
        packed.body = b"\x78\x9c\x4b\x4c\x04\x00\x01\x25\x00\xc3"
        return [encode_message(message, 7) for message in (*made, packed)]

    def run(self, data: bytes) -> None:
        message = ReceivedMessage(decode_message(Reader(data)), "q")
        repr((message.properties, message.type, message.timestamp_ms, message.expires_at_ms, message.priority))
        repr((message.correlation_id, message.reply_to, message.group_id, message.duplicate_id, message.user_id))
        repr((message.text, message.map, len(message.body)))


class UrlTarget(Target):
    """URIs that a client connects to. No stack files: those are a target of their own."""

    name = "urls"
    refusals = (UriError, TlsError)
    words = (
        b"tcp://", b"udp://", b"(", b")", b"?", b"&", b";", b"=", b"%", b"%41", b"[::1]", b":", b",",
        b"reconnectAttempts=", b"failover:", b"static:", b"discovery:", b"multicast://", b"ssl://", b"jms.",
        b"timeout=",
        b"retryIntervalMultiplier=", b"sslEnabled=true", b"connectionTTL=", b"nan", b"inf", b"-1", b"1e400",
        b"9" * 5000,
        b"ha=true", b"refreshTimeout=", b"enabledProtocols=", b"minLargeMessageSize=", b"\xc2\xb2",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [
            b"tcp://a:1?reconnectAttempts=-1&retryInterval=5&retryIntervalMultiplier=1.5",
            b"(tcp://a:1,tcp://b:2)?ha=true&callTimeout=5&user=u&password=p",
            b"udp://231.7.7.7:9876?refreshTimeout=5&localBindAddress=127.0.0.1",
            b"udp://[ff02::77]:9876",
            b"tcp://a?sslEnabled=true&verifyHost=false&trustStorePath=x.p12&enabledProtocols=TLSv1.3",
            b"failover:(tcp://a:1,nio://b:2)?randomize=false&priorityBackup=true&priorityURIs=tcp://a:1&nested.user=u",
            b"discovery:(static:(ssl://a:1,ssl://b:2))?maxReconnectAttempts=0&nestedExtraQueryOptions=callTimeout%3D5",
            b"discovery:(multicast://239.255.2.3:6155?group=g)?initialReconnectDelay=5",
            b"tcp://a?connectionLoadBalancingPolicyClassName=RandomConnectionLoadBalancingPolicy&consumerWindowSize=0",
        ]

    def run(self, data: bytes) -> None:
        options = parse_url(data.decode("utf-8", "replace").replace("jgroups:", "jgroup:"))
        repr(options)
        for server in options.servers:
            str(server)
