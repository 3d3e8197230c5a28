"""What a console refuses to be started with."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import aiohttp
import pytest

from atalanta.console.options import ConsoleOptions, ConsoleRefused
from atalanta.console.server import ConsoleServer
from tests.certificates import Authority


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"listen": "0.0.0.0:8161"}, "--plain"),
        ({"listen": "10.0.0.1:8161"}, "unencrypted"),
        ({"listen": "8161"}, "not host:port"),
        ({"listen": "[::1"}, "no closing"),
        ({"path": "/a/../b"}, "not a path"),
        ({"path": "console"}, "not a path"),
        ({"path": "/<x>"}, "not a path"),
        ({"origins": ["ops.example.org"]}, "not an address such as https"),
        ({"origins": ["https://ops.example.org/console"]}, "not an address such as https"),
        ({"tls_key": Path("key.pem")}, "give both"),
        ({"tls_certificate": Path("none.pem")}, "PEM"),
        ({"nodes": ["tcp://a:1,b:2"]}, "not one node"),
        ({"nodes": []}, "at least one"),
    ],
)
def test_a_mistake_names_the_option(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConsoleRefused, match=words):
        ConsoleServer(ConsoleOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options", [{}, {"listen": "[::1]:0"}, {"listen": "0.0.0.0:1", "plain": True}, {"path": "/console/"}, {"path": "/"}]
)
def test_what_is_good_starts(options: dict[str, object]) -> None:
    server = ConsoleServer(ConsoleOptions(**options))  # type: ignore[arg-type]
    assert server.options.base_path() in ("", "/console")


def test_default_ports_of_an_origin_are_left_out() -> None:
    options = ConsoleOptions(origins=["https://Ops.example.org:443/", "http://b:81"])
    assert options.origin_hosts() == {"ops.example.org": "https://ops.example.org", "b:81": "http://b:81"}


def test_with_a_certificate_it_speaks_tls(tmp_path: Path) -> None:
    authority = Authority("authority")
    pem = authority.holder("localhost", "localhost").key_pem(tmp_path)
    options = ConsoleOptions(listen="127.0.0.1:0", tls_certificate=pem)

    async def main() -> None:
        server = ConsoleServer(options)
        assert (await server.start()).startswith("https://127.0.0.1:")
        try:
            context = ssl.create_default_context(cafile=str(authority.trust_pem(tmp_path)))
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"https://localhost:{server.port}/login", ssl=context) as answer,
            ):
                (cookie,) = answer.headers.getall("Set-Cookie")
                assert cookie.startswith("__Host-atalanta_entry=") and "Secure" in cookie and "Path=/;" in f"{cookie};"
                assert "max-age" in answer.headers["Strict-Transport-Security"]
        finally:
            await server.stop()

    asyncio.run(main())


def test_an_encrypted_key_is_refused(tmp_path: Path) -> None:
    pem = Authority("authority").holder("localhost").key_pem(tmp_path, "hidden")
    with pytest.raises(ConsoleRefused, match="without a password"):
        ConsoleServer(ConsoleOptions(listen="127.0.0.1:0", tls_certificate=pem))
