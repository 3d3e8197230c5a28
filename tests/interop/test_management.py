"""Management by message: a real Artemis (`--target artemis`) and our node answer the same."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator

import pytest

from atalanta.client import Connection, Message, connect
from atalanta.client.management import Management, ManagementFailed
from atalanta.wire.core.packets.transaction import XaEnd, XaPrepare, XaRollback, XaStart, Xid
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.xa import XaClient

USUAL_TARGET = "atalanta"
Script = Callable[[Connection, Management], Awaitable[None]]
pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def managed(target: str, brokers: Lineup) -> Iterator[BrokerProcess]:
    node = brokers.single(target)
    node.start()
    yield node
    node.stop()


def run(node: BrokerProcess, script: Script) -> None:
    async def body() -> None:
        url = f"tcp://127.0.0.1:{node.port}"
        async with connect(url, user="admin", password="admin") as connection:
            await script(connection, Management(connection))

    asyncio.run(body())


async def refused(management: Management, *call: str) -> str:
    """The reason, without Artemis' number of the message."""
    with pytest.raises(ManagementFailed) as failure:
        await management.call(call[0], call[1], *call[2:])
    return failure.value.reason


async def read(management: Management, *call: object) -> object:
    """An answer that is JSON."""
    answer = await management.call(str(call[0]), str(call[1]), *call[2:])
    assert isinstance(answer, str)
    return json.loads(answer)


async def fill(connection: Connection, queue: str, count: int) -> None:
    producer = await connection.producer(queue, routing="anycast")
    for number in range(count):
        colour = "red" if number % 2 else "blue"
        await producer.send(Message(text=f"{number}", properties={"n": number, "colour": colour}))


async def made_and_changed(connection: Connection, management: Management) -> None:
    call = management.call
    made = await call("broker", "createAddress", "made", "ANYCAST")
    assert made == "Address [name=made, routingTypes={ANYCAST}, autoCreated=false]"
    assert "AMQ229204: Address already exists: made" == await refused(
        management, "broker", "createAddress", "made", "ANYCAST"
    )
    text = await call("broker", "createQueue", "made", "ANYCAST", "q", None, True, -1, False, False)
    assert text == (
        "Queue [name=q, address=made, routingType=ANYCAST, durable=true, purgeOnNoConsumers=false, "
        "autoCreateAddress=false, exclusive=false, lastValue=false, lastValueKey=null, "
        "nonDestructive=false, consumersBeforeDispatch=0, delayBeforeDispatch=-1, autoCreateAddress=false]"
    )
    assert "maxConsumers=7" in str(await call("broker", "updateQueue", "q", "ANYCAST", 7, False))
    wanted = {"name": "ring", "address": "made", "routing-type": "ANYCAST", "ring-size": 5}
    ring = await read(management, "broker", "createQueue", json.dumps(wanted))
    assert isinstance(ring, dict)
    ring.pop("id")
    ring.pop("enabled", None)  # Artemis says it only of queues it has read again
    assert ring == {
        "name": "ring", "address": "made", "routing-type": "ANYCAST", "durable": True,
        "max-consumers": -1, "exclusive": False, "group-rebalance": False,
        "group-rebalance-pause-dispatch": False, "group-buckets": -1, "last-value": False,
        "non-destructive": False, "purge-on-no-consumers": False, "consumers-before-dispatch": 0,
        "delay-before-dispatch": -1, "auto-delete": False, "auto-delete-delay": 0,
        "auto-delete-message-count": 0, "ring-size": 5, "configuration-managed": False,
        "temporary": False, "auto-create-address": True, "internal": False, "transient": False,
        "auto-created": False, "fqqn": False,
    }  # fmt: skip
    reason = await refused(management, "broker", "updateAddress", "made", "MULTICAST")
    assert reason.startswith("AMQ229209: Can't remove routing type ANYCAST")
    assert "has bindings" in await refused(management, "broker", "deleteAddress", "made")
    await call("broker", "deleteAddress", "made", True)
    assert "Cannot find resource with name queue.q" in await refused(
        management, "queue.q", "pause"
    )


