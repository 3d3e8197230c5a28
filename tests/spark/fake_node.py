"""A cluster that lives in the test's process: the log view without a broker.

What real nodes do is tested with real ones; this one is for what they do rarely: vanish in the
middle of a request, come back, lose ranges, be no Atalanta node. Drivers and tasks reach it over TCP.
"""

from __future__ import annotations

import functools
import pickle
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader

from atalanta.client import Chunk, Lease, LostRange, Plan, Position
from atalanta.client.log import BYTES, TEXT, PropertyValue
from atalanta.kernel.routing.wildcard import WildcardConfiguration, WildcardMatch
from atalanta.message.codec import decode_message, encode_message, text_body
from atalanta.message.encoding.buffer import Reader
from atalanta.message.message import Message
from atalanta.spark.errors import (
    GatewayError,
    LeaseTaken,
    LogViewMissing,
    NodeUnavailable,
    QueueMissing,
    QueueRecreated,
    RangeIncomplete,
)
from atalanta.spark.gateway.gateway import Credentials, GatewayMember, OutMessage
from atalanta.spark.read.partition_reader import _idle
from atalanta.spark.source import AtalantaDataSource
from atalanta.wire.core.packets.log_chunk import ChunkWriter


def message(
    body: bytes | str,
    properties: dict[str, PropertyValue] | None = None,
    timestamp_ms: int = 0,
    expires_at_ms: int = 0,
) -> bytes:
    """A CORE message as it comes out of a queue."""
    if isinstance(body, str):
        made = Message.create("flights", text_body(body), TEXT, True, timestamp_ms)
    else:
        made = Message.create("flights", body, BYTES, True, timestamp_ms)
    for name, value in (properties or {}).items():
        made.put_property(name, value)
    made.expiration = expires_at_ms
    return encode_message(made, 77)


def chunk_of(entries: Iterable[tuple[int, bytes, int]]) -> tuple[int, bytes]:
    """(how many, as they travel) of messages with their sequences and delivery counts."""
    writer = ChunkWriter()
    for sequence, encoded, delivery_count in entries:
        writer.add(sequence, delivery_count, decode_message(Reader(encoded)))
    return writer.count, writer.getvalue()


@dataclass
class FakeQueue:
    """Messages by sequence; `lost` as lost_ranges reports it."""

    incarnation: str = "inc-1"
    messages: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    last: int = 0
    acked: int = 0
    epoch: int = 0
    group: str = ""
    owner: str = ""
    lease_ms: int = 0  # 0: no lease, or released
    begun: set[str] = field(default_factory=set)  # groups that have acknowledged
    lost: list[tuple[int, int, str]] = field(default_factory=list)
    dead: list[tuple[bytes, str]] = field(default_factory=list)
    limits: tuple[int, int] = (0, 0)  # of the retention
    past: dict[int, tuple[int, bytes]] = field(default_factory=dict)  # the retained messages
    replay: int = -1

    def add(
        self, body: bytes | str, timestamp_ms: int = 0, expires_at_ms: int = 0, **properties: PropertyValue
    ) -> None:
        encoded = message(body, properties, timestamp_ms, expires_at_ms)
        self.last += 1
        self.messages[self.last] = (timestamp_ms, encoded)

    def live(self, start: int, end: int) -> list[int]:
        return [at for at in range(start + 1, min(end, self.last) + 1) if at in self.messages]

    def readable(self, start: int, end: int) -> dict[int, tuple[int, bytes]]:
        """With the retained past."""
        found = self.past | self.messages
        return {at: found[at] for at in sorted(found) if start < at <= min(end, self.last)}

    def reader_position(self) -> int:
        return self.acked if self.replay < 0 else self.replay


