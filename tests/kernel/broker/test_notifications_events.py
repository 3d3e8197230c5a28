"""Notifications for people and tools: sessions, connections, addresses, expired messages, refusals."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.notification_options import NotificationOptions
from tests.kernel.broker.notification_rig import listening, told
from tests.kernel.broker_rig import Bench, consume, endpoint, notifications_of


def bench_with(options: NotificationOptions) -> Bench:
    config = BrokerConfig()
    config.notifications = options
    bench = Bench(config)
    listening(bench)
    return bench


def test_sessions_are_told_unless_that_is_suppressed() -> None:
    bench = bench_with(NotificationOptions())
    session = bench.session()
    session.close(bench.now, False)
    (created,) = told(bench, "SESSION_CREATED")
    assert created["_AMQ_User"] == "tester" and created["_AMQ_SessionName"] == "session-1"
    assert created["_AMQ_Distance"] == 0 and created["_AMQ_Protocol_Name"] == "CORE"
    assert len(told(bench, "SESSION_CLOSED")) == 1
    bench.config.suppress_session_notifications = True
    bench.session()
    assert len(told(bench, "SESSION_CREATED")) == 1


def test_a_consumer_says_whose_it_is() -> None:
    bench = bench_with(NotificationOptions())
    bench.queue("work")
    session = bench.session()
    session.client.client_id = "accounts"
    consume(session, bench, "work", consumer_id=4)
    session.close_consumer(bench.now, 4)
    for kind in ("CONSUMER_CREATED", "CONSUMER_CLOSED"):
        (one,) = told(bench, kind)
        assert one["_AMQ_User"] == "tester" and one["_AMQ_Client_ID"] == "accounts"
        assert one["_AMQ_SessionName"] == "session-1" and one["_AMQ_ConsumerName"] == 4
        assert one["_AMQ_RemoteAddress"] == "test"


def test_connections_addresses_and_expired_messages_only_if_asked_for() -> None:
    for on in (False, True):
        bench = bench_with(NotificationOptions(connections=on, addresses=on, expired=on))
        queue = bench.queue("work")
        session = bench.session()
        session.client.close(bench.now, bench.broker.session_services, False)
        bench.broker.publisher.publish(bench.now, bench.message("work"), None, 0)
        bench.settle()
        bench.broker.expiry.expire(bench.now, queue.live())
        bench.broker.queue_registry.delete(bench.now, "work", "deleted")
        bench.broker.address_registry.create(bench.broker.now, "a", True, False, False)
        bench.broker.address_registry.delete(bench.broker.now, "a")
        counts = {
            kind: len(told(bench, kind))
            for kind in ("CONNECTION_CREATED", "CONNECTION_DESTROYED", "MESSAGE_EXPIRED")
        }
        assert counts == dict.fromkeys(counts, int(on))
        added = [one["_AMQ_Address"] for one in told(bench, "ADDRESS_ADDED")]
        removed = [one["_AMQ_Address"] for one in told(bench, "ADDRESS_REMOVED")]
        assert ("a" in added, "a" in removed) == (on, on)


def test_deliveries_only_if_asked_for() -> None:
    for on in (False, True):
        bench = bench_with(NotificationOptions(delivered=on))
        bench.queue("work")
        session = bench.session()
        consume(session, bench, "work", consumer_id=4)
        listener = bench.session()
        consume(listener, bench, "listener", consumer_id=5, credits=0)
        for _ in range(3):
            bench.broker.publisher.publish(bench.now, bench.message("work"), None, 0)
        found = told(bench, "MESSAGE_DELIVERED")
        assert [one["_AMQ_Message_ID"] for one in found] == (
            endpoint(session).message_ids if on else []
        )
        for one in found:
            assert one["_AMQ_Address"] == "work" and one["_AMQ_RoutingName"] == "work"
            assert one["_AMQ_ConsumerName"] == 4 and one["_AMQ_Routing_Type"] == 1
        listener.add_credits(5, -1)
        bench.settle()
        assert len(told(bench, "MESSAGE_DELIVERED")) == len(found)  # news of news are none


def test_refusals_are_told() -> None:
    bench = bench_with(NotificationOptions())
    session = bench.session()
    bench.broker.security.enabled = True
    with pytest.raises(BrokerError):
        session.check("createDurableQueue", "work::q")
    (refused,) = told(bench, "SECURITY_PERMISSION_VIOLATION")
    assert refused["_AMQ_Address"] == "work" and refused["_AMQ_User"] == "tester"
    assert refused["_AMQ_CheckType"] == "CREATE_DURABLE_QUEUE"
    for observer in bench.broker.observers:
        observer.on_login_refused(bench.now, "mallory", "10.0.0.9:1")
    (login,) = told(bench, "SECURITY_AUTHENTICATION_VIOLATION")
    assert login["_AMQ_User"] == "mallory" and login["_AMQ_RemoteAddress"] == "10.0.0.9:1"


def test_a_durable_queue_keeps_notifications_over_a_restart(bench: Bench) -> None:
    bench.broker.add_observer(notifications_of(bench.broker))
    bench.queue("audit", "activemq.notifications", 0)
    bench.session()
    bench.settle()
    before = len(bench.broker.queues["audit"].live())
    bench.restart()
    kept = bench.broker.queues["audit"].live()
    assert len(kept) == before > 0
    assert kept[-1].message.properties.get("_AMQ_NotifType") == "SESSION_CREATED"
