"""A node that echoes, for tests of the shell: it records its inputs and answers each chunk."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from atalanta.cluster.inputs import NodeInputs
from atalanta.runtime.lifecycle.lifecycle import Lifecycle
from atalanta.runtime.net.acceptor import Listen
from atalanta.runtime.net.limits import Limits
from atalanta.runtime.shell import Shell
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.ha.register import Register

DEADLINE_S = 10.0


class MemoryDisk:
    """Nothing to write, nothing to wait for."""

    def __init__(self) -> None:
        self.closed = False

    def idle(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Remembers."""
        self.closed = True


class EchoNode(NodeInputs):
    """Answers every chunk with itself, then closes after "bye"; "boom" is a bug of its own."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.failed: str | None = None
        self.log: list[tuple[object, ...]] = []
        self.times: list[int] = []
        self.flushes = 0
        self.bytes_taken = 0
        self.clients_arrive: Callable[[], bool] = lambda: False
        self.server_names: list[str | None] = []  # that those who were accepted asked for
        self.certificates: list[str] = []
        self.open: list[int] = []
        self.usage: list[float] = []

    def _note(self, now: int, *words: object) -> None:
        assert not self.times or now >= self.times[-1], "time went back"
        self.times.append(now)
        self.log.append(words)

    def words(self, first: str) -> list[tuple[object, ...]]:
        """The recorded inputs of one kind."""
        return [entry for entry in self.log if entry[0] == first]

    def recover(self, now: int) -> None:
        """Nothing to read."""
        self._note(now, "recover")

    def start(self, now: int) -> None:
        """Noted."""
        self._note(now, "start")

    def arriving(self) -> bool:
        """Tells what the test has set."""
        return self.clients_arrive()

    def on_accept(
        self,
        now: int,
        conn: int,
        acceptor: str,
        remote: str = "",
        server_name: str | None = None,
        certificate: str = "",
    ) -> None:
        """Noted."""
        self._note(now, "accept", conn, acceptor, remote)
        self.server_names.append(server_name)
        self.certificates.append(certificate)
        self.open.append(conn)

    def on_data(self, now: int, conn: int, data: bytes) -> None:
        """The echo."""
        self._note(now, "data", conn, data)
        self.bytes_taken += len(data)
        if data == b"boom":
            raise ValueError("a bug of the node")
        if data == b"fail":
            self.failed = "the disk is gone"
            return
        self.shell.connections.write(conn, data)
        if data == b"bye":
            self.shell.connections.close(conn, "said bye")
            self.shell.connections.write(conn, b"never sent")

    def on_closed(self, now: int, conn: int, why: str) -> None:
        """Noted."""
        self._note(now, "closed", conn, why)
        self.open.remove(conn)

    def on_blocked(self, now: int, conn: int) -> None:
        """Noted."""
        self._note(now, "blocked", conn)

    def on_unblocked(self, now: int, conn: int) -> None:
        """Noted."""
        self._note(now, "unblocked", conn)

    def on_hung_up(self, now: int, conn: int) -> None:
        """Noted."""
        self._note(now, "hung_up", conn)

    def on_dialed(self, now: int, conn: int, key: str) -> None:
        """Noted."""
        self._note(now, "dialed", conn, key)
        self.open.append(conn)

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        """Noted."""
        self._note(now, "dial_failed", key, why)

    def on_timer(self, now: int, key: str) -> None:
        """Noted."""
        self._note(now, "timer", key)

    def on_resolved(self, now: int, key: str, places: list[tuple[str, int]], why: str) -> None:
        """Noted."""
        self._note(now, "resolved", key, places, why)

    def on_posted(self, now: int, key: str, files: dict[str, bytes], why: str) -> None:
        """Noted."""
        self._note(now, "posted", key, files, why)

    def on_backups(self, now: int, backups: dict[str, TransportConfiguration]) -> None:
        """Noted."""
        self._note(now, "backups", backups)

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        """Noted."""
        self._note(now, "datagram", group, data)

    def on_committed(self, now: int, token: int) -> None:
        """Noted."""
        self._note(now, "committed", token)

    def on_disk_usage(self, now: int, used_fraction: float, free_bytes: int) -> None:
        self.usage.append(used_fraction)

    def on_disk_failed(self, now: int, why: str) -> None:
        """Noted."""
        self._note(now, "disk_failed", why)

    def on_verified(self, now: int, token: int, ok: bool) -> None:
        """Noted."""
        self._note(now, "verified", token, ok)

    def on_users(self, now: int, token: int, answer: object) -> None:
        """Noted."""
        self._note(now, "users", token, answer)

    def on_reload(self, now: int, config: object) -> None:
        """Noted."""
        self._note(now, "reload", config)

    def on_settings_changed(self, now: int, token: int, stored: object, why: str) -> None:
        """Noted."""
        self._note(now, "settings_changed", token, stored, why)

    def on_large_written(self, now: int, file: int, size: int) -> None:
        """Noted."""
        self._note(now, "large_written", file, size)

    def on_large_synced(self, now: int, file: int) -> None:
        """Noted."""
        self._note(now, "large_synced", file)

    def on_large_failed(self, now: int, file: int, why: str) -> None:
        """Noted."""
        self._note(now, "large_failed", file, why)

    def on_large_read(self, now: int, token: int, data: bytes) -> None:
        """Noted."""
        self._note(now, "large_read", token, len(data))

    def flush(self, now: int) -> None:
        """Counted."""
        self.flushes += 1

    def on_register(self, now: int, version: int, register: Register | None) -> None:
        raise AssertionError("it is in no group")

    def on_register_uncertain(self, now: int, why: str) -> None:
        raise AssertionError("it is in no group")

    def flush_answers(self, now: int) -> None:
        """Noted."""
        self._note(now, "flush_answers")

    def leave(self, now: int) -> None:
        raise AssertionError("nobody asked for this")

    def stop(self, now: int) -> None:
        """Says goodbye on every connection."""
        self._note(now, "stop")
        for conn in self.open:
            self.shell.connections.write(conn, b"goodbye")


class Running:
    """A shell with an echo node, ready to be talked to."""

    def __init__(self, shell: Shell, node: EchoNode, task: asyncio.Task[int], places: list[str]):
        self.shell = shell
        self.node = node
        self.task = task
        self.places = places

    @property
    def port(self) -> int:
        """Of the first acceptor."""
        return int(self.places[0].rpartition(":")[2])

    async def connect(
        self, context: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A client connection, with TLS if a context is given."""
        name = "localhost" if context is not None else None
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=context, server_hostname=name
        )

    async def until(self, condition: Callable[[], object]) -> None:
        """Waits for a condition, or fails at the deadline."""
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                await asyncio.sleep(0.002)


async def with_echo(
    use: Callable[[Running], Awaitable[None]],
    limits: Limits | None = None,
    connections_max: int = -1,
    tls: ssl.SSLContext | None = None,
    handshake_timeout_s: float = 10.0,
) -> tuple[int, EchoNode]:
    """Runs a shell around an echo node, `use` with it, then stops it; (exit status, node)."""
    loop = asyncio.get_running_loop()
    shell = Shell(loop, limits)
    node = EchoNode(shell)
    listen = Listen(
        "artemis",
        "127.0.0.1",
        0,
        connections_max,
        tls=tls,
        handshake_timeout_s=handshake_timeout_s,
    )
    shell.bind([listen])
    started: asyncio.Future[list[str]] = loop.create_future()
    disk = MemoryDisk()
    task = loop.create_task(shell.run(node, disk, started.set_result, Lifecycle(arriving=node.arriving)))
    async with asyncio.timeout(3 * DEADLINE_S):
        await use(Running(shell, node, task, await started))
        shell.request_stop("the test is over")
        status = await task
    assert disk.closed
    return status, node
