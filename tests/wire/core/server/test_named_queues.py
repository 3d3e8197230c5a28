"""Messages that name their queues (`_AMQ_ROUTE_TO`), as imports of exports send them: who may, and what is seen."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import QUEUE_DOES_NOT_EXIST
from atalanta.kernel.registry.duplicate_spaces import IMPORT
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.wire.core.packets.connection import ExceptionResponse
from tests.wire.core.server.server_rig import Client, Server


def queues(server: Server, *names: str) -> bytes:
    """The header's value for these queues."""
    return b"".join(server.broker.queues[name].id.to_bytes(8, "big") for name in names)


def counts(server: Server, *names: str) -> list[int]:
    server.settle()
    return [server.broker.queues[name].message_count for name in names]


def subscriptions(server: Server, user: str = "admin") -> Client:
    client = server.login()
    for name in ("a", "b", "c"):
        client.create_queue(name, "news", 0)
    return client if user == "admin" else server.login(user)


def test_the_message_is_in_those_queues_under_its_address(server: Server) -> None:
    client = subscriptions(server)
    client.publish("news", "x", routing_type=0, _AMQ_ROUTE_TO=queues(server, "a", "c"))
    assert counts(server, "a", "b", "c") == [1, 0, 1]
    client.consume("a")
    server.settle()
    (delivery,) = client.deliveries()
    assert delivery.message.address == "news" and not delivery.message.has_property("_AMQ_ROUTE_TO")


def test_a_user_who_may_not_manage_names_no_queues(server: Server) -> None:
    client = subscriptions(server, "guest")
    server.security.add_rule("news", {"send": ["guest"]})
    client.publish("news", "x", _AMQ_ROUTE_TO=queues(server, "a"))
    assert counts(server, "a", "b", "c") == [1, 1, 1]


def test_a_manager_needs_the_permission_to_send(server: Server) -> None:
    server.security.add_rule("activemq.management", {"manage": ["guest"]})
    client = subscriptions(server, "guest")
    client.publish("news", "x", _AMQ_ROUTE_TO=queues(server, "a"))
    assert counts(server, "a", "b", "c") == [0, 0, 0]
    assert [packet.code for packet in client.packets(ExceptionResponse)] == [105]


@pytest.mark.parametrize("ids", [(1 << 50).to_bytes(8, "big"), b"\0" * 9])
@pytest.mark.parametrize("transacted", [False, True])
def test_a_queue_that_is_missing_is_an_error(server: Server, ids: bytes, transacted: bool) -> None:
    subscriptions(server)
    client = server.login(transacted=transacted)
    client.publish("news", "x", _AMQ_ROUTE_TO=ids)
    (answer,) = client.packets(ExceptionResponse)
    assert answer.code == QUEUE_DOES_NOT_EXIST and "news" in (answer.message or "")
    assert counts(server, "a", "b", "c") == [0, 0, 0]


def test_no_queue_is_created_beside_the_named_one(server: Server) -> None:
    client = server.login()
    client.create_queue("all", "orders.#", 1)
    client.publish("orders.eu", "x", routing_type=1, _AMQ_ROUTE_TO=queues(server, "all"))
    assert counts(server, "all") == [1] and "orders.eu" not in server.broker.queues


def test_an_import_is_stored_once_and_keeps_the_application_s_id(server: Server) -> None:
    client = subscriptions(server)
    for queue in ("a", "b", "a"):
        client.publish(
            "news", "x", routing_type=0, _AMQ_ROUTE_TO=queues(server, queue), _AMQ_DUPL_ID=b"own",
            _AMQ_BRIDGE_DUP=IMPORT + queue.encode(),
        )  # fmt: skip
    assert counts(server, "a", "b", "c") == [1, 1, 0]
    client.publish("news", "x", routing_type=0, _AMQ_DUPL_ID=b"own")
    assert counts(server, "a", "b", "c") == [1, 1, 0]
    validate(server.broker)
    server.restart()
    client = server.login()
    client.publish("news", "x", _AMQ_ROUTE_TO=queues(server, "a"), _AMQ_BRIDGE_DUP=IMPORT + b"a")
    client.publish("news", "x", routing_type=0, _AMQ_DUPL_ID=b"own")
    assert counts(server, "a", "b", "c") == [1, 1, 0]


def test_a_bridge_names_no_queues(server: Server) -> None:
    client = subscriptions(server)
    client.publish("news", "x", _AMQ_ROUTE_TO=queues(server, "a"), _AMQ_BRIDGE_DUP=b"of a bridge")
    assert counts(server, "a", "b", "c") == [1, 1, 1]


def test_no_divert_takes_an_import(server: Server) -> None:
    client = subscriptions(server)
    client.create_queue("elsewhere")
    divert = DivertConfig(name="d", address="news", forwarding_address="elsewhere", exclusive=True)
    server.broker.diverts.create(divert, False)
    client.publish("news", "x", _AMQ_ROUTE_TO=queues(server, "a"), _AMQ_BRIDGE_DUP=IMPORT + b"1")
    assert counts(server, "a", "elsewhere") == [1, 0]