async def messages(connection: Connection, management: Management) -> None:
    call = management.call
    for name in ("from", "to"):
        await call("broker", "createQueue", name, "ANYCAST", name, None, True, -1, False, True)
    await fill(connection, "from", 10)
    assert await call("queue.from", "countMessages", "colour = 'red'") == 5
    groups = await read(management, "queue.from", "countMessages", None, "colour")
    assert groups == {"red": 5, "blue": 5}
    listed = await read(management, "queue.from", "listMessagesAsJSON", "n = 3")
    assert isinstance(listed, list) and len(listed) == 1
    shown = listed[0]
    for key in ("messageID", "timestamp", "userID"):
        shown.pop(key, None)
    assert shown == {
        "_AMQ_ROUTING_TYPE": 1, "n": 3, "colour": "red", "address": "from", "type": 3,
        "durable": True, "expiration": 0, "priority": 4,
    }  # fmt: skip
    assert await call("queue.from", "moveMessages", "n = 1", "to") == 1
    assert await call("queue.to", "retryMessages") == 1
    assert await call("queue.from", "sendMessagesToDeadLetterAddress", "n = 2") == 1
    assert await call("queue.from", "expireMessages", "n = 4") == 1
    assert await call("queue.from", "changeMessagesPriority", "n = 5", 9) == 1
    assert await call("queue.from", "removeMessages", "n = 6") == 1
    assert await call("queue.from", "removeMessage", 1) is False
    assert await call("queue.DLQ", "retryMessages") == 1
    listed = await read(management, "queue.from", "listMessagesAsJSON", "")
    assert isinstance(listed, list) and [one["n"] for one in listed] == [5, 0, 3, 7, 8, 9, 1, 2]
    names = ("MessageCount", "MessagesAdded", "MessagesAcknowledged", "MessagesKilled")
    counts = [await management.get("queue.from", name) for name in (*names, "MessagesExpired")]
    assert counts == [8, 13, 1, 2, 1]
    assert await management.get("address.from", "RoutedMessageCount") == 12
    await call("queue.from", "pause")
    assert await management.get("queue.from", "Paused") is True
    assert await call("queue.from", "removeAllMessages") == 8


async def lists(connection: Connection, management: Management) -> None:
    await management.call("broker", "createQueue", "l", "ANYCAST", "l", None, True, -1, False, True)
    await fill(connection, "l", 4)
    consumer = await connection.consumer("l", selector="n > 0")
    row: dict[str, object] = {}
    while row.get("messagesInTransit") != "3":
        (row,) = await management.rows("listConsumers", "queue", "EQUALS", "l")
    expected = {"user": "admin", "filter": "n > 0", "address": "l", "queueType": "anycast"}
    assert {key: row[key] for key in expected} == expected
    assert row["messagesDelivered"] == "3" and row["status"] == "OK" and row["protocol"] == "CORE"
    (queue,) = await management.rows("listQueues", "name", "EQUALS", "l")
    expected = {"messageCount": "4", "deliveringCount": "3", "consumerCount": "1", "durable": "true"}
    assert {key: queue[key] for key in expected} == expected
    (connected,) = await management.rows("listConnections")
    assert connected["users"] == "admin" and connected["sessionCount"] == 2
    assert await management.call("broker", "closeConsumerWithID", row["session"], row["id"]) is True
    # Artemis leaves it to the client to close what was disconnected.
    await consumer.close()


