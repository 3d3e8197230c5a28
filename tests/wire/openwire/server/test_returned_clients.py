"""Clients that came back get messages a little later, each at its own time."""

from __future__ import annotations

from atalanta.wire.openwire.commands.identifiers import SessionId
from atalanta.wire.openwire.commands.producers import SessionInfo
from atalanta.wire.openwire.server.returned_clients import REPEATS_NS
from tests.wire.openwire.server.openwire_rig import OpenWireClient, OpenWireServer, text


def returned(server: OpenWireServer, name: str) -> OpenWireClient:
    client = OpenWireClient(server, name)
    client.greet()
    client.send(client.login_info(name, "admin", "admin", failover_reconnect=True))
    client.send(SessionInfo(SessionId(client.id, 1)))
    client.consume(name)
    return client


def test_each_client_that_came_back_starts_at_its_own_time(server: OpenWireServer) -> None:
    """Also those behind a client that has gone away meanwhile."""
    sender = server.openwire_client("sender")
    for queue in ("a", "b", "c"):
        sender.publish(f"of {queue}", queue)
    clients = []
    for name in ("a", "b", "c"):
        clients.append(returned(server, name))
        server.now += REPEATS_NS // 10
    gone, first, last = clients
    server.lost(gone.conn)
    server.now += REPEATS_NS - 2 * (REPEATS_NS // 10)
    server.beat()
    assert [text(each) for each in first.dispatches()] == ["of b"] and last.dispatches() == []
    server.now += REPEATS_NS // 10
    server.beat()
    assert [text(each) for each in last.dispatches()] == ["of c"]
