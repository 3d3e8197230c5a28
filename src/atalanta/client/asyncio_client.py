"""`connect` for asyncio programs, and `run`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from ssl import SSLContext
from typing import Any, TypeVar

from atalanta.client.connection import Connection
from atalanta.client.discovery.factory import TOPOLOGY_POLL_S, TOPOLOGY_WAIT_S, UrlOptions
from atalanta.client.discovery.load_balancing import Balancing
from atalanta.client.options import ClientOptions
from atalanta.client.shells.asyncio_shell import AsyncioShell

try:
    import uvloop
except ImportError:  # no wheel for this platform: asyncio's own loop works too, more slowly
    _uvloop_factory = None
else:
    _uvloop_factory = uvloop.new_event_loop

Result = TypeVar("Result")


class Connecting:
    """The result of `connect`. Use it with `async with`, or await it for a Connection that you close."""

    def __init__(self, url: UrlOptions) -> None:
        self._url = url
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
        url = self._url
        until_s = time.monotonic() + TOPOLOGY_WAIT_S
        while not url.may_open(until_s):
            await asyncio.sleep(TOPOLOGY_POLL_S)
        connection: Connection | None = None
        try:
            connection = await login(url.options())
        finally:
            url.opened(None if connection is None else connection.shell)
        return connection


async def login(options: ClientOptions) -> Connection:
    """Returns a connection whose first session the broker has accepted."""
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


class ConnectionFactory:
    """Factory of connections of one URL, like in JMS. They share the balancing policy and the discovered servers.

    The first connection goes to a server of the URL, later ones round the members of the cluster that the first one
    names, as long as there is one (RoundRobin, unless the URL or `balancing` says otherwise).

        factory = ConnectionFactory("(tcp://a:1,tcp://b:2)")
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
        return Connecting(self._url)


def connect(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    ssl: SSLContext | None = None,
    balancing: Balancing | Callable[[int], int] | None = None,
) -> Connecting:
    """Connects to a server of the URL, `tcp://host:port?options` or `(tcp://a:1,tcp://b:2)?options`.

    A list is tried from a random server on; with `balancing=FirstElement()` in its order. Every call is a
    ConnectionFactory of one connection.

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
