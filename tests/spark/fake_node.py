"""A cluster that lives in the test's process and speaks JSON lines: the log view without a broker.

What real nodes do is tested with real ones; this one is for what they do rarely: vanish in the
middle of a request, come back, lose ranges, be no Atalanta node. Drivers and tasks reach it over TCP.
"""

from __future__ import annotations

import base64
import json
import socket
import socketserver
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from atalanta.client import Chunk, Lease, LostRange, Plan, Position
from atalanta.client.log.log_entries import BYTES, TEXT, PropertyValue
from atalanta.kernel.routing.wildcard import WildcardConfiguration, WildcardMatch
from atalanta.message.codec import decode_message, encode_message, text_body
from atalanta.message.encoding.buffer import Reader
from atalanta.message.message import Message
from atalanta.spark.errors import (
    Fenced,
    GatewayError,
    IncarnationChanged,
    LogViewUnsupported,
    NodeUnavailable,
    QueueMissing,
    RangeLost,
)
from atalanta.spark.gateway.gateway import Credentials, Member, OutMessage
from atalanta.spark.source import AtalantaDataSource
from atalanta.wire.core.packets.log_chunk import ChunkWriter

ERRORS = {
    kind.__name__: kind
    for kind in (Fenced, IncarnationChanged, LogViewUnsupported, QueueMissing, RangeLost)
}


def message(
    body: bytes | str,
    properties: dict[str, PropertyValue] | None = None,
    timestamp_ms: int = 0,
) -> bytes:
    """A CORE message as it comes out of a queue."""
    if isinstance(body, str):
        made = Message.create("flights", text_body(body), TEXT, True, timestamp_ms)
    else:
        made = Message.create("flights", body, BYTES, True, timestamp_ms)
    for name, value in (properties or {}).items():
        made.put_property(name, value)
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
    lost: list[tuple[int, int, str]] = field(default_factory=list)
    dead: list[tuple[bytes, str]] = field(default_factory=list)

    def add(self, body: bytes | str, timestamp_ms: int = 0, **properties: PropertyValue) -> None:
        encoded = message(body, properties, timestamp_ms)
        self.last += 1
        self.messages[self.last] = (timestamp_ms, encoded)

    def live(self, start: int, end: int) -> list[int]:
        return [at for at in range(start + 1, min(end, self.last) + 1) if at in self.messages]


