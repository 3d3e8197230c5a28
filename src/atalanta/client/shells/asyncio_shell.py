"""The asyncio shell: one task keeps a transport alive. One event-loop iteration writes once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from atalanta.client.options import ClientOptions, Server
from atalanta.client.shells.awaitables import Acknowledgement, AwaitedReply
from atalanta.client.shells.reconnect import ReconnectPolicy
from atalanta.client.shells.shell import ClientShell
from atalanta.client.shells.tls import CLOSED
from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.client.reply import Reply

TICK_S = 0.5
STREAMS_MAX = 32  # per connection: streams whose next piece is read concurrently
Result = TypeVar("Result")


class _Link(asyncio.Protocol):
    """One TCP connection of a shell."""

    def __init__(self, shell: AsyncioShell) -> None:
        self.shell = shell
        self.transport: asyncio.Transport | None = None
        self.writable = asyncio.Event()
        self.writable.set()
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport is not a subclass of asyncio.Transport.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        shell = self.shell
        if shell.link is self:
            shell.engine.feed(time.monotonic_ns(), data)
            shell.flush()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.writable.set()
        self.end(CLOSED if error is None else str(error) or repr(error))

    def end(self, why: str) -> None:
        """Ends the connection; the first reason is kept."""
        if not self.over.done():
            self.over.set_result(why)


class AsyncioShell(ClientShell):
    """A shell that belongs to the event loop running at its creation."""

    suspends = True

    def __init__(self, options: ClientOptions) -> None:
        self._out: list[bytes] = []
        self._scheduled = False
        self.loop = asyncio.get_running_loop()
        self.link: _Link | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        super().__init__(options)

    def start(self) -> None:
        """Starts to connect."""
        self._task = self.loop.create_task(self._keep_connected())
        self._task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """Fails every call if the task failed (a bug here or in a listener), so that no call waits for ever."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.engine.fail(ClientError(f"the connection's task failed: {error!r}"))
            context = {"message": "the connection's task failed", "exception": error}
            self.loop.call_exception_handler(context)

    # -- Shell ----------------------------------------------------------------------------------
    async def wait(self, reply: Reply, timeout_s: float | None = None) -> bool:
        if reply.done:
            return True
        future: asyncio.Future[None] = self.loop.create_future()
        waiter = _Waiter(future, reply.on_done)
        reply.on_done = waiter.done
        timer = None
        if timeout_s is not None:
            timer = self.loop.call_later(timeout_s, waiter.done, reply)
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()
        return reply.done

    def waiting(self, ask: Callable[[], Reply]) -> Acknowledgement:
        return AwaitedReply(self, ask)

    def outcome(self, reply: Reply) -> Acknowledgement:
        return AwaitedReply(self, lambda: reply)

    async def beside(self, function: Callable[[], Result]) -> Result:
        # The loop's own threads also resolve names; a blocked pipe would occupy one of them.
        if self._threads is None:
            self._threads = ThreadPoolExecutor(STREAMS_MAX, "atalanta-stream")
        return await self.loop.run_in_executor(self._threads, function)

    def caller(self) -> object:
        return asyncio.current_task()

    async def drained(self) -> None:
        self.flush()
        link = self.link
        if link is not None:
            await link.writable.wait()

    def after_call(self) -> None:
        return None

    def write(self, data: bytes) -> None:
        self._out.append(data)
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self.flush)

    def want_flush(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Writes the data of one event-loop iteration at once."""
        self.engine.flush()
        self._scheduled = False
        out = self._out
        if out:
            self._out = []
            transport = None if self.link is None else self.link.transport
            # A closing transport accepts no data. Lost messages are sent again, or their calls fail.
            if transport is not None and not transport.is_closing():
                transport.write(out[0] if len(out) == 1 else b"".join(out))

    async def shut(self) -> None:
        self.closed = True
        self.stop_priority_watch()
        self.flush()
        task = self._task
        link = self.link
        if link is not None and link.transport is not None:
            link.transport.close()
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    # -- ClientEvents ---------------------------------------------------------------------------
    def ready(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def broken(self, why: str) -> None:
        if self.link is not None:
            self.link.end(why)

    # -- the task -------------------------------------------------------------------------------
    async def _keep_connected(self) -> None:
        policy = self.policy
        while not self.closed and self.engine.failed is None:
            if policy.wants_servers:
                await self._find(policy)
                continue
            dial = policy.next_dial()
            if dial is None:
                self.give_up()
                return
            server, at_ns = dial
            await self._sleep_until(at_ns)
            try:
                async with asyncio.timeout(self.options.connection_timeout_ms / 1000):
                    link = await self._dial(server)
            except (OSError, TimeoutError, UnicodeError) as error:
                # asyncio's reset during a TLS handshake has no text.
                silent = "timed out" if isinstance(error, TimeoutError) else "connection reset"
                self.attempt_failed(time.monotonic_ns(), str(error) or silent)
                continue
            await self._serve(server, link)

    async def _sleep_until(self, at_ns: int) -> None:
        pause_s = (at_ns - time.monotonic_ns()) / 1e9
        if pause_s > 0:
            await asyncio.sleep(pause_s)

    async def _find(self, policy: ReconnectPolicy) -> None:
        """Runs discovery in a thread, so that the event loop continues."""
        finder = self.options.finder
        assert finder is not None
        await self._sleep_until(policy.next_at_ns)
        try:
            servers = await asyncio.to_thread(finder.servers, lambda: self.closed)
        except OSError as error:
            self.none_found(time.monotonic_ns(), str(error))
        else:
            policy.found(servers)

    async def _dial(self, server: Server) -> _Link:
        tls = self.options.secure
        _, link = await self.loop.create_connection(
            lambda: _Link(self),
            server.host,
            server.port,
            ssl=None if tls is None else tls.context,
            server_hostname=None if tls is None else tls.server_name(server.host),
            local_addr=self.options.local_end,
        )
        return link

    async def _serve(self, server: Server, link: _Link) -> None:
        """Serves one transport from its first byte to its end."""
        assert link.transport is not None
        self._out.clear()
        self.link = link
        self.dialled = server
        ready = self._ready = self.loop.create_future()
        connected = False
        try:
            self.engine.start(time.monotonic_ns())
            while not link.over.done():
                waits: list[asyncio.Future[str] | asyncio.Future[None]] = [link.over]
                if not connected:
                    waits.append(ready)
                await asyncio.wait(waits, timeout=TICK_S, return_when=asyncio.FIRST_COMPLETED)
                now = time.monotonic_ns()
                if not connected and ready.done() and self.engine.failed is None:
                    connected = True
                    self.connected(now, server)
                self.engine.on_timer(now)
                if connected:
                    self.return_to_priority()
            why = link.over.result()
        finally:
            link.transport.abort()
            self.link = None
        now = time.monotonic_ns()
        if connected:
            self.transport_lost(now, why)
        else:
            self.login_lost(now, why)


class _Waiter:
    """A callback that wakes a coroutine, and earlier waiters for the same reply."""

    def __init__(
        self, future: asyncio.Future[None], before: Callable[[Reply], None] | None
    ) -> None:
        self.future = future
        self.before: Callable[[Reply], None] | None
        # Waiters whose time was over are left out: otherwise one would remain for each wait.
        while isinstance(other := getattr(before, "__self__", None), _Waiter) and other.future.done():
            before = other.before
        self.before = before

    def done(self, reply: Reply) -> None:
        if not self.future.done():
            self.future.set_result(None)
        if self.before is not None and reply.done:
            self.before(reply)
