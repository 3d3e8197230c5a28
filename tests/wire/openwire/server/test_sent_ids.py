"""Duplicate ids that the broker makes of message ids: who knows an id cannot make another sender's message vanish."""

from __future__ import annotations

import pytest

from atalanta.kernel.journal import records
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.message.encoding.buffer import encode_utf16
from atalanta.wire.openwire.bodies import text_content
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import BrokerId, MessageId, ProducerId, SessionId
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage
from atalanta.wire.openwire.commands.producers import ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.transactions import TransactionInfo, XATransactionId
from atalanta.wire.openwire.encoding.primitives import encode_map
from tests.wire.openwire.server.openwire_rig import (
    BEGIN,
    COMMIT_ONE_PHASE,
    OpenWireClient,
    OpenWireServer,
    id_of,
    properties,
)
from tests.wire.stomp.stomp_rig import StompServer

VICTIM = ProducerId("ID:victim", 1, 1)
REFUSAL = "with invalid (null) producer state"
NEWS = ActiveMQTopic("news")


class World(OpenWireServer, StompServer):
    """A server of all three protocols. `low` may send and consume, the bridges `b` and `c` may see the demand, too."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("low", "b", "c"):
            self.security.add_user(name, name, [name])
        creation = ("createAddress", "createDurableQueue", "createNonDurableQueue")
        everything: dict[str, list[str]] = dict.fromkeys(creation, ["admin"])
        work = dict.fromkeys(("send", "consume"), ["admin", "low", "b", "c"])
        for match in ("a", "BRIDGE.a", "news", "v"):
            self.security.add_rule(match, {**everything, **work})
        self.security.add_rule("ActiveMQ.Advisory.#", {**everything, "consume": ["admin", "b", "c"]})
        self.login().create_queue("a")

    def victim(self, comes_back: bool = False) -> OpenWireClient:
        """The failover client, also when it comes back."""
        return self.openwire_client(
            "victim", connection_id="victim", fault_tolerant=True, failover_reconnect=comes_back
        )

    def bridge(self, user: str, broker: str = "ID:b") -> OpenWireClient:
        client = OpenWireClient(self, f"NC-{self.last_conn}")
        client.greet()
        client.send(BrokerInfo(BrokerId(broker), broker_name=broker, network_connection=True))
        client.succeeds(client.login_info(f"NC_{user}_{self.last_conn}", user, user))
        client.succeeds(SessionInfo(SessionId(client.id, 1)))
        return client

    def count(self, queue: str = "a") -> int:
        self.settle()
        return self.broker.queues[queue].message_count


def message(
    number: int, destination: ActiveMQDestination | None = None, producer: ProducerId = VICTIM
) -> ActiveMQTextMessage:
    """A message of the victim with that number."""
    return ActiveMQTextMessage(
        producer, destination or ActiveMQQueue("a"), message_id=MessageId(None, producer, number), persistent=True,
        priority=4, content=text_content(f"{number}"),
    )  # fmt: skip


def brought(by: OpenWireClient, number: int, *path: str, destination: ActiveMQDestination | None = None,
            producer: ProducerId = VICTIM) -> ActiveMQTextMessage:  # fmt: skip
    """The victim's message as a bridge brings it."""
    made = message(number, destination, producer)
    made.producer_id = ProducerId(by.id, 1, 1)
    made.broker_path = [BrokerId(each) for each in path or ("ID:b",)]
    return made


@pytest.fixture
def world() -> World:
    return World()


# -- clients ----------------------------------------------------------------------------------------
def test_a_message_of_a_producer_that_the_connection_does_not_have_is_refused(world: World) -> None:
    other = world.openwire_client("low", "low")
    unregistered = ProducerId(other.id, 1, 9)
    other.producers.add(unregistered)  # the rig does not register it
    for wrong, shown in (
        (message(1), "queue://a"), (message(1, NEWS), "topic://news"), (message(1, producer=unregistered), "queue://a"),
    ):  # fmt: skip
        assert other.fails(wrong) == ("javax.jms.JMSException", f"Cannot send message to {shown} {REFUSAL}")
    own = other.message("own", "a")
    own.producer_id = None
    assert REFUSAL in other.fails(own)[1]
    named = message(1)
    named.producer_id = ProducerId(other.id, 1, 1)  # it has this one, but not that of the id
    assert REFUSAL in other.fails(named)[1]
    _, why = other.fails(ProducerInfo(VICTIM))
    assert why == "Cannot add a producer to a connection that had not been registered: ID:victim"
    assert world.count() == 0