async def notifications(connection: Connection, management: Management) -> None:
    queue = "activemq.notifications::told"
    await connection.create_queue(
        "told", address="activemq.notifications", routing="multicast", durable=True
    )
    listener = await connection.consumer(queue, ack="auto")
    await connection.create_queue("watched", address="watched", routing="anycast", durable=True)
    watcher = await connection.consumer("watched", selector="a = 1")
    await watcher.close()
    await connection.delete_queue("watched")
    told: dict[str, dict[str, object]] = {}
    while "BINDING_REMOVED" not in told:
        message = await asyncio.wait_for(listener.__anext__(), 20)
        assert message.durable
        if message.properties.get("_AMQ_Address") == "watched":
            told[str(message.properties["_AMQ_NotifType"])] = dict(message.properties)
    assert list(told) == [
        "BINDING_ADDED", "CONSUMER_CREATED", "CONSUMER_CLOSED", "BINDING_REMOVED",
    ]  # fmt: skip
    expected = {"_AMQ_RoutingName": "watched", "_AMQ_Distance": 0, "_AMQ_Binding_Type": 0}
    assert expected.items() <= told["BINDING_ADDED"].items()
    expected = {
        "_AMQ_User": "admin", "_AMQ_ValidatedUser": "admin", "_AMQ_FilterString": "a = 1",
        "_AMQ_ConsumerCount": 1, "_AMQ_CertSubjectDN": "unavailable",
    }  # fmt: skip
    created = told["CONSUMER_CREATED"]
    assert expected.items() <= created.items()
    for name in ("_AMQ_SessionName", "_AMQ_RemoteAddress", "_AMQ_ConsumerName"):
        assert told["CONSUMER_CLOSED"][name] == created[name]
    await listener.close()


async def counters(connection: Connection, management: Management) -> None:
    call = management.call
    await call("broker", "createQueue", "c", "ANYCAST", "c", None, True, -1, False, True)
    await fill(connection, "c", 3)
    await call("broker", "setMessageCounterSamplePeriod", 200)
    await call("broker", "enableMessageCounters")
    assert await management.get("broker", "MessageCounterEnabled") is True
    found: object = {}
    while not isinstance(found, dict) or found.get("count") != 3:
        found = await read(management, "queue.c", "listMessageCounter")
        assert isinstance(found, dict)
    for name in ("lastAddTimestamp", "lastAckTimestamp", "updateTimestamp"):
        assert isinstance(found.pop(name), str)
    assert found.pop("countDelta") == 3 and isinstance(found.pop("messageCountDelta"), int)
    assert found == {
        "destinationName": "c", "destinationSubscription": None, "destinationDurable": True,
        "count": 3, "messageCount": 3,
    }  # fmt: skip
    history = await read(management, "queue.c", "listMessageCounterHistory")
    assert isinstance(history, dict) and list(history) == ["dayCounters"]
    hours = history["dayCounters"][-1]["counters"]
    assert len(hours) == 24 and sum(hour for hour in hours if hour > 0) == 3
    await call("queue.c", "resetMessageCounter")
    again = await read(management, "queue.c", "listMessageCounter")
    assert isinstance(again, dict) and again["count"] == 0
    await call("broker", "disableMessageCounters")
    assert await management.get("broker", "MessageCounterEnabled") is False


async def changed_divert(connection: Connection, management: Management) -> None:
    call = management.call
    for name in ("d1", "d2", "d3"):
        await call("broker", "createQueue", name, "ANYCAST", name, None, True, -1, False, True)
    made = {"name": "d", "routing-name": "d", "address": "d1", "forwarding-address": "d2"}
    await call("broker", "createDivert", json.dumps({**made, "routing-type": "ANYCAST"}))
    await fill(connection, "d1", 2)
    await call("broker", "updateDivert", "d", "d3", "n = 1", None, None, "PASS")
    assert await management.get("divert.d", "RoutingType") == "PASS"
    await fill(connection, "d1", 2)
    for name, count in (("d1", 4), ("d2", 2), ("d3", 1)):
        assert await call(f"queue.{name}", "countMessages", None) == count
    missing = {"name": "nowhere", "forwarding-address": "d2", "address": "d1"}
    assert "AMQ229231: Divert Does Not Exist: nowhere" in await refused(
        management, "broker", "updateDivert", json.dumps(missing)
    )


