"""Queues, addresses and subscriptions as a CORE client makes and asks for them."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import (
    ADDRESS_DOES_NOT_EXIST,
    DUPLICATE_METADATA,
    ILLEGAL_STATE,
    INTERNAL_ERROR,
    INVALID_FILTER,
    INVALID_SHARED_QUEUE,
    QUEUE_DOES_NOT_EXIST,
    QUEUE_EXISTS,
    UNEXPECTED_ROUTING_TYPE,
)
from atalanta.management.operations.queue_definition import definition_of
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.consumer import ConsumerClose
from atalanta.wire.core.packets.query import (
    BindingQuery,
    BindingQueryResponseV5,
    QueueQuery,
    QueueQueryResponseV3,
)
from atalanta.wire.core.packets.queue import (
    CreateAddress,
    CreateQueue,
    CreateSharedQueueV2,
    DeleteQueue,
)
from atalanta.wire.core.packets.session import AddMetadataV2, SessionClose, UniqueAddMetadata
from tests.wire.core.server.server_rig import Server, queue_request


def described(server: Server, name: str) -> QueueQueryResponseV3:
    answer = server.login().call(QueueQuery(name))
    assert isinstance(answer, QueueQueryResponseV3)
    return answer


def test_a_created_queue_survives_a_crash_as_soon_as_it_is_answered(server: Server) -> None:
    client = server.login()
    client.send(queue_request("orders"))
    assert client.packets(NullResponse) == []
    server.settle()
    assert len(client.packets(NullResponse)) == 1
    server.restart()
    assert described(server, "orders").exists


def test_a_queue_is_described_by_its_name_or_its_full_name(server: Server) -> None:
    client = server.login()
    client.create_queue("all", "prices", 0, filter="price > 3", max_consumers=5, durable=False)
    for name in ("all", "prices::all"):
        found = described(server, name)
        assert (found.exists, found.name, found.address, found.filter) == (
            True, "all", "prices", "price > 3",
        )  # fmt: skip
        assert (found.routing_type, found.max_consumers, found.durable) == (0, 5, False)
    assert not described(server, "other::all").exists


def test_a_missing_queue_says_whether_it_may_be_made(server: Server) -> None:
    server.settings.add("fixed", {"auto_create_queues": False})
    assert (described(server, "free").exists, described(server, "free").auto_create_queues) == (
        False,
        True,
    )
    assert not described(server, "fixed").auto_create_queues


def test_an_address_lists_its_queues(server: Server) -> None:
    client = server.login()
    client.create_queue("one", "prices", 0)
    client.create_queue("two", "prices", 1)
    for name in ("prices", "prices::one"):
        answer = client.call(BindingQuery(name))
        assert isinstance(answer, BindingQueryResponseV5)
        assert answer.exists and answer.queue_names == ["one", "two"]
        assert (answer.supports_multicast, answer.supports_anycast) == (True, True)
    missing = client.call(BindingQuery("missing"))
    assert isinstance(missing, BindingQueryResponseV5) and not missing.exists
    log_view = client.call(BindingQuery("$.atalanta.logview"))
    assert isinstance(log_view, BindingQueryResponseV5) and log_view.exists


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (queue_request("orders"), QUEUE_EXISTS),
        (queue_request("bad", filter="price >"), INVALID_FILTER),
        (queue_request("a::b::c"), ILLEGAL_STATE),
        (queue_request("", "orders"), ILLEGAL_STATE),
        (queue_request("odd", routing_type=7), UNEXPECTED_ROUTING_TYPE),
        (CreateAddress(address="odd", routing_types=[7]), UNEXPECTED_ROUTING_TYPE),
        (DeleteQueue("missing"), QUEUE_DOES_NOT_EXIST),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(server: Server, request_: CreateQueue, code: int) -> None:
    client = server.login()
    client.create_queue("orders")
    records = len(server.journal.records)
    assert client.fails(request_)[0] == code
    assert sorted(server.broker.queues) == ["orders"]
    assert sorted(server.broker.addresses) == ["orders"]
    assert len(server.journal.records) == records


def test_the_old_form_makes_a_queue_too(server: Server) -> None:
    client = server.login()
    client.succeeds(CreateQueue(address="prices", queue="all"))
    assert described(server, "all").routing_type == 0


def test_an_address_may_be_made_twice_and_gains_routing_types(server: Server) -> None:
    client = server.login()
    client.succeeds(CreateAddress(address="orders", routing_types=[0]))
    client.succeeds(CreateAddress(address="orders", routing_types=[0, 1]))
    server.restart()
    address = server.broker.addresses["orders"]
    assert (address.anycast, address.multicast) == (True, True)


def test_without_automatic_addresses_a_queue_needs_one_that_fits(server: Server) -> None:
    server.settings.add("#", {"auto_create_addresses": False})
    client = server.login()
    assert client.fails(queue_request("orders"))[0] == ADDRESS_DOES_NOT_EXIST
    client.succeeds(CreateAddress(address="orders", routing_types=[0]))
    code, text = client.fails(queue_request("orders"))
    assert code == INTERNAL_ERROR
    assert text.startswith("AMQ229207") and text.endswith("address: orders are [MULTICAST]")
    client.create_queue("orders", "orders", 0)
    client.create_queue("temporary", "temporary", 1, temporary=True, durable=False)


def test_deleting_a_queue_is_durable_and_takes_its_own_address_along(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    client.succeeds(DeleteQueue("orders"))
    assert "orders" not in server.broker.addresses
    server.restart()
    assert server.broker.queues == {}
    assert server.broker.addresses == {}


# -- temporary queues and subscriptions ---------------------------------------------------------
def test_temporary_queues_die_with_their_connection_not_with_their_session(server: Server) -> None:
    client = server.login()
    client.open_session(11, "admin", "admin")
    request = queue_request("mine", temporary=True, durable=False)
    client.succeeds(request, 11)
    client.succeeds(SessionClose(), 11)
    assert described(server, "mine").temporary
    server.lost(client.conn)
    assert not described(server, "mine").exists
    assert "mine" not in server.broker.addresses


def test_a_durable_subscription_collects_while_nobody_listens(server: Server) -> None:
    client = server.login()
    client.create_queue("client.name", "prices", 0)
    server.lost(client.conn)
    server.login().publish("prices", "a", routing_type=0)
    server.settle()
    server.restart()
    client = server.login()
    client.consume("client.name")
    assert client.bodies() == ["a"]


def shared(name: str, filter_text: str | None = None, durable: bool = False) -> CreateSharedQueueV2:
    request = CreateSharedQueueV2(address="prices", queue=name, filter=filter_text, durable=durable)
    request.routing_type = 0
    request.requires_response = True
    return request


def test_a_shared_subscription_is_shared_and_goes_with_its_last_consumer(server: Server) -> None:
    first = server.login()
    second = server.login()
    for client in (first, second):
        client.succeeds(shared("shared"))
        client.consume("shared")
    sender = server.login()
    for text in ("a", "b"):
        sender.publish("prices", text, routing_type=0)
    server.settle()
    assert sorted(first.bodies() + second.bodies()) == ["a", "b"]
    first.succeeds(ConsumerClose(0))
    assert described(server, "shared").exists
    server.lost(second.conn)
    assert not described(server, "shared").exists


@pytest.mark.parametrize("durable", [True, False])
def test_a_non_durable_shared_subscription_is_shown_as_temporary(server: Server, durable: bool) -> None:
    """ActiveMQServerImpl.createSharedQueue."""
    client = server.login()
    client.succeeds(shared("shared", durable=durable))
    assert described(server, "shared").temporary is not durable
    assert definition_of(server.broker.queues["shared"])["temporary"] is not durable


def test_a_shared_subscription_with_another_filter_is_refused(server: Server) -> None:
    client = server.login()
    client.succeeds(shared("shared", "price > 3"))
    assert client.fails(shared("shared", "price > 4"))[0] == INVALID_SHARED_QUEUE
    client.succeeds(shared("shared", "price > 3"))
    client.succeeds(shared("kept", durable=True))
    client.consume("kept")
    client.succeeds(ConsumerClose(0))
    assert described(server, "kept").exists


# -- client ids ---------------------------------------------------------------------------------
def test_a_client_id_is_held_by_one_connection_at_a_time(server: Server) -> None:
    first = server.login()
    second = server.login()
    unique = UniqueAddMetadata("jms-client-id", "me", True)
    first.succeeds(unique)
    first.succeeds(unique)
    assert second.fails(unique)[0] == DUPLICATE_METADATA
    # Saying it without asking does not take it away from its owner.
    second.succeeds(AddMetadataV2("jms-client-id", "me", True))
    server.lost(second.conn)
    third = server.login()
    assert third.fails(unique)[0] == DUPLICATE_METADATA
    server.lost(first.conn)
    third.succeeds(unique)


def test_a_closed_session_gives_its_client_id_free(server: Server) -> None:
    client = server.login()
    client.open_session(11, "admin", "admin")
    unique = UniqueAddMetadata("jms-client-id", "me", True)
    client.succeeds(unique, 11)
    client.succeeds(SessionClose(), 11)
    server.login().succeeds(unique)
    assert server.protocol.shared.metadata[("jms-client-id", "me")]
    for conn in list(server.connections):
        server.lost(conn)
    assert server.protocol.shared.metadata == {}


def test_metadata_is_answered_only_if_that_is_wished() -> None:
    client = Server().login()
    client.send(AddMetadataV2("jms-session", "", False))
    assert client.receive() == []
    assert not isinstance(client.call(AddMetadataV2("a", "b", True)), ExceptionResponse)


def test_management_has_no_queue_but_says_it_exists(server: Server) -> None:
    server.settle()
    assert described(server, "activemq.management").exists
    server.broker.address_registry.create(server.broker.now, "x", True, False, False)
    assert not described(server, "x").exists


def test_a_shared_subscription_nobody_listens_to_goes_with_its_clients(server: Server) -> None:
    first = server.login()
    second = server.login()
    for client in (first, second):
        client.succeeds(shared("shared"))
        client.succeeds(shared("shared"))
    server.lost(first.conn)
    second.consume("shared")
    server.lost(second.conn)
    assert not described(server, "shared").exists
    third = server.login()
    third.succeeds(shared("shared"))
    server.lost(third.conn)
    assert not described(server, "shared").exists


def test_a_refused_use_of_a_shared_subscription_does_not_keep_it(server: Server) -> None:
    owner = server.login()
    stranger = server.login()
    owner.succeeds(CreateSharedQueueV2(address="news", queue="mine", durable=False))
    for refused in (
        CreateSharedQueueV2(address="elsewhere", queue="mine", durable=False),
        CreateSharedQueueV2(address="news", queue="mine", durable=False, filter="a = 1"),
        CreateSharedQueueV2(address="news", queue="mine", durable=True),
    ):
        assert stranger.fails(refused)[0] == INVALID_SHARED_QUEUE
    server.lost(owner.conn)
    server.settle()
    assert "mine" not in server.broker.queues


@pytest.mark.parametrize("kept", [True, False])
def test_an_address_that_was_there_before_a_temporary_queue_follows_its_setting(server: Server, kept: bool) -> None:
    server.broker.settings.add("news", {"auto_delete_addresses": not kept})
    client = server.login()
    client.succeeds(CreateAddress("news", [0], auto_created=True))
    client.succeeds(queue_request("mine", "news", 0, durable=False, temporary=True))
    client.succeeds(queue_request("own", "fresh", 0, durable=False, temporary=True))
    server.lost(client.conn)
    server.settle()
    assert not server.broker.queues
    assert ("news" in server.broker.addresses) is kept
    assert "fresh" not in server.broker.addresses
