"""Duplicates, expiry, priorities, limits of messages, with and without harmless options of activemq.xml."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.activemq import tables
from atalanta.kernel.broker.broker import SWEEP_TIMER
from atalanta.kernel.broker.disk_limit import DiskLimit
from atalanta.wire.openwire.commands.connections import ConnectionError
from atalanta.wire.openwire.commands.destinations import ActiveMQTempQueue, ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import ConnectionId
from atalanta.wire.openwire.commands.responses import DataArrayResponse, ExceptionResponse, Response
from atalanta.wire.openwire.commands.transactions import TransactionInfo, XATransactionId
from tests.config.harmless.cases import case
from tests.config.harmless.classic_node import ClassicFile, attributes, same, warned
from tests.kernel.broker_rig import SECOND
from tests.wire.classic_server import ThreeProtocols
from tests.wire.openwire.server.openwire_rig import (
    BEGIN,
    COMMIT_ONE_PHASE,
    END,
    PREPARE,
    RECOVER,
    OpenWireClient,
    text,
)

TOPIC = ActiveMQTopic("t")


def expired(server: ThreeProtocols) -> None:
    """A second later all that has expired is gone."""
    server.now += SECOND
    while server.broker.expiry.scan(server.now, 1_000):
        pass
    server.settle()


def taken(client: OpenWireClient) -> list[str | None]:
    """The texts that come, each acknowledged as it comes."""
    found = []
    while dispatches := client.dispatches():
        for each in dispatches:
            found.append(text(each))
            client.ack(each)
    return found


# -- duplicates -------------------------------------------------------------------------------------
DUPLICATES = {
    "POLICY_SILENT": "enableAudit maxProducersToAudit maxAuditDepth maxQueueAuditDepth sendDuplicateFromStoreToDLQ",
    "KAHADB_SILENT": "failoverProducersAuditDepth maxFailoverProducersToTrack",
    "CONNECTOR_SILENT": "auditNetworkProducers",
}


@case("POLICY_SILENT", *DUPLICATES["POLICY_SILENT"].split())
@case("KAHADB_SILENT", *DUPLICATES["KAHADB_SILENT"].split())
@case("CONNECTOR_SILENT", *DUPLICATES["CONNECTOR_SILENT"].split())
@pytest.mark.parametrize("value", ["true", "false", "1"])
def test_a_message_that_is_sent_again_arrives_once(tmp_path: Path, value: str) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client = server.openwire_client("c", fault_tolerant=True)
        first = client.message("1", "q")
        client.succeeds(first)
        client.publish("2", "q")
        server.lost(client.conn)
        again = server.openwire_client("c", connection_id=client.id[3:], fault_tolerant=True, failover_reconnect=True)
        again.succeeds(first)
        again.messages_sent = client.messages_sent
        again.publish("3", "q")
        again.consume("q")
        return taken(again)

    number = value if value.isdigit() else "100"
    truth = value if not value.isdigit() else "true"
    policy = f'enableAudit="{truth}" sendDuplicateFromStoreToDLQ="{truth}" '
    policy += attributes(("maxProducersToAudit", "maxAuditDepth", "maxQueueAuditDepth"), number)
    kahadb = attributes(DUPLICATES["KAHADB_SILENT"].split(), number)
    store = f"<persistenceAdapter><kahaDB {kahadb}/></persistenceAdapter>"
    audited = ClassicFile(policy=policy, inside=store, connector=f'auditNetworkProducers="{truth}"')
    plain = ClassicFile(inside="<persistenceAdapter><kahaDB/></persistenceAdapter>")
    assert same(tmp_path, scenario, plain, audited) == ["1", "2", "3"]


# -- what waits, is browsed and expires -----------------------------------------------------------------
@case("BROKER_SILENT", "keepDurableSubsActive", "enableMessageExpirationOnActiveDurableSubs")
def test_a_durable_subscription_keeps_messages_and_delivers_none_that_has_expired(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client, sender = server.openwire_client("me"), server.openwire_client("s")
        consumer = client.consume(TOPIC, prefetch=1, subscription_name="sub")
        for body in ("held", "expires", "stays"):
            more = {"expiration": server.now // 1_000_000 + 10} if body == "expires" else {}
            sender.publish(body, TOPIC, **more)
        expired(server)
        found = [taken(client)]
        client.close(consumer)
        sender.publish("meanwhile", TOPIC)
        sender.publish("short", TOPIC, expiration=server.now // 1_000_000 + 10)
        expired(server)
        client.consume(TOPIC, subscription_name="sub")
        return [*found, taken(client)]

    names = ("keepDurableSubsActive", "enableMessageExpirationOnActiveDurableSubs")
    files = [ClassicFile(attributes(names, value)) for value in ("true", "false")]
    assert same(tmp_path, scenario, ClassicFile(), *files) == [["held", "stays"], ["meanwhile"]]


@case("POLICY_SILENT", "maxBrowsePageSize", "maxExpirePageSize")
def test_a_browser_sees_all_and_all_expires(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client = server.openwire_client()
        for number in range(5):
            client.publish(str(number), "q", expiration=server.now // 1_000_000 + 10)
        client.consume("q", browser=True)
        seen = [text(each) for each in client.dispatches() if each.message is not None]
        expired(server)
        client.consume("ActiveMQ.DLQ")
        return seen, taken(client)

    few = ClassicFile(policy=attributes(("maxBrowsePageSize", "maxExpirePageSize"), "1"))
    assert same(tmp_path, scenario, ClassicFile(), few) == (list("01234"), list("01234"))


LIMITED = """<pendingMessageLimitStrategy><constantPendingMessageLimitStrategy limit="3"/></pendingMessageLimitStrategy>
<messageEvictionStrategy><oldestMessageEvictionStrategy {more}/></messageEvictionStrategy>"""


@case("EVICTION_SILENT", "evictExpiredMessagesHighWatermark")
def test_of_a_slow_subscribers_messages_the_expired_ones_go_first(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client, sender = server.openwire_client("slow"), server.openwire_client("s")
        client.consume(TOPIC, prefetch=1)
        for body in ("held", "1", "short", "2", "3"):
            more = {"expiration": server.now // 1_000_000 + 10} if body == "short" else {}
            sender.publish(body, TOPIC, **more)
            if body == "short":
                server.now += 2 * SECOND
                server.settle()
        return taken(client)

    plain, marked = (
        ClassicFile(of_topic=LIMITED.format(more=more))
        for more in ("", 'evictExpiredMessagesHighWatermark="1"')
    )
    assert same(tmp_path, scenario, plain, marked) == ["held", "1", "2", "3"]


@case("GC_SILENT", "gcInactiveDestinations")
def test_a_queue_without_use_stays_if_the_broker_has_no_period_for_it(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client = server.openwire_client()
        client.close(client.consume("q"))
        server.now += 100 * SECOND
        server.broker.on_timer(server.now, SWEEP_TIMER)
        server.settle()
        return "q" in server.broker.queues

    collected = ClassicFile(policy='gcInactiveDestinations="true" inactiveTimeoutBeforeGC="1"')
    assert same(tmp_path, scenario, ClassicFile(), collected) is True


# -- who gets what -------------------------------------------------------------------------------------
@case("POLICY_FIXED", "prioritizedMessages", "useConsumerPriority", "strictOrderDispatch")
def test_priorities_count_and_consumers_take_turns(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client = server.openwire_client()
        for priority in (1, 9, 5):
            client.publish(str(priority), "by-priority", priority=priority)
        client.consume("by-priority")
        found = [taken(client)]
        low, high = server.openwire_client("low"), server.openwire_client("high")
        low.consume("preferred", priority=0)
        high.consume("preferred", priority=5)
        one, two = server.openwire_client("one"), server.openwire_client("two")
        one.consume("turns")
        two.consume("turns")
        for number in range(4):
            client.publish(str(number), "preferred")
            client.publish(str(number), "turns")
        return [*found, low.texts(), high.texts(), len(one.texts()), len(two.texts())]

    stated = ClassicFile(policy='prioritizedMessages="true" useConsumerPriority="TRUE" strictOrderDispatch="false"')
    assert same(tmp_path, scenario, ClassicFile(), stated) == [["9", "5", "1"], [], list("0123"), 2, 2]
    others = {"prioritizedMessages": "false", "useConsumerPriority": "false", "strictOrderDispatch": "true"}
    for name, value in others.items():
        assert warned(tmp_path, ClassicFile(policy=f'{name}="{value}"'), name)


@case("DISPATCH_SILENT", *tables.DISPATCH_SILENT)
@pytest.mark.parametrize("name", tables.DISPATCH_SILENT)
def test_each_subscriber_of_a_topic_gets_all_in_order(tmp_path: Path, name: str) -> None:
    def scenario(server: ThreeProtocols) -> object:
        clients = [server.openwire_client(name) for name in ("a", "b", "c")]
        for priority, client in enumerate(clients):
            client.consume(TOPIC, priority=priority)
        for number in range(3):
            clients[number].publish(str(number), TOPIC)
        return [client.texts() for client in clients]

    policy = ClassicFile(of_topic=f"<dispatchPolicy><{name}/></dispatchPolicy>")
    assert same(tmp_path, scenario, ClassicFile(), policy) == [list("012")] * 3


@case("GROUPS_SILENT", *tables.GROUPS_SILENT)
def test_each_group_stays_with_its_consumer(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        one, two = server.openwire_client("one"), server.openwire_client("two")
        one.consume("q")
        two.consume("q")
        for turn in range(2):
            for group in "abcd":
                one.publish(f"{group}{turn}", "q", group_id=group, group_sequence=turn + 1)
        return sorted(one.texts(), key=str), sorted(two.texts(), key=str)

    def files(size: int) -> list[ClassicFile]:
        element = f"<messageGroupMapFactory><cachedMessageGroupMapFactory cacheSize='{size}'/></messageGroupMapFactory>"
        return [
            ClassicFile(children=element),
            ClassicFile(policy=f'messageGroupMapFactoryType="cached?cacheSize={size}"'),
        ]

    expected = (["a0", "a1", "c0", "c1"], ["b0", "b1", "d0", "d1"])
    assert same(tmp_path, scenario, ClassicFile(), *files(1024)) == expected
    for number, each in enumerate(files(3)):  # it forgets the idle groups, and Classic counts them no more
        assert warned(tmp_path / f"few-{number}", each, "messageGroupMapFactory cacheSize")


@case("RECOVERY_SILENT", *tables.RECOVERY_SILENT)
def test_retroactive_consumers_share_what_is_kept(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        sender, one, two = (server.openwire_client(name) for name in ("s", "one", "two"))
        for number in range(3):
            sender.publish(str(number), TOPIC)
        one.consume(TOPIC, retroactive=True)
        found = one.texts()
        two.consume(TOPIC, retroactive=True)
        return found, two.texts()

    def kept(more: str) -> ClassicFile:
        policy = f"<fixedSizedSubscriptionRecoveryPolicy maximumSize='100000' {more}/>"
        return ClassicFile(of_topic=f"<subscriptionRecoveryPolicy>{policy}</subscriptionRecoveryPolicy>")

    files = [kept(f"useSharedBuffer='{value}'") for value in ("true", "false")]
    assert same(tmp_path, scenario, kept(""), *files) == (list("012"), list("012"))


# -- limits ---------------------------------------------------------------------------------------------
USAGE = ("percentUsageMinDelta", "usagePortion", "pollingTime", "name")
FULL = "<pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>"


def limited(attributes_of_broker: str = "", usage: str = "", system: str = "") -> ClassicFile:
    return ClassicFile(
        attributes_of_broker,
        f"<systemUsage><systemUsage {system}><memoryUsage><memoryUsage limit='64 kb' {usage}/></memoryUsage>"
        "</systemUsage></systemUsage>",
        children=FULL,
    )


@case("USAGE_SILENT", *USAGE)
@case("SYSTEM_USAGE_SILENT", "name")
@case("BROKER_SILENT", "adjustUsageLimits")
@case("BROKER_FIXED", "splitSystemUsageForProducersConsumers")
def test_a_sender_waits_at_the_limit_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        sender, reader = server.openwire_client("s"), server.openwire_client("r")
        number, sent, answers = 0, 0, []
        while sent < 50:
            number = sender.send(sender.message("x" * 8_000, "q"), True)
            answers = [each for each in sender.output() if isinstance(each, Response)]
            if not answers:
                break
            sent += 1
        reader.consume("q")
        for each in reader.dispatches():
            reader.ack(each)
        gone_on = [each.correlation_id for each in sender.output() if isinstance(each, Response)]
        return 2 < sent < 12, gone_on == [number], len(reader.dispatches())

    files = [
        limited(usage="percentUsageMinDelta='50' usagePortion='0.1' pollingTime='100000' name='memory'"),
        limited(system="name='limits'"),
        limited("adjustUsageLimits='true' splitSystemUsageForProducersConsumers='false'"),
        limited("adjustUsageLimits='false'"),
    ]
    assert same(tmp_path, scenario, limited(), *files) == (True, True, 1)
    name = "splitSystemUsageForProducersConsumers"
    assert warned(tmp_path, limited(f"{name}='true'"), name)


@case("POLICY_FIXED", "storeUsageHighWaterMark")
def test_senders_wait_at_the_limit_of_the_disk(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        limit = DiskLimit(server.broker.config, server.broker.memory, server.broker.trace)
        client, found = server.openwire_client(), []
        for used in (0.79, 0.81, 0.7):
            limit.update(used, 1)
            server.settle()
            client.send(client.message("x", "q"), True)
            found.append(len([each for each in client.output() if isinstance(each, Response)]))
        return found

    disk = (
        "<systemUsage><systemUsage><storeUsage><storeUsage percentLimit='80'/></storeUsage></systemUsage></systemUsage>"
    )
    stated = ClassicFile(inside=disk, policy='storeUsageHighWaterMark="100"')
    assert same(tmp_path, scenario, ClassicFile(inside=disk), stated) == [1, 0, 2]
    assert warned(tmp_path, ClassicFile(policy='storeUsageHighWaterMark="80"'), "storeUsageHighWaterMark")


# -- transactions ---------------------------------------------------------------------------------------
@case("KAHADB_FIXED", "purgeRecoveredXATransactionStrategy")
def test_a_prepared_transaction_stays_prepared(tmp_path: Path) -> None:
    xid = XATransactionId(7, b"global", b"branch")

    def scenario(server: ThreeProtocols) -> object:
        client = server.openwire_client()
        client.succeeds(TransactionInfo(ConnectionId(client.id), xid, BEGIN))
        client.publish("1", "q", transaction_id=xid)
        for step in (END, PREPARE):
            client.succeeds(TransactionInfo(ConnectionId(client.id), xid, step))
        server.restart()
        after = server.openwire_client("d")
        recovered = after.succeeds(TransactionInfo(ConnectionId(after.id), None, RECOVER))
        assert isinstance(recovered, DataArrayResponse)
        after.consume("q")
        return recovered.data == [xid], after.texts()

    def store(more: str) -> ClassicFile:
        return ClassicFile(inside=f"<persistenceAdapter><kahaDB {more}/></persistenceAdapter>")

    never = store("purgeRecoveredXATransactionStrategy='NEVER'")
    assert same(tmp_path, scenario, store(""), never) == (True, [])
    other = store("purgeRecoveredXATransactionStrategy='ROLLBACK'")
    assert warned(tmp_path, other, "purgeRecoveredXATransactionStrategy")


@case("BROKER_FIXED", "rollbackOnlyOnAsyncException", "maxUncommittedCount")
def test_a_refused_message_rolls_its_transaction_back_and_a_long_one_is_committed(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client = server.openwire_client()
        transaction = client.begin()
        client.publish("1", "q", transaction_id=transaction)
        client.send(client.message("2", ActiveMQTempQueue("ID:nobody:1"), transaction_id=transaction))
        assert len(client.of_kind(ConnectionError)) == 1
        ended = client.call(TransactionInfo(ConnectionId(client.id), transaction, COMMIT_ONE_PHASE))
        transaction = client.begin(2)
        for number in range(50):
            client.publish(str(number), "long", transaction_id=transaction)
        client.end(transaction)
        client.consume("q")
        found = client.texts()
        client.consume("long")
        return isinstance(ended, ExceptionResponse), found, len(client.texts())

    stated = ClassicFile('rollbackOnlyOnAsyncException="true" maxUncommittedCount="0"')
    assert same(tmp_path, scenario, ClassicFile(), stated) == (True, [], 50)
    for name, value in (("rollbackOnlyOnAsyncException", "false"), ("maxUncommittedCount", "10")):
        assert warned(tmp_path, ClassicFile(f'{name}="{value}"'), name)