# The fields of each list, as Artemis answers them.
FIELDS = {
    "listConnections": (
        "clientID connectionID creationTime implementation localAddress protocol proxyAddress"
        " proxyProtocolVersion remoteAddress sessionCount users"
    ),
    "listSessions": (
        "clientID connectionID consumerCount creationTime id producerCount user validatedUser"
    ),
    "listConsumers": (
        "address clientID creationTime filter id lastAcknowledgedTime lastDeliveredTime localAddress"
        " messagesAcknowledged messagesAcknowledgedAwaitingCommit messagesDelivered messagesDeliveredSize"
        " messagesInTransit messagesInTransitSize protocol queue queueType remoteAddress session status"
        " user validatedUser"
    ),
    "listProducers": (
        "address clientID creationTime id lastProducedMessageID localAddress msgSent msgSizeSent name"
        " protocol remoteAddress session user validatedUser"
    ),
    "listQueues": (
        "address autoCreated autoDelete consumerCount consumersBeforeDispatch delayBeforeDispatch"
        " deliveringCount directDeliver durable enabled exclusive filter groupBuckets groupFirstKey"
        " groupRebalance groupRebalancePauseDispatch id internalQueue lastValue lastValueKey maxConsumers"
        " messageCount messagesAcked messagesAdded messagesExpired messagesKilled name paused"
        " persistedPause purgeOnNoConsumers ringSize routingType scheduledCount temporary user"
    ),
    "listAddresses": (
        "addressLimitPercent addressSize autoCreated currentDuplicateIdCacheSize id internal"
        " maxPageReadBytes maxPageReadMessages messageCount name numberOfBytesPerPage numberOfPages paging"
        " paused prefetchPageBytes prefetchPageMessages queueCount retroactiveResource"
        " routedMessageCount routingTypes temporary unroutedMessageCount"
    ),
}
CONSUMER_FIELDS = (
    "browseOnly connectionID consumerID creationTime lastAcknowledgedTime lastDeliveredTime"
    " messagesAcknowledged messagesAcknowledgedAwaitingCommit messagesDelivered messagesDeliveredSize"
    " messagesInTransit messagesInTransitSize queueName sequentialId sessionID status"
)
JSON_FIELDS = {
    "listConnectionsAsJSON": "clientAddress connectionID creationTime implementation sessionCount",
    "listAllConsumersAsJSON": CONSUMER_FIELDS + " deliveringCount filter",
    "listProducersInfoAsJSON": (
        "connectionID creationTime destination id lastProducedMessageID msgSent msgSizeSent name sessionID"
    ),
}


async def fields(connection: Connection, management: Management) -> None:
    await management.call("broker", "createQueue", "s", "ANYCAST", "s", None, True, -1, False, True)
    producer = await connection.producer("s", routing="anycast")
    for number in range(3):
        await producer.send(Message(text=f"{number}", properties={"n": number}))
    async with connection.transaction() as transaction:
        consumer = await transaction.consumer("s", selector="n >= 0")
        for acknowledged in (True, False):
            message = await asyncio.wait_for(consumer.__anext__(), 20)
            if acknowledged:
                await message.acknowledge()
        row: dict[str, object] = {}
        while row.get("messagesInTransit") != "2":
            (row,) = await management.rows("listConsumers", "queue", "EQUALS", "s")
        await listed_fields(management)
        held = await read(management, "queue.s", "listDeliveringMessagesAsJSON")
        assert isinstance(held, list) and len(held) == 1
        delivering = held[0]
        assert [one["n"] for one in delivering["elements"]] == [0, 1, 2]
        assert delivering["consumerName"].startswith("ServerConsumer [id=")
        by_consumer = await management.call("queue.s", "listDeliveringMessages")
        assert by_consumer == {delivering["consumerName"]: delivering["elements"]}
    counts = {
        "messagesDelivered": "3", "messagesAcknowledged": "1",
        "messagesAcknowledgedAwaitingCommit": "1", "localAddress": row["localAddress"],
    }  # fmt: skip
    assert {name: row[name] for name in counts} == counts
    assert "127.0.0.1:" in str(row["localAddress"])  # Artemis 2.44 writes tcp:/// before it
    transit, delivered = (int(str(row[f"messages{what}Size"])) for what in ("InTransit", "Delivered"))
    sent = await management.rows("listProducers", "address", "EQUALS", "s")
    assert [(one["msgSent"], one["msgSizeSent"]) for one in sent] == [(3, delivered)]
    assert (transit, delivered) == (2 * 106, 3 * 106)
    times = [row[f"last{what}Time"] for what in ("Delivered", "Acknowledged")]
    assert all(isinstance(one, int) and one > 1_700_000_000_000 for one in times)


