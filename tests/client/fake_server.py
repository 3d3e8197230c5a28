"""The fake broker behind a real socket: in the test's own loop, or in a thread for blocking clients."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from types import TracebackType

from tests.wire.core.client.fake_broker import FakeBroker, FakeConnection


class _Link(asyncio.Protocol):
    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.peer: FakeConnection = server.broker.accept()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.links.append(self)

    def data_received(self, data: bytes) -> None:
        self.peer.feed(data)
        for link in self.server.links:
            link.flush()

    def flush(self) -> None:
        if self.peer.out and self.transport is not None:
            self.transport.write(b"".join(self.peer.out))
            self.peer.out.clear()

    def connection_lost(self, error: Exception | None) -> None:
        self.peer.close()
        if self in self.server.links:
            self.server.links.remove(self)


class FakeServer:
    """`async with FakeServer() as server`; `cut` drops all connections, `stop` also the listener."""

    def __init__(self, *queues: str, broker: FakeBroker | None = None) -> None:
        self.broker = FakeBroker() if broker is None else broker
        for name in queues:
            self.broker.queues[name] = deque()
        self.links: list[_Link] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    def url(self, options: str = "") -> str:
        return f"tcp://127.0.0.1:{self.port}" + (f"?{options}" if options else "")

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Link(self), "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.broker.port = self.port

    def cut(self) -> None:
        for link in list(self.links):
            if link.transport is not None:
                link.transport.abort()
            link.peer.close()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    async def __aenter__(self) -> FakeServer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


def meet(servers: list[FakeServer]) -> None:
    """Tells each of the servers of the others."""
    for number, server in enumerate(servers):
        server.broker.node_id = f"node-{9 - number}"  # the order of the ids is not that of the list
    for server in servers:
        others = [each for each in servers if each is not server]
        server.broker.members = {each.broker.node_id: each.port for each in others}


class ServerThread:
    """A FakeServer with a loop of its own, for clients that block."""

    def __init__(self, *queues: str) -> None:
        self.server = FakeServer(*queues)
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started = threading.Event()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.server.start())
        self._started.set()
        self.loop.run_forever()

    def cut(self) -> None:
        """Drops the connections; returns when that has happened."""
        done = threading.Event()

        def cut() -> None:
            self.server.cut()
            self.loop.call_soon(done.set)

        self.loop.call_soon_threadsafe(cut)
        assert done.wait(10)

    def __enter__(self) -> FakeServer:
        self._thread.start()
        assert self._started.wait(10)
        return self.server

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()