def test_a_removed_producer_sends_no_more(world: World) -> None:
    client = world.openwire_client()
    for number in range(11, 15):
        client.succeeds(message(number, producer=ProducerId(client.id, 1, 1)))
    client.succeeds(RemoveInfo(ProducerId(client.id, 1, 1), -1))
    assert REFUSAL in client.fails(message(15, producer=ProducerId(client.id, 1, 1)))[1]
    client.succeeds(ProducerInfo(ProducerId(client.id, 1, 1)))
    client.succeeds(message(16, producer=ProducerId(client.id, 1, 1)))
    assert world.count() == 5


@pytest.mark.parametrize("transacted", [False, True])
def test_the_ids_of_a_failover_client_are_not_taken_by_others(world: World, transacted: bool) -> None:
    """By its connection's id as another user, in OpenWire; as an application's id or a bridge's, in every protocol."""
    thief = world.openwire_client("thief", "low", connection_id="victim", fault_tolerant=True)
    thief.succeeds(message(1))
    core, stomp = world.login("low"), world.stomp_client(login="low", passcode="low")
    ids = [f"ID:victim:1:1:{number}" for number in range(10)]
    for each in ids:
        core.publish("a", _AMQ_DUPL_ID=each)
        core.publish("a", _AMQ_DUPL_ID=each.encode())
        core.publish("a", _AMQ_BRIDGE_DUP=each.encode())
        core.publish("a", _AMQ_BRIDGE_DUP=encode_utf16(each))
        stomp.receipt("SEND", destination="a", _AMQ_DUPL_ID=each)
        stomp.receipt("SEND", destination="a", _AMQ_BRIDGE_DUP=each)
        own = thief.message("x", "a", {"_AMQ_DUPL_ID": each})
        own.producer_id = ProducerId(thief.id, 2, 1)
        own.message_id = MessageId(None, own.producer_id, 1)
        thief.succeeds(own)
    before = world.count()
    victim = world.victim()
    transaction = victim.begin() if transacted else None
    for number in range(1, 9):
        sent = message(number)
        sent.transaction_id = transaction
        victim.succeeds(sent)
    if transaction is not None:
        victim.end(transaction)
    assert world.count() == before + 8


def test_what_the_cache_holds_for_a_client_cannot_be_written_as_an_application_id(world: World) -> None:
    """Nor as that of a bridge: whoever reads the code knows the bytes."""
    spy = World()
    spy.victim().succeeds(message(1))
    spy.bridge("b").succeeds(brought(spy.openwire_client(), 2))
    spy.settle()
    known = [each for cache in spy.broker.caches.by_name.values() for each in cache.ids]
    assert len(known) == 2
    core = world.login("low")
    for each in known:
        core.publish("a", _AMQ_DUPL_ID=each)
        core.publish("a", _AMQ_BRIDGE_DUP=each)
    before = world.count()
    world.victim().succeeds(message(1))
    bridge = world.bridge("b")
    bridge.succeeds(brought(bridge, 2))
    assert (before, world.count()) == (4, 6)


def test_a_repeat_behind_a_failover_is_dropped(world: World) -> None:
    """Also behind a restart, for anonymous producers, each queue of a composite, and in a transaction."""
    both = ActiveMQQueue("a,other")
    first = world.victim()
    sent = [message(1), message(2, both), message(3)]
    for each in sent:
        first.succeeds(each)
    world.settle()
    world.restart()
    again = world.victim(True)
    for each in (*sent, message(4)):
        again.succeeds(each)
    assert (world.count(), world.count("other")) == (4, 1)
    transaction = again.begin(2)
    repeat = message(3)
    repeat.transaction_id = transaction
    again.send(repeat)
    _, why = again.fails(TransactionInfo(None, transaction, COMMIT_ONE_PHASE))
    assert "Duplicate message detected - message will not be routed. Message information: address=a" in why
    assert world.count() == 4


