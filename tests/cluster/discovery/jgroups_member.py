"""A member of a real JGroups cluster, as far as it takes notice of one who is none: what it hears, and what it logs."""

from __future__ import annotations

from atalanta.sim.host import Host
from atalanta.wire.core.broadcast_datagram import Announcement, encode_announcement
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.jgroups.bundle import decode_datagram
from atalanta.wire.jgroups.connection_start import (
    Greeting,
    MemberFrames,
    decode_greeting,
    encode_greeting,
)
from atalanta.wire.jgroups.member_request import decode_member_request
from atalanta.wire.jgroups.version import line_of, version_of
from atalanta.wire.protocol_error import ProtocolError
from tests.cluster.cluster_rig import RawPeer, Rig

PORT = 7800
GROUP = "230.5.6.8:7600"
UUID = b"\x02" + b"\x33" * 16


def announced(node: str, host: str = "real-host") -> bytes:
    """The payload that a real node of Artemis sends."""
    return encode_announcement(Announcement(node, "u", [TransportConfiguration.tcp("x", host, 61616)]))


class Member(RawPeer):
    """At `ip`, of a version. `heard` are the application's messages, `logged` what its log has of others."""

    def __init__(self, rig: Rig, version: str, ip: str = "10.0.0.99", cluster: str = "c") -> None:
        super().__init__(rig, f"member-{ip}")
        self.version = version_of(version)
        self.cluster = cluster
        self.ip = ip
        self.heard: list[bytes] = []
        self.logged: list[str] = []
        self.received: dict[int, bytes] = {}
        self.greetings: dict[int, Greeting] = {}
        self.readers: dict[int, MemberFrames] = {}
        self.refused: list[int] = []
        self.outgoing: list[int] = []
        self.accepted = 0
        self.asked: list[tuple[str, int]] = []
        rig.network.ips[self.name] = ip

    def listen(self) -> None:
        self.rig.network.listen(self, self.name, PORT)

    def join(self, group: str = GROUP) -> None:
        self.rig.network.join(self, group)

    def cast(self, payload: bytes, group: str = GROUP) -> None:
        """Sends a message to its group, as a real one is on the wire: with its headers."""
        late, five = self.version >= version_of("4.0"), self.version >= version_of("5.0")
        name = len(self.cluster).to_bytes(2, "big") + self.cluster.encode()
        flagged = b"\x00" if self.version >= version_of("5.3.8") else b""
        headers = b"\x00\x02\x00\x29" + (b"\x00\x4e" if late else b"\x00\x5d") + b"\x01\x01\x01"
        headers += b"\x00\x39" + (b"\x00\x3c" if late else b"\x00\x38") + name + flagged
        data = self.version.to_bytes(2, "big") + b"\x02" + (b"\x00\x00\x02" if five else b"\x06") + b"\x00\x00" + UUID
        self.rig.network.multicast(self, group, data + headers + len(payload).to_bytes(4, "big") + payload)

    def dial(self, host: Host, place: tuple[str, int] | None = None, port: int = PORT) -> int:
        """Connects and greets, with its own address unless another is given."""
        before = len(self.outgoing)
        self.rig.network.dial(self, "raw", host.name, port)
        self.rig.until(lambda: len(self.outgoing) > before)
        self.write(encode_greeting(self.version, place or (self.ip, PORT)), self.outgoing[-1])
        return self.outgoing[-1]

    def view(self) -> None:
        """Installs a view: it closes the connections of those who are not in it."""
        for conn in list(self.readers):
            self.rig.network.close(conn, "not in the view")
            self.readers.pop(conn)

    def on_accepted(self, conn: int, port: int) -> None:
        self.accepted += 1
        self.conns.append(conn)
        self.received[conn] = b""

    def on_dialed(self, conn: int, key: str) -> None:
        self.conns.append(conn)
        self.outgoing.append(conn)
        self.readers[conn] = MemberFrames()

    def on_bytes(self, conn: int, data: bytes) -> None:
        frames = self.readers.get(conn)
        if frames is None:
            if conn in self.refused:
                return
            self.received[conn] += data
            try:
                greeting = decode_greeting(self.received[conn])
            except ProtocolError:
                self._refuse(conn, "JGRP000006: failed accepting connection: cookie")
                return
            if greeting is None:
                return
            if line_of(greeting.version) != line_of(self.version):
                self._refuse(conn, "JGRP000006: failed accepting connection: version")
                return
            self.greetings[conn] = greeting
            frames = self.readers[conn] = MemberFrames()
            data = self.received[conn][greeting.size :]
        for frame in frames.feed(data):
            self._take(frame)

    def _refuse(self, conn: int, why: str) -> None:
        self.logged.append(why)
        self.refused.append(conn)
        self.rig.network.close(conn, why)

    def _take(self, data: bytes) -> None:
        try:
            found = decode_datagram(self.cluster, data)
        except ProtocolError:
            self.logged.append(f"JGRP000010: another version: {data[:8]!r}")
            return
        if line_of(found.version) != line_of(self.version):
            self.logged.append(f"JGRP000010: another version: {data[:8]!r}")
        elif not found.named:
            self.logged.append("JGRP000012: another cluster")
        else:
            self.heard += found.payloads

    def on_datagram(self, group: str, data: bytes) -> None:
        if UUID in data:
            return  # its own
        if group == GROUP:
            self._take(data)
            return
        try:
            asked = decode_member_request(self.cluster, data)
        except ProtocolError:
            self.logged.append("failed unmarshalling a message of MPING")
            return
        if asked is not None and asked[1] is not None:
            self.asked.append(asked[1])
            late = self.version >= version_of("4.0")
            if asked[0] != late:
                self.logged.append("no class of that header id")