class FakeNode:
    """One node; `stop` is a crash that keeps what was there, `start` brings it back."""

    def __init__(self, cluster: FakeCluster, node_id: str) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.lock = threading.RLock()
        self.queues: dict[str, FakeQueue] = {}
        self.sent: list[dict[str, Any]] = []
        self.prepared: dict[str, list[dict[str, Any]]] = {}
        self.decided: dict[str, dict[int, str]] = {}
        self.requests: list[str] = []
        self.is_artemis = False
        # Requests after which the node vanishes by itself, by name.
        self.dies_at: dict[str, int] = {}
        self.port = 0
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
                for line in self.rfile:
                    reply = node.answer(json.loads(line))
                    if reply is None:
                        return
                    self.wfile.write(json.dumps(reply).encode() + b"\n")

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

    def queue(self, name: str) -> FakeQueue:
        with self.lock:
            return self.queues.setdefault(name, FakeQueue())

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        name = request.pop("do")
        with self.lock:
            self.requests.append(name)
            if name in self.dies_at:
                self.dies_at[name] -= 1
                if self.dies_at[name] < 0:
                    del self.dies_at[name]
                    threading.Thread(target=self.stop, daemon=True).start()
                    return None
            try:
                return {"ok": getattr(self, f"do_{name}")(**request)}
            except GatewayError as error:
                return {"error": type(error).__name__, "text": str(error), "code": error.code}

    # -- requests -------------------------------------------------------------------------------
    def find(self, queue: str, incarnation: str | None = None) -> FakeQueue:
        if self.is_artemis:
            raise LogViewUnsupported(f"node {self.node_id} is not an Atalanta node")
        if queue not in self.queues:
            raise QueueMissing(f"queue {queue} does not exist", 100)
        found = self.queues[queue]
        if incarnation not in (None, found.incarnation):
            raise IncarnationChanged(f"was {incarnation}, is {found.incarnation}", 201)
        return found

    def do_topology(self) -> list[list[str]]:
        return [[node.node_id, node.address] for node in self.cluster.nodes if node.server]

    def do_queues(self, pattern: str) -> list[str]:
        if self.is_artemis:
            raise LogViewUnsupported(f"node {self.node_id} is not an Atalanta node")
        match = WildcardMatch(pattern, WildcardConfiguration())
        return sorted(name for name in self.queues if match.matches(name))

    def do_position(self, queue: str) -> list[Any]:
        found = self.find(queue)
        live = found.live(0, found.last)
        size = sum(len(encoded) for _, encoded in found.messages.values())
        first = live[0] if live else found.last + 1
        return [self.node_id, found.incarnation, first, found.last, len(live), size, found.acked]

    def do_plan(
        self, queue: str, incarnation: str, start: int, messages: int, size: int
    ) -> list[int]:
        found = self.find(queue, incarnation)
        end = count = total = 0
        end = start
        for at in found.live(start, found.last):
            length = len(found.messages[at][1])
            if count and (0 <= messages <= count or 0 <= size < total + length):
                return [end, count, total]
            end, count, total = at, count + 1, total + length
        return [found.last, count, total]

    def do_read(
        self, queue: str, incarnation: str, start: int, end: int, size: int, selector: str | None
    ) -> dict[str, Any]:
        found = self.find(queue, incarnation)
        if start < found.acked and end > start:
            raise RangeLost(f"up to {found.acked} is acknowledged", 202)
        records: list[tuple[int, int, str]] = []
        for at in found.live(start, end):
            if len(records) == 100:
                return {"next": records[-1][0], "last": False, "records": records}
            records.append((at, 0, base64.b64encode(found.messages[at][1]).decode()))
        return {"next": end, "last": True, "records": records}

    def do_ack(self, queue: str, incarnation: str, group: str, epoch: int, end: int) -> int:
        found = self.find(queue, incarnation)
        if (group, epoch) != (found.group, found.epoch):
            raise Fenced(
                f"the lease of group {group} has epoch {found.epoch} of {found.owner}", 200
            )
        taken = found.live(0, end)
        for at in taken:
            del found.messages[at]
        found.acked = max(found.acked, end)
        return len(taken)

    def do_dead_letter(
        self, queue: str, incarnation: str, group: str, epoch: int, sequence: int, why: str
    ) -> None:
        found = self.find(queue, incarnation)
        if (group, epoch) != (found.group, found.epoch):
            raise Fenced(f"the lease of group {group} has epoch {found.epoch}", 200)
        moved = found.messages.pop(sequence, None)
        if moved is not None:
            self.queue("DLQ").dead.append((moved[1], why))

    def do_lease(self, queue: str, group: str, owner: str, ttl: int, epoch: int) -> list[Any]:
        found = self.find(queue)
        if epoch == 0:
            found.epoch += 1
            found.group, found.owner = group, owner
        elif (group, epoch) != (found.group, found.epoch):
            raise Fenced(
                f"the lease of group {group} has epoch {found.epoch} of {found.owner}", 200
            )
        found.lease_ms = ttl
        return [found.epoch, found.incarnation, found.acked]

    def do_lost(self, queue: str, incarnation: str, start: int, end: int) -> list[Any]:
        found = self.find(queue, incarnation)
        return [part for part in found.lost if part[1] > start and part[0] <= end]

    def do_seek(self, queue: str, timestamp: int) -> int:
        found = self.find(queue)
        for at in found.live(0, found.last):
            if found.messages[at][0] >= timestamp:
                return at - 1
        return found.last

    def do_prepare(self, messages: list[Any], branch: str) -> None:
        self.prepared[branch] = messages

    def do_prepared(self) -> list[str]:
        return list(self.prepared)

    def do_commit(self, branch: str) -> bool:
        messages = self.prepared.pop(branch, None)
        self.sent.extend(messages or ())
        return messages is not None

    def do_roll_back(self, branch: str) -> bool:
        return self.prepared.pop(branch, None) is not None

    def do_decisions(self, query: str) -> list[Any]:
        return list(self.decided.get(query, {}).items())

    def do_decide(self, query: str, batch: int, decision: str) -> None:
        self.decided.setdefault(query, {}).setdefault(batch, decision)

    def do_forget(self, query: str, before: int) -> None:
        for batch in [batch for batch in self.decided.get(query, {}) if batch < before]:
            del self.decided[query][batch]


class FakeCluster:
    """Nodes that know each other."""

    def __init__(self, count: int) -> None:
        self.nodes: list[FakeNode] = []
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


