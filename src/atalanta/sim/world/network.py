"""A network of ordered byte streams between machines, with latency, chunks, cuts, stalls and partitions."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from atalanta.sim.world.world import SECOND, World, drawn

CONNECT_TIMEOUT_NS: Final = 3 * SECOND


class Machine:
    """A member of the virtual network: a node's host or a client."""

    name: str = ""
    up: bool = True

    def on_accepted(self, conn: int, port: int) -> None:
        raise NotImplementedError

    def on_dialed(self, conn: int, key: str) -> None:
        raise NotImplementedError

    def on_dial_failed(self, key: str, why: str) -> None:
        raise NotImplementedError

    def on_bytes(self, conn: int, data: bytes) -> None:
        raise NotImplementedError

    def on_closed(self, conn: int, why: str) -> None:
        raise NotImplementedError

    def on_datagram(self, group: str, data: bytes) -> None:
        raise NotImplementedError

    def on_choked(self, conn: int, choked: bool) -> None:
        """Handles a send buffer that is full because the peer does not read, or that is free again."""

    def on_resolved(self, key: str, addresses: list[tuple[str, int]], why: str) -> None:
        raise NotImplementedError

    def on_posted(self, key: str, files: dict[str, bytes], why: str) -> None:
        raise NotImplementedError


class Stream:
    """A direction of a connection."""

    def __init__(self, source: Machine, target: Machine, target_conn: int) -> None:
        self.source = source
        self.target = target
        self.target_conn = target_conn
        self.free_at: int = 0
        self.ends_at: int = 0  # time when its source closed the connection, 0 if it is open
        self.held: list[bytes] = []
        self.choked = False
        self.dialed = False  # its source opened the connection