def test_a_repeat_of_a_message_that_an_older_version_has_stored_is_dropped(world: World) -> None:
    """It kept the text of the message id in the space of applications, for bridges with the queue and the hops."""
    texts = {
        "a": ["ID:victim:1:1:1", "ID:victim:1:1:2 1"], "news": ["ID:victim:1:1:3", "ID:victim:1:1:4"],
        "v": ["ID:victim:1:1:5 v.one 2"],
    }  # fmt: skip
    world.login().create_queue("v.one", "v")
    subscriber = world.openwire_client()
    subscriber.consume(NEWS)
    for address, ids in texts.items():
        payload = records.encode_duplicates(address, 1, [encode_utf16(each) for each in ids])
        world.journal.append(records.DUPLICATES, payload)
    world.settle()
    world.restart()
    victim, bridge = world.victim(), world.bridge("b")
    subscriber = world.openwire_client()
    subscriber.consume(NEWS)
    victim.succeeds(message(1))
    bridge.succeeds(brought(bridge, 2))
    victim.succeeds(message(3, NEWS))
    bridge.succeeds(brought(bridge, 4, destination=NEWS))
    bridge.succeeds(brought(bridge, 5, "ID:x", "ID:b", destination=ActiveMQQueue("v::v.one")))
    core = world.login()
    core.publish("a", _AMQ_DUPL_ID="ID:victim:1:1:1")
    assert (world.count(), world.count("v.one"), subscriber.texts()) == (0, 0, [])
    victim.succeeds(message(2))
    bridge.succeeds(brought(bridge, 1))
    assert world.count() == 2


def test_the_id_is_no_property_of_the_message(world: World) -> None:
    client = world.victim()
    client.consume("a")
    client.succeeds(message(1))
    (got,) = client.dispatches()
    assert id_of(got).producer_id == VICTIM and "_AMQ_DUPL_ID" not in properties(got)


def test_an_application_id_is_one_space_for_each_address(world: World) -> None:
    """Whoever sends it, over whatever protocol."""
    core, stomp, openwire = world.login("low"), world.stomp_client(), world.openwire_client("f", fault_tolerant=True)
    for name in ("order-1", "ID:victim:1:1:1", "ID:x"):
        before = world.count()
        core.publish("a", _AMQ_DUPL_ID=name)
        stomp.receipt("SEND", destination="a", _AMQ_DUPL_ID=name)
        openwire.succeeds(openwire.message("x", "a", {"_AMQ_DUPL_ID": name}))
        world.restart()
        core, stomp = world.login("b"), world.stomp_client()
        openwire = world.openwire_client("f", fault_tolerant=True)
        core.publish("a", _AMQ_DUPL_ID=name)
        assert world.count() == before + 1


def test_the_text_of_a_message_id_is_no_id(world: World) -> None:
    """A client of the same user writes what it likes there."""
    other = world.openwire_client("o", fault_tolerant=True)
    taken = other.message("x", "a")
    assert taken.message_id is not None
    taken.message_id.text_view = "ID:victim:1:1:1"
    other.succeeds(taken)
    other.succeeds(taken)
    world.victim().succeeds(message(1))
    assert world.count() == 2


# -- bridges ----------------------------------------------------------------------------------------
def test_what_a_client_sends_is_no_repeat_of_what_a_bridge_brings(world: World) -> None:
    bridge, victim, subscriber = world.bridge("b"), world.victim(), world.openwire_client()
    subscriber.consume(NEWS)
    for destination in (ActiveMQQueue("a"), NEWS):
        bridge.succeeds(brought(bridge, 1, destination=destination))
        victim.succeeds(message(1, destination))
        victim.succeeds(message(2, destination))
        bridge.succeeds(brought(bridge, 2, destination=destination))
    assert (world.count(), subscriber.texts()) == (4, ["1", "1", "2", "2"])


def test_a_topic_message_that_comes_two_ways_is_one(world: World) -> None:
    """Also again over a bridge that has reconnected as another user, and behind a restart."""
    subscriber = world.openwire_client("s")
    subscriber.consume(ActiveMQTopic("news"), client_id="s", subscription_name="all")
    one, two = world.bridge("b", "ID:b"), world.bridge("c", "ID:c")
    one.succeeds(brought(one, 1, "ID:x", "ID:b", destination=NEWS))
    two.succeeds(brought(two, 1, "ID:x", "ID:y", "ID:c", destination=NEWS))
    one.succeeds(brought(one, 2))
    world.settle()
    world.restart()
    again = world.bridge("c", "ID:b")
    again.succeeds(brought(again, 1, "ID:x", "ID:b", destination=NEWS))
    again.succeeds(brought(again, 2))
    assert world.count() == 1
    assert world.broker.queues["s.all"].message_count == 1


def test_a_bridge_whose_user_may_not_see_the_demand_takes_no_ids(world: World) -> None:
    """Any client can say that it is one. Its own repeats are found."""
    pretender = world.bridge("low", "ID:p")
    for _ in range(2):
        pretender.succeeds(brought(pretender, 1))
        pretender.succeeds(brought(pretender, 2))
    bridge, victim = world.bridge("b"), world.victim()
    bridge.succeeds(brought(bridge, 1))
    victim.succeeds(message(2))
    assert world.count() == 4