class FakeGateway:
    """The client's side."""

    def __init__(self, server: str, credentials: Credentials) -> None:
        host, _, port = server.rpartition(":")
        self.server = server
        self.lock = threading.Lock()
        try:
            self.socket = socket.create_connection((host, int(port)), timeout=5)
        except OSError as error:
            raise NodeUnavailable(f"{server}: {error}") from error
        self.file = self.socket.makefile("rb")

    def ask(self, do: str, **arguments: Any) -> Any:
        with self.lock:
            try:
                self.socket.sendall(json.dumps({"do": do, **arguments}).encode() + b"\n")
                line = self.file.readline()
            except (OSError, ValueError) as error:
                raise NodeUnavailable(f"{self.server}: {error}") from error
        if not line:
            raise NodeUnavailable(f"{self.server} closed the connection")
        reply = json.loads(line)
        if "error" in reply:
            raise ERRORS.get(reply["error"], GatewayError)(reply["text"], reply["code"])
        return reply["ok"]

    def topology(self) -> Sequence[Member]:
        return [Member(*one) for one in self.ask("topology")]

    def queues(self, pattern: str) -> Sequence[str]:
        return list(self.ask("queues", pattern=pattern))

    def position(self, queue: str) -> Position:
        return Position(*[*self.ask("position", queue=queue), 0, 0])

    def plan(
        self, queue: str, incarnation: str, start: int, max_messages: int, max_bytes: int
    ) -> Plan:
        return Plan(
            start,
            *self.ask(
                "plan", queue=queue, incarnation=incarnation, start=start, messages=max_messages,
                size=max_bytes,
            )
        )  # fmt: skip

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
        last = False
        while not last:
            reply = self.ask(
                "read", queue=queue, incarnation=incarnation, start=start, end=end,
                size=max_bytes, selector=selector,
            )  # fmt: skip
            records = [(at, base64.b64decode(text), 0) for at, _, text in reply["records"]]
            start, last = reply["next"], reply["last"]
            yield Chunk(queue, start, last, *chunk_of(records))

    def ack_through(self, queue: str, incarnation: str, group: str, epoch: int, end: int) -> int:
        count: int = self.ask(
            "ack", queue=queue, incarnation=incarnation, group=group, epoch=epoch, end=end
        )
        return count

    def dead_letter(
        self, queue: str, incarnation: str, group: str, epoch: int, sequence: int, why: str
    ) -> None:
        self.ask(
            "dead_letter", queue=queue, incarnation=incarnation, group=group, epoch=epoch, sequence=sequence, why=why
        )

    def lease(self, queue: str, group: str, owner: str, ttl_ms: int, epoch: int) -> Lease:
        return Lease(
            *self.ask("lease", queue=queue, group=group, owner=owner, ttl=ttl_ms, epoch=epoch)
        )

    def lost_ranges(
        self, queue: str, incarnation: str, start: int, end: int
    ) -> Sequence[LostRange]:
        found = self.ask("lost", queue=queue, incarnation=incarnation, start=start, end=end)
        return [LostRange(*one) for one in found]

    def seek(self, queue: str, timestamp_ms: int) -> int:
        at: int = self.ask("seek", queue=queue, timestamp=timestamp_ms)
        return at

    def prepare(self, messages: Sequence[OutMessage], branch: str) -> None:
        plain = []
        for one in messages:
            fields = asdict(one)
            fields["body"] = None if one.body is None else base64.b64encode(one.body).decode()
            plain.append(fields)
        self.ask("prepare", messages=plain, branch=branch)

    def prepared_branches(self) -> list[str]:
        return list(self.ask("prepared"))

    def commit_branch(self, branch: str) -> bool:
        return bool(self.ask("commit", branch=branch))

    def roll_back_branch(self, branch: str) -> bool:
        return bool(self.ask("roll_back", branch=branch))

    def decisions(self, query: str) -> dict[int, str]:
        return dict(self.ask("decisions", query=query))

    def decide(self, query: str, batch: int, decision: str) -> None:
        self.ask("decide", query=query, batch=batch, decision=decision)

    def forget_decisions(self, query: str, before: int) -> None:
        self.ask("forget", query=query, before=before)

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class FakeDataSource(AtalantaDataSource):
    """The source over the fake, under the same name."""

    @staticmethod
    def connect(server: str, credentials: Credentials) -> FakeGateway:
        return FakeGateway(server, credentials)
