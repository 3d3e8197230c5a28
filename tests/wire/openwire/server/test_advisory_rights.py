"""Who may consume advisories, how many, and how they are found."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from atalanta.kernel.routing.wildcard_addresses import AddressPattern
from atalanta.wire.openwire.commands.connections import KeepAliveInfo, RemoveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import ConnectionId, ConsumerId
from atalanta.wire.openwire.commands.producers import DestinationInfo
from atalanta.wire.openwire.commands.responses import Response
from atalanta.wire.openwire.conversion.destination import CLASSIC_WILDCARDS
from atalanta.wire.openwire.server.advisories.topic_index import TopicIndex
from atalanta.wire.openwire.server.advisories.watcher import Watcher
from atalanta.wire.openwire.server.advisories.watchers import (
    ADVISORIES_A_TURN,
    WATCHED_TOPICS_MAX,
)
from atalanta.wire.openwire.server.connection import OpenWireConnection
from tests.wire.classic_server import ENTRIES, EVERYBODYS_ADVISORIES, ThreeProtocols, classic_server
from tests.wire.openwire.server.openwire_rig import OpenWireClient, OpenWireServer

SECURITY_EXCEPTION = "java.lang.SecurityException"
TEMPORARIES = ActiveMQTopic("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic")


def topic(*names: str) -> ActiveMQTopic:
    return ActiveMQTopic(",".join(f"ActiveMQ.Advisory.{name}" for name in names))


def infos(watcher: OpenWireClient) -> list[DestinationInfo]:
    """The data of advisories about temporary destinations."""
    found = []
    for each in watcher.dispatches():
        assert each.message is not None and isinstance(each.message.data_structure, DestinationInfo)
        found.append(each.message.data_structure)
    return found


def heard(watcher: OpenWireClient) -> list[tuple[int, str]]:
    found = []
    for each in infos(watcher):
        assert each.destination is not None
        found.append((each.operation_type, each.destination.physical_name or ""))
    return found


def topics_of(watcher: OpenWireClient) -> list[str]:
    """The topics of the advisories since the last call."""
    found = []
    for each in watcher.dispatches():
        assert each.message is not None and each.message.destination is not None
        found.append((each.message.destination.physical_name or "").removeprefix("ActiveMQ.Advisory."))
    return found


# -- permissions -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("destination", "field", "refused"),
    [
        (topic("Connection"), "", "ActiveMQ.Advisory.Connection"),
        (topic("Consumer.Queue.app.orders"), "", "ActiveMQ.Advisory.Consumer.Queue.app.orders"),
        (topic("Producer.>"), "", "ActiveMQ.Advisory.Producer.>"),
        (topic(">"), "", "ActiveMQ.Advisory.>"),
        (topic("*"), "", "ActiveMQ.Advisory.*"),
        (topic("TempQueue.>"), "", "ActiveMQ.Advisory.TempQueue.>"),
        (topic("TempQueue", "TempTopic", "Queue"), "", "ActiveMQ.Advisory.Queue"),
        (ActiveMQTopic("ActiveMQ.Advisory.TempQueue,topic://ActiveMQ.Advisory.Topic"), "", "ActiveMQ.Advisory.Topic"),
        (topic("Connection"), "subscription_name", "ActiveMQ.Advisory.Connection"),
        (topic("Connection"), "browser", "ActiveMQ.Advisory.Connection"),
        (ActiveMQQueue("ActiveMQ.Advisory.Connection"), "", "ActiveMQ.Advisory.Connection"),
    ],
)
def test_a_user_without_the_permission_hears_nothing(
    tmp_path: Path, destination: ActiveMQDestination, field: str, refused: str
) -> None:
    server = classic_server(tmp_path)
    client = server.openwire_client("n", "none")
    info = client.consumer_info(destination)
    if field:
        setattr(info, field, "s" if field == "subscription_name" else True)
    kind, why = client.fails(info)
    assert kind == SECURITY_EXCEPTION and "User: none" in why
    assert why.endswith(f"permission='CONSUME' on address {refused}")
    server.openwire_client("a", "anna").consume("app.orders")
    assert client.dispatches() == []
    watcher = server.openwire_client("b", "admin")
    watcher.consume(destination)


def test_the_usual_entry_of_classic_lets_everybody_hear(tmp_path: Path) -> None:
    server = classic_server(tmp_path, ENTRIES + EVERYBODYS_ADVISORIES)
    client = server.openwire_client("n", "none")
    client.consume(topic(">"))
    client.output()
    server.openwire_client("a", "anna").consume("app.orders")
    assert topics_of(client) == ["Connection", "Queue", "Consumer.Queue.app.orders"]


def test_wildcards_leave_out_what_the_user_may_not_read() -> None:
    """A wider entry adds roles to a narrow one, so only a broker.xml can take a topic out."""
    server = OpenWireServer()
    security = server.security
    security.add_rule("ActiveMQ.Advisory.#", {"consume": ["guest"]})
    security.add_rule("ActiveMQ.Advisory.Connection", {"consume": ["admin"]})
    guest = server.openwire_client("g", "guest")
    guest.consume(topic(">"))
    assert guest.dispatches() == []  # not of its own connection either
    client = server.openwire_client("a")
    client.consume("q")
    own = client.temporary_queue()
    assert topics_of(guest) == ["Queue", "Consumer.Queue.q", "TempQueue"]
    security.add_rule("ActiveMQ.Advisory.#", {"consume": ["admin"]})  # the permission is taken away
    client.consume("r")
    client.succeeds(DestinationInfo(ConnectionId(client.id), own, 1))
    assert [each.connection_id for each in infos(guest)] == [None]


# -- temporary destinations ------------------------------------------------------------------------
def test_every_client_hears_of_temporary_destinations_but_not_whose_they_are(tmp_path: Path) -> None:
    server = classic_server(tmp_path)
    creator = server.openwire_client("secret-client", "anna")
    first = creator.temporary_queue(1)
    none, admin = server.openwire_client("n", "none"), server.openwire_client("b", "admin")
    for watcher in (none, admin):
        watcher.send(watcher.consumer_info(TEMPORARIES, no_local=True, dispatch_async=True))
    creator.temporary_queue(2)
    creator.succeeds(DestinationInfo(ConnectionId(creator.id), first, 1))
    told, all_told = infos(none), infos(admin)
    names = [f"{creator.id}:{number}" for number in (1, 2, 1)]
    for found in (told, all_told):
        assert [each.destination and each.destination.physical_name for each in found] == names
        assert [each.operation_type for each in found] == [0, 0, 1]
    assert [each.connection_id for each in told] == [None] * 3
    assert [each.connection_id for each in all_told] == [ConnectionId(creator.id)] * 3


def test_request_and_reply_with_a_watcher_of_each_client(tmp_path: Path) -> None:
    """Each client has the consumer that ActiveMQConnection makes, and sends only to what it has heard of."""
    server = classic_server(tmp_path)
    asking, answering = server.openwire_client("a", "anna"), server.openwire_client("b", "bob")
    for client in (asking, answering):
        client.consume(TEMPORARIES, no_local=True, dispatch_async=True)
    own = asking.temporary_queue()
    assert heard(answering) == [(0, own.physical_name)] and infos(asking) == []
    asking.consume(own)
    answering.publish("!", own)
    assert asking.texts() == ["!"]


# -- other protocols -------------------------------------------------------------------------------
def test_other_protocols_get_and_forge_nothing(tmp_path: Path) -> None:
    server = classic_server(tmp_path)
    name = "ActiveMQ.Advisory.Connection"
    for user in ("none", "admin"):
        refusal = server.stomp_user(user).error("SUBSCRIBE", destination=f"/topic/{name}", id="1")
        assert "only OpenWire clients get advisories" in refusal
    watcher, core = server.openwire_client("b", "admin"), server.login("admin")
    watcher.consume(topic(">"))
    watcher.output()
    refusal = server.stomp_user("admin").error("SEND", "forged", destination=f"/topic/{name}")
    assert "only the broker sends advisories" in refusal
    core.publish(name, "forged", routing_type=0)
    assert all(each.message and each.message.data_structure for each in watcher.dispatches())


def test_a_consumer_is_for_advisories_or_for_others(tmp_path: Path) -> None:
    client = OpenWireServer().openwire_client()
    for name in ("a,ActiveMQ.Advisory.TempQueue", "ActiveMQ.Advisory.TempQueue,topic://a"):
        _, why = client.fails(client.consumer_info(ActiveMQTopic(name)))
        assert name in why and "make two consumers" in why
    client.consume(ActiveMQTopic("a.ActiveMQ.Advisory.b"))


# -- how many --------------------------------------------------------------------------------------
def test_watchers_are_counted_for_each_user() -> None:
    server = OpenWireServer()
    hundred = [f"Consumer.Queue.q{number}.>" for number in range(100)]
    clients = [server.openwire_client(f"c{number}") for number in range(2)]
    full = WATCHED_TOPICS_MAX // 100
    for number in range(full):
        client = clients[number % len(clients)]
        client.send(client.consumer_info(topic(*hundred)))
    last = clients[0]
    _, why = last.fails(last.consumer_info(TEMPORARIES))
    assert f"user admin would have {WATCHED_TOPICS_MAX + 2} topics, at most {WATCHED_TOPICS_MAX} are allowed" in why
    server.openwire_client("one more").consume(TEMPORARIES)  # as each JMS client does
    security = server.security
    security.add_rule("ActiveMQ.#", {"consume": ["guest", "admin"]})
    guest = server.openwire_client("g", "guest")
    guest.consume(TEMPORARIES)
    guest.consume(TEMPORARIES)
    last.close(ConsumerId(last.id, 1, 1))
    last.consume(TEMPORARIES)
    for client in clients:
        server.lost(client.conn)
    assert server.openwire.node_clients.advisories.watchers.topics == {"guest": 2}
    again = server.openwire_client("again")
    again.consume(topic(*hundred))
    again.consume(topic("TempQueue", "TempQueue"))  # one topic
    assert server.openwire.node_clients.advisories.watchers.topics["admin"] == 101


# -- how they are found ----------------------------------------------------------------------------
def test_the_index_finds_the_watchers_that_match() -> None:
    server = OpenWireServer()
    client = server.openwire_client()
    connection = server.connection(client.conn)
    assert isinstance(connection, OpenWireConnection) and connection.session is not None
    session = connection.session
    chance = random.Random(36)

    def name(words: list[str], least: int) -> str:
        return ".".join(chance.choice(words) for _ in range(chance.randint(least, 7)))

    index, watchers = TopicIndex(), []
    for number in range(300):
        names = [f"ActiveMQ.Advisory.{name(['a', 'b', 'c', '*', '>'], 1)}" for _ in range(chance.randint(1, 3))]
        consumer_id = ConsumerId(client.id, 1, number)
        watcher = Watcher(session.connection, session.kernel, consumer_id, ActiveMQTopic(",".join(names)))
        watcher.number = number
        watchers.append((watcher, names))
        index.add(watcher)
    for step in range(400):
        if step == 200:
            for watcher, _ in watchers[::2]:
                index.remove(watcher)
            del watchers[::2]
        subject = f"ActiveMQ.Advisory.{name(['a', 'b', 'c'], 1)}"
        expected = [
            watcher.number
            for watcher, names in watchers
            if any(AddressPattern(each, CLASSIC_WILDCARDS).matches(subject) for each in names)
        ]
        assert sorted(watcher.number for watcher in index.find(subject)) == expected
    for watcher, _ in watchers:
        index.remove(watcher)
    assert not index.by_topic and not index.by_words


def test_an_event_meets_no_patterns_of_other_topics() -> None:
    server = OpenWireServer()
    client = server.openwire_client()
    for number in range(20):
        client.consume(topic(*(f"x{number}.{each}.>" for each in range(100))))
    watchers = server.openwire.node_clients.advisories.watchers
    assert len(watchers.by_id) == 20 and watchers.index.find("ActiveMQ.Advisory.Connection") == []
    assert all("x" in words for words in watchers.index.by_words)


# -- turns -----------------------------------------------------------------------------------------
def many(server: OpenWireServer, watchers: int) -> list[OpenWireClient]:
    found = []
    for number in range(watchers):
        client = server.openwire_client(f"w{number}")
        client.consume(TEMPORARIES, no_local=True)
        found.append(client)
    return found


def test_others_have_their_turn_while_many_hear_of_many_temporary_queues() -> None:
    server = OpenWireServer()
    watchers = many(server, 20)
    creator, other = server.openwire_client("creator"), server.openwire_client("other")
    count = 5 * ADVISORIES_A_TURN // len(watchers)
    frames = []
    for number in range(count):
        info = DestinationInfo(ConnectionId(creator.id), ActiveMQTempQueue(f"{creator.id}:{number}"), 0)
        creator.commands += 1
        info.command_id, info.response_required = creator.commands, True
        frames.append(creator.decoder.format.encode(info))
    sent = server.openwire.node_clients.advisories.watchers
    before = sent.number
    creator.feed(b"".join(frames))  # all in one input
    per_turn = []
    answers = 0
    while answers < count:
        per_turn.append(sent.sent)
        other.send(KeepAliveInfo(), True)
        assert len(other.of_kind(KeepAliveInfo)) == 1  # answered in between
        answers += len(creator.of_kind(Response))
        server.beat()
        assert len(per_turn) < 20
    assert len(per_turn) >= 5 and max(per_turn) <= ADVISORIES_A_TURN + len(watchers)
    assert sent.number - before == count  # each is made once for all
    names = [(0, f"{creator.id}:{number}") for number in range(count)]
    assert all(heard(watcher) == names for watcher in watchers)


def test_the_end_of_many_is_told_in_turns_and_before_their_return() -> None:
    server = OpenWireServer()
    watchers = many(server, 20)
    creator = server.openwire_client("creator")
    count = 2 * ADVISORIES_A_TURN // len(watchers)
    for number in range(count):
        creator.send(DestinationInfo(ConnectionId(creator.id), ActiveMQTempQueue(f"{creator.id}:{number}"), 0))
        server.beat()
    for watcher in watchers:
        watcher.output()
    server.beat()
    server.lost(creator.conn)
    last = f"{creator.id}:{count - 1}"
    again = server.openwire_client("again", connection_id=creator.id[3:])
    again.succeeds(DestinationInfo(ConnectionId(again.id), ActiveMQTempQueue(last), 0))  # after a failover
    for _ in range(5):
        server.beat()
    for watcher in watchers:
        found = heard(watcher)
        assert found.index((1, last)) < found.index((0, last)) and found.count((1, last)) == 1
        assert sorted(found) == sorted([(0, last), *((1, f"{creator.id}:{number}") for number in range(count))])


def test_a_failed_consumer_of_advisories_is_none() -> None:
    server = ThreeProtocols()
    guest = server.openwire_client("g", "guest")
    info = guest.consumer_info(topic("Connection"))
    guest.fails(info)
    guest.succeeds(RemoveInfo(info.consumer_id))
    again = ConsumerInfo(info.consumer_id, destination=TEMPORARIES, prefetch_size=10)
    guest.succeeds(again)