class FakeNode:
    """One node; `stop` is a crash that keeps what was there, `start` brings it back."""

    def __init__(self, cluster: FakeCluster, node_id: str) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.lock = threading.RLock()
        self.queues: dict[str, FakeQueue] = {}
        self.sent: list[OutMessage] = []
        self.prepared: dict[str, Sequence[OutMessage]] = {}
        self.decided: dict[str, dict[int, str]] = {}
        self.taken_over: set[tuple[str, int]] = set()
        self.requests: list[str] = []
        self.asked_bodies: list[bool] = []  # by the reads
        self.is_artemis = False
        # Requests after which the node vanishes by itself, by name.
        self.dies_at: dict[str, int] = {}
        self.port = 0
        self.backup: str | None = None  # as the topology shows it
        self.stopped = threading.Event()
        self.server: socketserver.ThreadingTCPServer | None = None
        self.sockets: list[socket.socket] = []
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        node = self
        self.stopped.clear()

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                node.sockets.append(self.connection)
                while (reply := node.answer(*pickle.load(self.rfile))) is not None:
                    self.wfile.write(reply)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Broken connections are what this is for."""

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        server, self.server = self.server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        self.stopped.set()
        sockets, self.sockets = self.sockets, []
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def pair(self) -> str:
        """Makes the node a pair: the topology shows its backup. Returns the servers of both."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.backup = f"127.0.0.1:{free.getsockname()[1]}"
        return f"{self.address},{self.backup}"

    def fail_over(self) -> None:
        """Ends the active member for good; the backup serves."""
        backup = str(self.backup)
        self.stop()
        self.port, self.backup = int(backup.rpartition(":")[2]), None
        self.start()

    def queue(self, name: str) -> FakeQueue:
        with self.lock:
            return self.queues.setdefault(name, FakeQueue())

    def answer(self, name: str, given: tuple[Any, ...]) -> bytes | None:
        with self.lock:
            self.requests.append(name)
            if name in self.dies_at:
                self.dies_at[name] -= 1
                if self.dies_at[name] < 0:
                    del self.dies_at[name]
                    threading.Thread(target=self.stop, daemon=True).start()
                    return None
            try:
                return pickle.dumps(getattr(self, f"do_{name}")(*given))
            except GatewayError as error:
                return pickle.dumps(error)

    # -- requests -------------------------------------------------------------------------------
    def find(self, queue: str, incarnation: str | None = None) -> FakeQueue:
        if self.is_artemis:
            raise LogViewMissing(f"node {self.node_id} is not an Atalanta node")
        if queue not in self.queues:
            raise QueueMissing(f"queue {queue} does not exist", 100)
        found = self.queues[queue]
        if incarnation not in (None, found.incarnation):
            raise QueueRecreated(f"was {incarnation}, is {found.incarnation}", 201)
        return found

    def do_topology(self) -> list[GatewayMember]:
        return [
            GatewayMember(node.node_id, node.address, node.backup) for node in self.cluster.nodes if node.server
        ]

    def do_queues(self, pattern: str) -> list[str]:
        if self.is_artemis:
            raise LogViewMissing(f"node {self.node_id} is not an Atalanta node")
        match = WildcardMatch(pattern, WildcardConfiguration())
        return sorted(name for name in self.queues if match.matches(name))

    def do_position(self, queue: str) -> Position:
        found = self.find(queue)
        count = len(found.live(0, found.last))
        size = sum(len(encoded) for _, encoded in found.messages.values())
        start = found.reader_position()
        first = min([*found.readable(start, found.last), found.last + 1])
        return Position(self.node_id, found.incarnation, first, found.last, count, size, start, 0, 0)

    def do_plan(self, queue: str, incarnation: str, start: int, messages: int, size: int) -> Plan:
        found = self.find(queue, incarnation)
        count = total = 0
        end = start
        for at, (_, encoded) in found.readable(start, found.last).items():
            length = len(encoded)
            if count and (0 <= messages <= count or 0 <= size < total + length):
                return Plan(start, end, count, total)
            end, count, total = at, count + 1, total + length
        return Plan(start, found.last, count, total)

    def do_read(self, queue: str, incarnation: str, start: int, end: int, body_bytes_max: int) -> Chunk:
        self.asked_bodies.append(body_bytes_max > 0)
        found = self.find(queue, incarnation)
        if start < found.acked and end > start and not found.past:
            raise RangeIncomplete(f"up to {found.acked} is acknowledged", 202)
        records = [(at, encoded, 0) for at, (_, encoded) in found.readable(start, end).items()]
        last = len(records) <= 100
        del records[100:]
        return Chunk(queue, end if last else records[-1][0], last, *chunk_of(records))

    def do_ack_through(self, queue: str, incarnation: str, group: str, epoch: int, end: int) -> int:
        found = self.find(queue, incarnation)
        if (group, epoch) != (found.group, found.epoch):
            raise LeaseTaken(
                f"the lease of group {group} has epoch {found.epoch} of {found.owner}", 200
            )
        found.begun.add(group)
        taken = found.live(0, end)
        for at in taken:
            message = found.messages.pop(at)
            if found.limits != (0, 0):
                found.past[at] = message
        found.acked = max(found.acked, end)
        found.replay = max(found.replay, end) if 0 <= found.replay and end < found.acked else -1
        return len(taken)

    def do_dead_letter(
        self, queue: str, incarnation: str, group: str, epoch: int, sequence: int, why: str
    ) -> None:
        found = self.find(queue, incarnation)
        if (group, epoch) != (found.group, found.epoch):
            raise LeaseTaken(f"the lease of group {group} has epoch {found.epoch}", 200)
        moved = found.messages.pop(sequence, None)
        if moved is not None:
            self.queue("DLQ").dead.append((moved[1], why))

    def do_lease(self, queue: str, group: str, owner: str, ttl: int, epoch: int) -> Lease:
        found = self.find(queue)
        if epoch == 0:
            found.epoch = found.epoch + 1 if group == found.group else 1
            found.group, found.owner = group, owner
        elif (group, epoch) != (found.group, found.epoch):
            raise LeaseTaken(
                f"the lease of group {group} has epoch {found.epoch} of {found.owner}", 200
            )
        found.lease_ms = ttl
        return Lease(found.epoch, found.incarnation, found.acked, group in found.begun)

    def do_retain(
        self, queue: str, incarnation: str, group: str, epoch: int, limits: tuple[int, int], replay: int
    ) -> int:
        found = self.find(queue, incarnation)
        if (group, epoch) != (found.group, found.epoch):
            raise LeaseTaken("taken over", 200)
        if limits != (-1, -1):
            found.limits = limits
            if limits == (0, 0):
                found.past.clear()
        if replay >= 0:
            found.replay = replay
        return min([*found.past, found.acked + 1]) - 1

    def do_lost_ranges(
        self, queue: str, incarnation: str, start: int, end: int
    ) -> list[LostRange]:
        found = self.find(queue, incarnation)
        return [LostRange(*part) for part in found.lost if part[1] > start and part[0] <= end]

    def do_seek(self, queue: str, timestamp: int) -> int:
        found = self.find(queue)
        for at, (timestamp_ms, _) in found.readable(0, found.last).items():
            if timestamp_ms >= timestamp:
                return at - 1
        return found.last

    def do_prepare(self, messages: Sequence[OutMessage], branch: str) -> None:
        self.prepared[branch] = messages

    def do_prepared_branches(self) -> list[str]:
        return list(self.prepared)

    def do_commit_branch(self, branch: str) -> bool:
        messages = self.prepared.pop(branch, None)
        self.sent.extend(messages or ())
        return messages is not None

    def do_roll_back_branch(self, branch: str) -> bool:
        return self.prepared.pop(branch, None) is not None

    def do_decisions(self, query: str) -> dict[int, str]:
        return self.decided.get(query, {})

    def do_decide(self, query: str, batch: int, decision: str) -> None:
        self.decided.setdefault(query, {}).setdefault(batch, decision)

    def do_take_over(self, query: str, batch: int) -> None:
        self.taken_over.add((query, batch))

    def do_is_taken_over(self, query: str, batch: int) -> bool:
        return (query, batch) in self.taken_over

    def do_forget_decisions(self, query: str, before: int) -> None:
        for batch in [batch for batch in self.decided.get(query, {}) if batch < before]:
            del self.decided[query][batch]


