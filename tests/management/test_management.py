"""Management by message: resources, attributes, parameters, refusals, permission."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import SECURITY, BrokerError
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.management.resources.acceptor import ListedAcceptor
from atalanta.message.message import Message
from tests.kernel.broker_rig import SECOND, consume
from tests.management.management_rig import REPLIES, Desk, Refused


def test_attributes_are_read_as_such_and_by_their_getters(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 3)
    assert desk.get("queue.work", "MessageCount") == 3
    assert desk.get("queue.work", "messageCount") == 3
    assert desk.get("queue.work::work", "Address") == "work"
    assert desk.ask("queue.work", "getMessageCount") == 3
    assert desk.ask("queue.work", "isPaused") is False
    assert desk.get("address.work", "RoutingTypes") == ["ANYCAST"]
    assert desk.get("broker", "Version") == "9.9"
    assert desk.ask("broker", "getNodeID") == "node-a"
    desk.now += 90 * SECOND
    assert desk.ask("broker", "getUptime") == "1 minute"
    assert desk.get("broker", "UptimeMillis") == 90_000


@pytest.mark.parametrize(
    ("resource", "operation", "given", "text"),
    [
        ("queue.none", "pause", [], "AMQ229067: Cannot find resource with name queue.none"),
        ("queue.a::work", "pause", [], "AMQ229067: Cannot find resource with name queue.a::work"),
        ("nonsense", "pause", [], "AMQ229067: Cannot find resource with name nonsense"),
        ("queue.work", "explode", [1, 2], "AMQ229069: no operation explode/2"),
        ("queue.work", "removeMessage", ["text"], "AMQ229069: no operation removeMessage/1"),
        ("queue.work", "pause", [None], "AMQ229069: no operation pause/1"),
        ("queue.work", "changeMessagePriority", [1, 1 << 40], "AMQ229069: no operation"),
        ("queue.work", "changeMessagePriority", [1, 12], "AMQ229048: invalid new Priority value"),
        ("queue.work", "countMessages", ["=1"], "invalid filter"),
        ("queue.work", "moveMessages", [None, "none"], "AMQ229049: No queue found for none"),
        ("queue.work", "moveMessages", [None, "work"], "Cannot move messages onto itself"),
        ("broker", "createQueue", ["work", "work"], "AMQ229019: Queue work already exists"),
        ("broker", "createAddress", ["work", "ANYCAST"], "AMQ229204: Address already exists"),
        ("broker", "createAddress", ["a", "SIDEWAYS"], "No enum constant"),
        ("broker", "deleteAddress", ["work"], "AMQ229205: Address work has bindings"),
        ("broker", "destroyQueue", ["none"], "AMQ229017: Queue none does not exist"),
        ("broker", "getAddressInfo", ["none"], "AMQ229203: Address Does Not Exist: none"),
        ("broker", "listQueues", ["[1]", 1, 1], "the options must be a JSON object"),
        ("broker", "forceFailover", [], "no backup"),
        ("broker", "getDiskStoreUsage", [], "not measured"),
    ],
)
def test_what_cannot_be_done_is_a_failed_operation_with_a_reason(
    resource: str, operation: str, given: list[object], text: str
) -> None:
    desk = Desk()
    desk.queue("work")
    with pytest.raises(Refused, match=text.replace("(", r"\(")):
        desk.ask(resource, operation, *given)


def test_an_unknown_attribute_is_refused(desk: Desk) -> None:
    with pytest.raises(Refused, match="Problem while retrieving attribute Beauty"):
        desk.get("broker", "Beauty")


def test_nothing_to_say_is_a_null_in_the_reply(desk: Desk) -> None:
    """ManagementHelper.storeResult: a client that reads the first of no results would fail."""
    desk.queue("work")
    assert desk.ask("queue.work", "pause") is None


def test_the_reply_carries_the_correlation_of_the_request(desk: Desk) -> None:
    for given, expected in (("mine", "mine"), (None, "00000000-0000-0000-0000-00000000000f")):
        request = Message.create("activemq.management", b"", 0, False, 0, 4)
        request.user_id = bytes(15) + b"\x0f"
        request.properties.put("_AMQ_ResourceName", "broker")
        request.properties.put("_AMQ_Attribute", "Name")
        request.properties.put("JMSReplyTo", REPLIES)
        if given is not None:
            request.properties.put("JMSCorrelationID", given)
        request.properties_changed()
        desk.management.handle(desk.now, request)
        desk.settle()
        reply = desk.broker.queues[REPLIES].live()[-1].message
        assert reply.properties.get("JMSCorrelationID") == expected


def test_without_the_permission_nothing_is_done(desk: Desk) -> None:
    desk.queue("work")
    session = desk.session()
    security = desk.broker.security
    security.enabled = True
    security.add_rule("activemq.management", {"manage": ["admin"]})
    with pytest.raises(BrokerError) as refused:
        desk.put("queue.work", "pause", session=session)
    assert refused.value.code == SECURITY
    assert not desk.broker.queues["work"].paused


def test_a_reply_to_a_change_waits_for_the_disk(desk: Desk) -> None:
    desk.put("broker", "createQueue", "durable", "ANYCAST", "durable", None, True, -1, False, True)
    desk.broker.flush(desk.now)
    assert desk.broker.queues[REPLIES].message_count == 0
    assert "Queue [name=durable" in str(desk.answer())


def test_a_pause_holds_deliveries_and_lasts_as_long_as_asked(desk: Desk) -> None:
    desk.queue("kept")
    desk.queue("passing")
    desk.ask("queue.kept", "pause", True)
    desk.ask("queue.passing", "pause")
    session = desk.session()
    consume(session, desk, "kept")
    desk.fill("kept", 2)
    assert desk.broker.queues["kept"].delivering_count == 0
    assert desk.get("queue.kept", "PersistedPause") is True
    desk.restart()
    desk.open_desk()
    assert desk.get("queue.kept", "Paused") is True
    assert desk.get("queue.passing", "Paused") is False
    session = desk.session()
    consume(session, desk, "kept")
    desk.ask("queue.kept", "resume")
    assert desk.broker.queues["kept"].delivering_count == 2
    desk.restart()
    desk.open_desk()
    assert desk.get("queue.kept", "Paused") is False


def test_a_paused_address_pauses_its_queues_and_those_that_come(desk: Desk) -> None:
    desk.queue("one", "topic", 0)
    desk.ask("address.topic", "pause", True)
    desk.queue("two", "topic", 0)
    assert desk.get("queue.one", "Paused") and desk.get("queue.two", "Paused")
    desk.ask("queue.one", "resume")
    assert desk.get("queue.one", "Paused") is True
    desk.restart()
    desk.open_desk()
    assert desk.get("address.topic", "Paused") is True
    desk.ask("address.topic", "resume")
    assert not desk.get("queue.one", "Paused") and not desk.get("queue.two", "Paused")


def test_each_call_can_need_a_permission_of_its_own() -> None:
    config = BrokerConfig()
    config.management_message_rbac = True
    desk = Desk(config)
    desk.queue("work")
    session = desk.session()
    session.identity.roles = ("operator",)
    security = desk.broker.security
    security.enabled = True
    security.add_rule("activemq.management", {"manage": ["operator"]})
    security.add_rule("mops.#", {"view": ["operator"]})
    security.add_rule("mops.queue.work.pause", {"edit": ["operator"]})
    assert desk.ask("queue.work", "getMessageCount", session=session) == 0
    assert desk.ask("queue.work", "pause", session=session) is None
    with pytest.raises(Refused, match="permission='EDIT' on address mops.queue.work.resume"):
        desk.ask("queue.work", "resume", session=session)
    security.add_rule("mops.broker.isStarted", {"view": ["nobody"]})
    with pytest.raises(Refused, match="permission='VIEW' on address mops.broker.isStarted"):
        desk.ask("broker", "isStarted", session=session)


def test_acceptors(desk: Desk) -> None:
    desk.resources.register_acceptor(ListedAcceptor("core", {"host": "::1", "port": 61616}))
    assert desk.get("acceptor.core", "Started") is True
    assert desk.get("acceptor.core", "Parameters") == {"host": "::1", "port": 61616}
    assert '"name":"core"' in str(desk.ask("broker", "getAcceptorsAsJSON"))
    with pytest.raises(Refused, match="Cannot find resource with name acceptor.none"):
        desk.get("acceptor.none", "Started")


@pytest.mark.parametrize(
    ("resource", "operation", "given"),
    [
        ("queue.work", "removeMessage", [float("inf")]),
        ("queue.work", "removeMessage", [float("nan")]),
        ("queue.work", "removeMessage", [1 << 63]),
        ("queue.work", "browse", [1e999, 1]),
    ],
)
def test_numbers_that_java_has_not_fit_no_parameter(
    resource: str, operation: str, given: list[object]
) -> None:
    desk = Desk()
    desk.queue("work")
    with pytest.raises(Refused, match="no operation"):
        desk.ask(resource, operation, *given)


def test_duplicate_ids_may_be_any_text(desk: Desk) -> None:
    desk.queue("work")
    desk.ask("broker", "updateDuplicateIdCache", "work", ["\ud800", "b"])
    assert desk.broker.caches.cache_of("work").lsn_of(b"b") > 0