class Network:
    """The network. `latency_ns` and `chunk_bytes_max` shape streams; `block` cuts one direction between two machines.

    `names` is the DNS: (host, port) by name, port 0 if the client sets it; `names_fail` is the error of the DNS.
    `folders` are shared by all machines: content by name. A `stalled` machine reads nothing; a sender is notified when
    more than `choke_bytes` wait.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random("network")
        self.latency_ns: tuple[int, int] = (50_000, 2_000_000)
        self.chunk_bytes_max: int = 65_536
        self.listening: dict[tuple[str, int], Machine] = {}
        self.streams: dict[int, Stream] = {}
        self.peer_of: dict[int, int] = {}
        self.blocked: dict[tuple[str, str], bool] = {}
        self.slow: dict[str, int] = {}
        self.stalled: dict[str, bool] = {}
        self.choke_bytes: int = 65_536
        self.groups: dict[str, list[Machine]] = {}
        self.names: dict[str, list[tuple[str, int]]] = {}
        self.names_fail: str = ""
        self.ips: dict[str, str] = {}  # by host name, for protocols whose messages have IP addresses
        self.folders: dict[str, dict[str, bytes]] = {}
        self.folders_fail: str = ""
        self.partners: dict[str, list[str]] = {}  # the other machines of a node by the one with its name
        self.retries_ns: dict[str, int] = {}  # the least time between two tries to reach a node
        self._next: int = 0

    # -- connections ----------------------------------------------------------------------------
    def listen(self, machine: Machine, host: str, port: int) -> None:
        self.listening[(host, port)] = machine

    def ip(self, name: str) -> str:
        """Returns the IP address of a host name."""
        number = len(self.ips) + 1
        return self.ips.setdefault(name, f"10.9.{number >> 8}.{number & 255}")

    def unlisten(self, machine: Machine) -> None:
        for address in [address for address, owner in self.listening.items() if owner is machine]:
            del self.listening[address]
        for members in self.groups.values():
            if machine in members:
                members.remove(machine)

    def dial(self, source: Machine, key: str, host: str, port: int) -> None:
        delay = self._latency(source)
        self.world.at(delay, lambda: self._connect(source, key, host, port))

    def _connect(self, source: Machine, key: str, host: str, port: int) -> None:
        if not source.up:
            return
        target = self.listening.get((host, port))
        if target is None:
            names = [name for name, ip in self.ips.items() if ip == host]
            target = self.listening.get((names[0], port)) if names else None
        if target is not None and (self._cut(source, target) or self._cut(target, source)):
            self.world.at(CONNECT_TIMEOUT_NS, lambda: self._fail(source, key, "timed out"))
            return
        if target is None or not target.up:
            self._fail(source, key, "refused")
            return
        self._next += 2
        near, far = self._next, self._next + 1
        self.peer_of[near] = far
        self.peer_of[far] = near
        self.streams[near] = Stream(source, target, far)
        self.streams[near].dialed = True
        self.streams[far] = Stream(target, source, near)
        target.on_accepted(far, port)
        if near in self.streams:
            source.on_dialed(near, key)

    def _fail(self, source: Machine, key: str, why: str) -> None:
        if source.up:
            source.on_dial_failed(key, why)

    # -- bytes ----------------------------------------------------------------------------------
    def send(self, conn: int, data: bytes) -> None:
        stream = self.streams.get(conn)
        if stream is None:
            return
        stalled = bool(self.stalled) and stream.target.name in self.stalled
        if stalled or stream.held or self._cut(stream.source, stream.target):
            stream.held.append(data)
            if stalled:
                self._choke(conn, stream)
            return
        start = 0
        while start < len(data):
            size = drawn(self.random, 1, self.chunk_bytes_max)
            piece = data[start : start + size]
            start += size
            arrival = max(self.world.now + self._latency(stream.source), stream.free_at + 1)
            stream.free_at = arrival
            self._deliver_at(arrival, conn, stream, piece)

    def _deliver_at(self, when: int, conn: int, stream: Stream, piece: bytes) -> None:
        def arrive() -> None:
            if self.streams.get(conn) is stream and stream.target.up:
                stream.target.on_bytes(stream.target_conn, piece)

        self.world.at_time(when, arrive)

    def close(self, conn: int, why: str) -> None:
        """Closes the connection. The other side is notified after all data that was sent."""
        stream = self.streams.get(conn)
        if stream is None:
            return
        far = self.peer_of[conn]
        stream.ends_at = stream.ends_at or self.world.now
        when = max(self.world.now + self._latency(stream.source), stream.free_at + 1)

        def arrive() -> None:
            self._forget(conn)
            if far in self.streams:
                self._forget(far)
                if stream.target.up:
                    stream.target.on_closed(far, why)

        self.world.at_time(when, arrive)

    def left_at(self, conn: int) -> int:
        """Returns the time when the other side closed this connection, 0 if open. Data may still be on its way."""
        stream = self.streams.get(self.peer_of.get(conn, 0))
        return 0 if stream is None else stream.ends_at

    def outdate(self, machine: Machine, since: int = 0) -> None:
        """Marks the connections of a machine as left: another machine serves in its place, `since` then (0: now).

        One that was opened later was never of any worth, and counts as left since then, too.
        """
        for stream in self.streams.values():
            if stream.source is machine:
                stream.ends_at = stream.ends_at or since or self.world.now

    def _forget(self, conn: int) -> None:
        self.streams.pop(conn, None)

    def drop_machine(self, machine: Machine) -> None:
        """Ends the streams of a crashed machine; peers notice a reset after a while."""
        self.unlisten(machine)
        for conn in [conn for conn, stream in self.streams.items() if stream.source is machine]:
            far = self.peer_of[conn]
            target = self.streams[conn].target
            self._forget(conn)
            self._reset_later(far, target)

    def leave(self, machine: Machine, kept: Container[int] = ()) -> None:
        """Ends the streams of a gracefully stopped machine, after the data that it sent, but not the `kept` ones."""
        self.unlisten(machine)
        for conn in [conn for conn, stream in self.streams.items() if stream.source is machine and conn not in kept]:
            self.close(conn, "the machine has stopped")

    def _reset_later(self, conn: int, machine: Machine) -> None:
        def arrive() -> None:
            if conn in self.streams:
                self._forget(conn)
                if machine.up:
                    machine.on_closed(conn, "connection reset by peer")

        self.world.at(self._latency(machine), arrive)

    def cut_connection(self, conn: int) -> None:
        """Cuts the connection: both ends see a reset, and data on its way is lost."""
        stream = self.streams.get(conn)
        if stream is None:
            return
        far = self.peer_of[conn]
        self._reset_later(conn, stream.source)
        self._reset_later(far, stream.target)

    # -- partitions -----------------------------------------------------------------------------
    def block(self, source: str, target: str) -> None:
        self.blocked[(source, target)] = True

    def unblock(self, ways: list[tuple[str, str]]) -> None:
        """Restores these directions (source, target), and delivers the data that their streams held back."""
        for way in ways:
            if self.blocked.pop(way, None):
                for conn, stream in list(self.streams.items()):
                    if (stream.source.name, stream.target.name) == way:
                        self._go_on(conn, stream)

    def heal(self) -> None:
        """Restores all directions and delivers the data that streams held back."""
        self.blocked.clear()
        self.slow.clear()
        for conn, stream in list(self.streams.items()):
            self._go_on(conn, stream)

    def stall(self, name: str) -> None:
        """Stops the machine's reads until `read_again`. Data on its way still arrives in its buffer."""
        self.stalled[name] = True

    def read_again(self, name: str) -> None:
        """Delivers all accumulated data."""
        if self.stalled.pop(name, None):
            for conn, stream in list(self.streams.items()):
                if stream.target.name == name:
                    self._go_on(conn, stream)

    def _go_on(self, conn: int, stream: Stream) -> None:
        held = stream.held
        stream.held = []
        for data in held:
            self.send(conn, data)
        if stream.choked and not stream.held:
            stream.choked = False
            self._notify_choked(conn, stream, False)

    def _choke(self, conn: int, stream: Stream) -> None:
        if not stream.choked and sum(map(len, stream.held)) > self.choke_bytes:
            stream.choked = True
            self._notify_choked(conn, stream, True)

    def _notify_choked(self, conn: int, stream: Stream, choked: bool) -> None:
        """Notifies the sender, never within a write."""

        def arrive() -> None:
            if self.streams.get(conn) is stream and stream.source.up and stream.choked == choked:
                stream.source.on_choked(conn, choked)

        self.world.at(0, arrive)

    def _cut(self, source: Machine, target: Machine) -> bool:
        return bool(self.blocked) and (source.name, target.name) in self.blocked

    def _latency(self, source: Machine) -> int:
        low, high = self.latency_ns
        latency_ns = drawn(self.random, low, high)
        return latency_ns * self.slow.get(source.name, 1) if self.slow else latency_ns

    # -- datagrams ------------------------------------------------------------------------------
    def join(self, machine: Machine, group: str) -> None:
        members = self.groups.setdefault(group, [])
        if machine not in members:
            members.append(machine)

    def multicast(self, source: Machine, group: str, data: bytes) -> None:
        for member in list(self.groups.get(group, [])):
            if not self._cut(source, member) and self.random.random() > 0.05:
                self._datagram_at(member, group, data, self._latency(source))

    def _datagram_at(self, member: Machine, group: str, data: bytes, delay: int) -> None:
        def arrive() -> None:
            if member.up:
                member.on_datagram(group, data)

        self.world.at(delay, arrive)

    # -- names ----------------------------------------------------------------------------------
    def resolve(self, source: Machine, key: str, name: str, port: int) -> None:
        def answer() -> None:
            found = self.names.get(name, [])
            why = self.names_fail or ("" if found else f"{name} is not known")
            addresses = [] if why else sorted((host, own or port) for host, own in found)
            if source.up:
                source.on_resolved(key, addresses, why)

        self.world.at(self._latency(source), answer)

    # -- shared folders -------------------------------------------------------------------------
    def post(self, source: Machine, key: str, folder: str, name: str, data: bytes) -> None:
        def done() -> None:
            files = self.folders.setdefault(folder, {})
            if data and not self.folders_fail:
                files[name] = data
            found = {} if self.folders_fail else {each: files[each] for each in sorted(files)}
            if source.up:
                source.on_posted(key, found, self.folders_fail)

        self.world.at(self._latency(source), done)