def test_ids_of_members_and_core_bridges_are_not_taken_by_a_user(world: World) -> None:
    """A core bridge has a user that may send. Its own repeats are found, also in a transaction."""
    forged = [bytes(16) + number.to_bytes(8, "big") for number in range(4)]
    low = world.login("low")
    for each in forged:
        for _ in range(2):
            low.publish("a", _AMQ_BRIDGE_DUP=each)
    world.login().create_queue("BRIDGE.a")
    for each in forged:
        low.publish("BRIDGE.a", _AMQ_DUPL_ID=each)
    assert (world.count(), world.count("BRIDGE.a")) == (4, 4)
    member, other = world.login("cluster", "secret"), world.login("b")
    for each in forged:
        for _ in range(2):
            member.publish("a", _AMQ_BRIDGE_DUP=each)
    assert world.count() == 8
    for each in forged:  # those of a member count for everybody: the bridge has a user of its own only now
        other.publish("a", _AMQ_BRIDGE_DUP=each)
    assert world.count() == 8


@pytest.mark.parametrize("manages", [False, True])
def test_the_bridge_of_a_user_who_manages_has_the_ids_of_all(world: World, manages: bool) -> None:
    if manages:
        world.security.add_rule("activemq.management", {"manage": ["b", "c"]})
    for user in ("b", "c", "b"):
        world.login(user).publish("a", _AMQ_BRIDGE_DUP=b"x" * 32)
    assert world.count() == (1 if manages else 2)


def test_xa_sends_of_a_failover_client_are_checked(world: World) -> None:
    xid = XATransactionId(7, b"global", b"branch")
    victim = world.victim()
    victim.succeeds(TransactionInfo(None, xid, BEGIN))
    sent = message(1)
    sent.transaction_id = xid
    victim.succeeds(sent)
    victim.succeeds(TransactionInfo(None, xid, COMMIT_ONE_PHASE))
    world.settle()
    victim.succeeds(message(1))
    victim.succeeds(message(2))
    assert world.count() == 2


def test_a_copy_of_a_divert_is_no_repeat_of_a_message_with_its_id(world: World) -> None:
    """A composite destination sends one message id to both addresses."""
    world.login().create_queue("other")
    world.broker.diverts.create(DivertConfig(name="d", address="a", forwarding_address="other"), False)
    victim = world.victim()
    for _ in range(2):
        victim.succeeds(message(1, ActiveMQQueue("a,other")))
    assert (world.count(), world.count("other")) == (1, 2)


def test_scheduled_sends_are_checked(world: World) -> None:
    victim = world.victim()
    for _ in range(2):
        sent = message(1)
        sent.marshalled_properties = encode_map("p", {"AMQ_SCHEDULED_DELAY": 1000})
        victim.succeeds(sent)
    assert world.count() == 1


@pytest.mark.parametrize("transacted", [False, True])
def test_a_composite_of_a_queue_and_a_topic_of_one_name_is_no_repeat_of_itself(world: World, transacted: bool) -> None:
    queue, topic = world.openwire_client("q"), world.openwire_client("t")
    queue.consume("both")
    topic.consume(ActiveMQTopic("both"))
    sender = world.victim()
    for again in range(2):
        if again:  # it comes back, and sends the same once more
            world.lost(sender.conn)
            sender = world.victim(True)
        sent = message(1, ActiveMQQueue("both,topic://both"))
        if not transacted:
            sender.succeeds(sent)
        elif not again:
            sent.transaction_id = sender.begin()
            sender.succeeds(sent)
            sender.end(sent.transaction_id)
        assert (queue.texts(), topic.texts()) == (([], []) if again else (["1"], ["1"]))


def test_a_producer_comes_back_before_the_temporary_queue_that_it_sends_to(world: World) -> None:
    """Behind a restart, clients register again in any order; a new producer for what is gone is refused."""
    reader, sender = world.openwire_client("r"), world.openwire_client("s")
    gone = ActiveMQTempQueue(f"{reader.id}:1")
    _, why = sender.fails(ProducerInfo(ProducerId(sender.id, 1, 2), gone))
    assert "does not exist" in why
    sender.send(ProducerInfo(ProducerId(sender.id, 1, 1), gone))
    assert REFUSAL not in sender.fails(sender.message("early", gone))[1]
    reader.consume(reader.temporary_queue())
    sender.publish("!", gone)
    assert reader.texts() == ["!"]