class FakeCluster:
    """Nodes that know each other."""

    def __init__(self, count: int) -> None:
        self.nodes: list[FakeNode] = []
        self.readers: list[DataSourceStreamReader] = []  # of queries without Spark, which stops its own
        for _ in range(count):
            self.join()

    def join(self) -> FakeNode:
        node = FakeNode(self, f"node-{len(self.nodes) + 1}")
        self.nodes.append(node)
        return node

    @property
    def servers(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def close(self) -> None:
        for node in self.nodes:
            node.stop()
        for reader in self.readers:
            reader.stop()
        while _idle:
            _idle.popitem()[1].close()


class FakeGateway:
    """The client's side: a Gateway whose calls are pickled, with their arguments, for the node."""

    def __init__(self, server: str, credentials: Credentials) -> None:
        host, _, port = server.rpartition(":")
        self.server = server
        try:
            self.socket = socket.create_connection((host, int(port)), timeout=5)
        except OSError as error:
            raise NodeUnavailable(f"{server}: {error}") from error
        self.file = self.socket.makefile("rb")
        # As in the client, SIGTERM ends the wait for an answer and not the exchange.
        self.exchanges = ThreadPoolExecutor(1)

    def ask(self, name: str, *given: Any) -> Any:
        return self.exchanges.submit(self.exchange, name, *given).result()

    def exchange(self, name: str, *given: Any) -> Any:
        try:
            self.socket.sendall(pickle.dumps((name, given)))
            reply = pickle.load(self.file)
        except (OSError, ValueError, EOFError, pickle.UnpicklingError) as error:
            raise NodeUnavailable(f"{self.server}: {error}") from error
        if isinstance(reply, GatewayError):
            raise reply
        return reply

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functools.partial(self.ask, name)

    def read(
        self,
        queue: str,
        incarnation: str,
        start: int,
        end: int,
        max_bytes: int,
        selector: str | None,
        body_bytes_max: int,
    ) -> Iterator[Chunk]:
        chunk = self.ask("read", queue, incarnation, start, end, body_bytes_max)
        yield chunk
        while not chunk.last:
            chunk = self.ask("read", queue, incarnation, chunk.next, end, body_bytes_max)
            yield chunk

    def close(self) -> None:
        self.exchanges.shutdown(wait=False)
        self.file.close()
        self.socket.close()


class FakeDataSource(AtalantaDataSource):
    """The source over the fake, under the same name."""

    @staticmethod
    def connect(server: str, credentials: Credentials) -> FakeGateway:
        return FakeGateway(server, credentials)