async def listed_fields(management: Management) -> None:
    """The names of the fields of each list, while there is something of each kind."""
    added = {"listConsumers": {"ready"}, "listQueues": {"lease"}}  # by Atalanta
    for view, names in FIELDS.items():
        rows = await management.rows(view)
        assert rows and sorted(set(rows[0]) - added.get(view, set())) == names.split(), view
    for operation, names in JSON_FIELDS.items():
        found = await read(management, "broker", operation)
        assert isinstance(found, list)
        seen = {name for row in found for name in row}
        assert sorted(seen) == sorted(names.split()), operation
    found = await read(management, "queue.s", "listConsumersAsJSON")
    assert isinstance(found, list)
    newer = {"queueName", "status"}  # Artemis 2.44 has no such fields here
    assert set(CONSUMER_FIELDS.split()) - newer <= set(found[0])


async def wildcards(connection: Connection, management: Management) -> None:
    for name, address in (("all", "news.#"), ("europe", "news.eu")):
        await connection.create_queue(name, address=address, routing="multicast", durable=True)
    producer = await connection.producer("news.eu", routing="multicast")
    await producer.send(Message(text="a"))
    resource = "address.news.eu"
    assert sorted(await management.get(resource, "QueueNames")) == ["all", "europe"]  # type: ignore[call-overload]
    assert sorted(await management.get(resource, "BindingNames")) == ["all", "europe"]  # type: ignore[call-overload]
    assert await management.get(resource, "QueueCount") == 2
    assert await management.get(resource, "MessageCount") == 2
    assert await management.get("address.news.#", "QueueNames") == ["all"]
    (row,) = await management.rows("listAddresses", "name", "EQUALS", "news.eu")
    assert (row["queueCount"], row["messageCount"]) == ("2", "2")
    text = str(await management.call("broker", "listBindingsForAddress", "news.eu"))
    assert text.count("LocalQueueBinding [address=news.") == 2


@pytest.mark.parametrize(
    "script",
    [
        made_and_changed, messages, lists, notifications, counters, changed_divert, fields,
        wildcards,
    ],
)  # fmt: skip
def test_same_answers(managed: BrokerProcess, script: Script) -> None:
    run(managed, script)


def test_a_prepared_transaction_is_listed(managed: BrokerProcess) -> None:
    xid = Xid(7, b"branch", b"global")
    with XaClient(managed.port, "admin", "admin") as client:
        client.do(XaStart(xid))
        client.send("x", "sent")
        client.do(XaEnd(xid, False))
        client.do(XaPrepare(xid))

        async def script(connection: Connection, management: Management) -> None:
            found = await read(management, "broker", "listPreparedTransactionDetailsAsJSON")
            assert isinstance(found, list) and len(found) == 1
            (message,) = found[0].pop("tx_related_messages")
            moment = str(found[0].pop("creation_time")).replace("\u202f", " ")
            assert re.fullmatch(r"\d+/\d+/\d\d, \d+:\d\d:\d\d [AP]M", moment), moment
            base64 = found[0].pop("xid_as_base64")
            assert found[0] == {
                "xid_format_id": 7, "xid_branch_qual": "branch", "xid_global_txid": "global",
            }  # fmt: skip
            assert message.pop("message_properties")["address"] == "x"
            assert message == {"message_operation_type": "(+) send", "message_type": "ByteMessage"}
            lines = await management.call("broker", "listPreparedTransactions")
            assert isinstance(lines, list) and len(lines) == 1
            line = re.sub(r"XidImpl \(\d+ ", "XidImpl (", lines[0].replace("\u202f", " "))
            parts = "bq:98.114.97.110.99.104 formatID:7 gtxid:103.108.111.98.97.108"
            assert line == f"{moment} base64: {base64} XidImpl ({parts} base64:{base64}"

        run(managed, script)
        client.do(XaRollback(xid))
