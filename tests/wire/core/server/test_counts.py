"""Counters of the server for metrics and management."""

from __future__ import annotations

from atalanta.management.metrics import security_figures
from tests.wire.core.server.server_rig import Server, queue_request


def test_logins_and_refusals_are_counted(server: Server) -> None:
    """As Artemis' meters; permissions that are granted are asked for with every message and not counted."""
    for password in ("wrong", "admin", "also wrong"):
        client = server.greeted()
        client.open_session(10, "admin", password)
    server.login("guest", "guest").send(queue_request("forbidden"))
    server.settle()
    text = security_figures("localhost", server.broker.clients, server.broker.permissions)
    assert 'artemis_authentication_count{broker="localhost",result="success"} 2\n' in text
    assert 'artemis_authentication_count{broker="localhost",result="failure"} 2\n' in text
    assert 'artemis_authorization_count{broker="localhost",result="failure"} 1\n' in text
