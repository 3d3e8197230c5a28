"""Consumer at all members of a cluster for blocking programs: its connections live in an event loop of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from atalanta.client import connection as asynchronous
from atalanta.client.asyncio_client import login
from atalanta.client.blocking import Consumer
from atalanta.client.cluster_consumer import ClusterConsumer as AsyncClusterConsumer
from atalanta.client.message import ReceivedMessage
from atalanta.client.options import ClientOptions, Server
from atalanta.client.shells.awaitables import READY, Acknowledgement, Settler
from atalanta.client.shells.loop_thread import LoopThread
from atalanta.wire.core.client.consumer import Delivery

Result = TypeVar("Result")


class ClusterConsumer(Consumer):
    """See atalanta.client.ClusterConsumer. It has a connection of its own to the node of the program's connection."""

    def __init__(self, options: ClientOptions, server: Server | None, queue: str, arguments: dict[str, Any]) -> None:
        self.queue = queue
        self._closed = False
        # The program's connection has the client id and the port.
        first = [] if server is None else [server]
        own = replace(options, members=first, balancing=None, client_id=None, local_port=0)
        self._thread = LoopThread(f"the consumer of {queue}")
        try:
            self._connection = self._thread.call(login(own))
            self._members = self._thread.call(self._open(arguments))
        except BaseException:
            self._thread.end()
            raise

    async def _open(self, arguments: dict[str, Any]) -> AsyncClusterConsumer:
        try:
            consumer = await self._connection.consumer(self.queue, members=asynchronous.ALL_MEMBERS, **arguments)
        except BaseException:
            await self._connection.close()
            raise
        assert isinstance(consumer, AsyncClusterConsumer)
        consumer.settler = ThreadSettler(self._thread, consumer)
        return consumer

    @property
    def received(self) -> int:
        return self._thread.call(_returned(lambda: self._members.received))

    @property
    def buffered(self) -> int:
        return self._thread.call(_returned(lambda: self._members.buffered))

    @property
    def members(self) -> tuple[str, ...]:
        return self._thread.call(_returned(lambda: self._members.members))

    @property
    def closed(self) -> bool:
        return self._closed

    def __next__(self) -> ReceivedMessage:
        try:
            return self._thread.call(self._members.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def receive(self, timeout_s: float | None = None) -> ReceivedMessage | None:
        return self._thread.call(self._members.receive(timeout_s))

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            if self._thread.survived:
                self._thread.call(self._connection.close())
        finally:
            self._thread.end()

    def __enter__(self) -> ClusterConsumer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if not self._closed and self._thread.survived:
                self._thread.call(self._members.__aexit__(kind, error, trace))
        finally:
            self.close()


async def _returned(value: Callable[[], Result]) -> Result:
    return value()


class ThreadSettler(Settler):
    """Acknowledges and gives back in the loop what the program has in its own thread."""

    def __init__(self, thread: LoopThread, consumer: AsyncClusterConsumer) -> None:
        self._thread = thread
        self._consumer = consumer

    def acknowledge(self, delivery: Delivery) -> Acknowledgement:
        self._thread.call(self._acknowledged(delivery))
        return READY

    async def _acknowledged(self, delivery: Delivery) -> None:
        await self._consumer.acknowledge(delivery)

    def settle(self, delivery: Delivery, reject: bool, delay_ms: int) -> Acknowledgement:
        self._thread.call(self._settled(delivery, reject, delay_ms))
        return READY

    async def _settled(self, delivery: Delivery, reject: bool, delay_ms: int) -> None:
        await self._consumer.settle(delivery, reject, delay_ms)
