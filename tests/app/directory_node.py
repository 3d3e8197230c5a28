"""A broker whose users a directory knows, and how somebody logs in at it over each protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from atalanta.client import ClientError, Message, NotAuthorized, connect
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from tests.app.raw_clients import OpenWireSocket, StompSocket
from tests.broker_xml import ORDERS, USE, permissions, write_broker_xml, write_users

MODULE = "org.apache.activemq.artemis.spi.core.security.jaas."
REFUSED = "refused"
FORBIDDEN = "forbidden"
ALLOWED = "allowed"


def write_directory_node(
    folder: Path, port: int, options: Mapping[str, str], more: str = "", flag: str = "sufficient", core: str = ""
) -> Path:
    """A broker.xml whose role `writers` may use all, and a login.config with LDAPLoginModule, then the modules `more`.

    `admin` is a user of the files, for them.
    """
    elements = core + ORDERS + permissions("writers", USE)
    # A test may let a login wait longer than the usual ten seconds.
    path = write_broker_xml(folder, port, more=elements, security=True, options="?handshake-timeout=60")
    write_users(path, {"admin": "admin"}, {"writers": "admin"})
    lines = "".join(f'\n      {name}="{value}"' for name, value in options.items())
    path.with_name("login.config").write_text(f"activemq {{\n   {MODULE}LDAPLoginModule {flag}{lines};\n{more}}};\n")
    return path


PROPERTIES = f"   {MODULE}PropertiesLoginModule sufficient;\n"


def over_core(port: int, user: str, password: str) -> str:
    """What a sender with these credentials gets to see over CORE."""

    async def use() -> str:
        try:
            async with connect(f"tcp://127.0.0.1:{port}", user=user, password=password) as connection:
                producer = await connection.producer("orders")
                await producer.send(Message("x"))
        except NotAuthorized as error:
            return REFUSED if "validate user" in str(error) else FORBIDDEN
        except ClientError as error:
            return str(error)
        return ALLOWED

    return asyncio.run(use())


def over_openwire(port: int, user: str, password: str) -> str:
    """The same over OpenWire."""
    with closing(OpenWireSocket(port)) as client:
        client.begin_login(user, password)
        answer = client.until(Response)
        if isinstance(answer, ExceptionResponse):
            return REFUSED
        client.open_session()
        return FORBIDDEN if isinstance(client.post("orders", b"x"), ExceptionResponse) else ALLOWED


def over_stomp(port: int, user: str, password: str) -> str:
    """The same over STOMP."""
    with closing(StompSocket(port)) as client:
        client.begin_login(user, password)
        if b"CONNECTED" not in client.until(b"\0"):
            return REFUSED
        client.send(client.message("orders", b"x", "1"))
        return FORBIDDEN if b"ERROR" in client.until(b"\0") else ALLOWED


DOORS: tuple[Callable[[int, str, str], str], ...] = (over_core, over_openwire, over_stomp)


def everywhere(port: int, user: str, password: str) -> list[str]:
    """What somebody with these credentials gets to see over each protocol."""
    return [door(port, user, password) for door in DOORS]
