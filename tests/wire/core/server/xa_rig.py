"""A client with an XA session."""

from __future__ import annotations

from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.transaction import (
    XaResponse,
    Xid,
)
from tests.wire.core.server.server_rig import Client, Server

ONE = Xid(1, b"branch-1", b"global")


def xa_client(server: Server) -> Client:
    """One XA session on channel 10; the queues `in` and `out` exist."""
    client = server.greeted()
    client.open_session(10, "admin", "admin", transacted=True, xa=True)
    if "in" not in server.broker.queues:
        client.create_queue("in")
        client.create_queue("out")
    return client


def ok(client: Client, *packets: Packet) -> None:
    for packet in packets:
        answer = client.call(packet)
        assert isinstance(answer, XaResponse) and not answer.error, f"{packet}: {answer}"
