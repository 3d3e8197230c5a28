"""Browsers that are many or slow: the console closes connections, and goes on."""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlsplit

import aiohttp
import pytest

from atalanta.console import server as console_server
from tests.console.console_rig import served

NOWHERE = "127.0.0.1:1"


async def raw(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = urlsplit(address)
    return await asyncio.open_connection(place.hostname, place.port)


async def until_closed(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(5):
            while await reader.read(65_536):
                pass


def test_a_request_that_never_ends_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_server, "REQUEST_S", 0.3)

    async def main() -> None:
        async with served(NOWHERE) as server:
            for began in (b"", b"GET /login HTTP/1.1\r\nHost: localhost\r\nX-A: ",
                          b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nuser="):
                reader, writer = await raw(server.address)
                writer.write(began)
                await until_closed(reader)
                writer.close()

    asyncio.run(main())


def test_above_the_limit_the_oldest_connection_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_server, "CONNECTIONS_MAX", 3)

    async def main() -> None:
        async with served(NOWHERE) as server, contextlib.AsyncExitStack() as stack:
            held = [await raw(server.address) for _ in range(3)]
            for _, writer in held:
                stack.callback(writer.close)
            async with aiohttp.ClientSession() as session, session.get(f"{server.address}login") as answer:
                assert answer.status == 200
            await until_closed(held[0][0])

    asyncio.run(main())
