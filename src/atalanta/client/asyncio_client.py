"""`connect` for asyncio programs, and `run`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from dataclasses import replace
from ssl import SSLContext
from typing import Any, TypeVar

from atalanta.client.connection import Connection
from atalanta.client.discovery.factory import UrlOptions, chosen_member
from atalanta.client.discovery.load_balancing import Balancing
from atalanta.client.options import ClientOptions, Server
from atalanta.client.shells.asyncio_shell import AsyncioShell
from atalanta.wire.core.client.errors import ConnectFailed

try:
    import uvloop
except ImportError:  # no wheel for this platform: asyncio's own loop works too, more slowly
    _uvloop_factory = None
else:
    _uvloop_factory = uvloop.new_event_loop

Result = TypeVar("Result")
TOPOLOGY_WAIT_S = 2.0


class Connecting:
    """The result of `connect`. Use it with `async with`, or await it for a Connection that you close."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._connection: Connection | None = None

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._open().__await__()

    async def __aenter__(self) -> Connection:
        self._connection = await self._open()
        return self._connection

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _open(self) -> Connection:
        connection = await _login(self._options)
        if not self._options.use_topology_for_load_balancing:
            return connection
        try:
            chosen = await _choose(connection)
        except BaseException:
            await connection.close()
            raise
        if chosen is None:
            return connection
        servers = [chosen, *self._options.servers]
        try:
            # The balancing policy has chosen already; its choice is tried first. Discovery is complete as well.
            balanced = await _login(
                replace(self._options, servers=servers, balancing=None, finder=None)
            )
        except ConnectFailed:
            return connection  # the node in the topology cannot be reached from this host
        await connection.close()
        return balanced


async def _login(options: ClientOptions) -> Connection:
    shell = AsyncioShell(options)
    connection = Connection(shell)
    shell.start()
    try:
        await connection.login()
    except BaseException:
        shell.engine.close()
        await shell.shut()
        raise
    return connection


async def _choose(connection: Connection) -> Server | None:
    """Returns another member of the topology to connect to, or None to keep the connection."""
    engine = connection.shell.engine
    complete = asyncio.Event()
    connection.on_topology(complete.set)
    try:
        async with asyncio.timeout(TOPOLOGY_WAIT_S):
            while not engine.topology_complete:
                complete.clear()
                await complete.wait()
    except TimeoutError:
        return None
    return chosen_member(connection.shell)


class ConnectionFactory:
    """Factory of connections of one URL, like in JMS. They share the balancing policy and the discovered servers.

        factory = ConnectionFactory("(tcp://a:1,tcp://b:2)", balancing=RoundRobin())
        async with factory.connect() as one, factory.connect() as other:
            …
    """

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        ssl: SSLContext | None = None,
        balancing: Balancing | Callable[[int], int] | None = None,
    ) -> None:
        self._url = UrlOptions(url, user, password, ssl, balancing)

    def connect(self) -> Connecting:
        """Returns a new connection."""
        return Connecting(self._url.options())


def connect(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    ssl: SSLContext | None = None,
    balancing: Balancing | Callable[[int], int] | None = None,
) -> Connecting:
    """Connects to a server of the URL, `tcp://host:port?options` or `(tcp://a:1,tcp://b:2)?options`.

    `udp://group:port` connects to a server that announces itself there. options.py lists the options.

        async with connect("tcp://localhost:61616", user="u", password="p") as connection:
            …

    For TLS use `?sslEnabled=true&trustStorePath=ca.pem`, or pass `ssl`, a context of your own. `balancing` chooses
    among the servers (client/discovery/load_balancing.py). To share it, pass the same object to several `connect`,
    or use a ConnectionFactory.
    Raises UriError at once for an invalid URL; ConnectFailed or NotAuthorized while it connects.
    """
    factory = ConnectionFactory(url, user=user, password=password, ssl=ssl, balancing=balancing)
    return factory.connect()


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Runs asyncio.run, on uvloop if it is installed."""
    with asyncio.Runner(loop_factory=_uvloop_factory) as runner:
        return runner.run(main)
