"""Dead letters, redeliveries, virtual and composite destinations, with and without harmless options of activemq.xml."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.activemq import tables
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from tests.config.harmless.cases import case
from tests.config.harmless.classic_node import ClassicFile, attributes, same, warned
from tests.kernel.broker_rig import SECOND
from tests.wire.classic_server import ThreeProtocols
from tests.wire.openwire.server.openwire_rig import POISON, OpenWireClient, text

TOPIC = ActiveMQTopic("t")


def rejected(client: OpenWireClient) -> None:
    """Rejects for ever what comes."""
    for got in client.dispatches():
        client.ack(got, POISON, got)


def there(client: OpenWireClient, queue: str) -> list[str | None]:
    """The texts in a queue."""
    client.consume(queue, browser=True)
    return [text(each) for each in client.dispatches() if each.message is not None]


# -- dead letters -----------------------------------------------------------------------------------
def strategy(text: str) -> ClassicFile:
    """The same strategy for queues and topics."""
    policy = f"<deadLetterStrategy>{text}</deadLetterStrategy>"
    return ClassicFile(children=policy, of_topic=policy)


@case("DEAD_LETTERS_FIXED", *tables.DEAD_LETTERS_FIXED)
@pytest.mark.parametrize(
    ("name", "queue", "topic"),
    [
        ("sharedDeadLetterStrategy", "ActiveMQ.DLQ", "ActiveMQ.DLQ"),
        ("individualDeadLetterStrategy", "ActiveMQ.DLQ.Queue.q", "ActiveMQ.DLQ.Queue.t"),
    ],
)
def test_each_rejected_message_waits_in_one_queue(tmp_path: Path, name: str, queue: str, topic: str) -> None:
    """Also one that two durable subscriptions reject, and one that is rejected again after it was sent again."""

    def scenario(server: ThreeProtocols) -> object:
        clients = [server.openwire_client(name) for name in ("a", "b")]
        clients[0].consume("q")
        clients[0].publish("queue", "q")
        rejected(clients[0])
        for client in clients:
            client.consume(TOPIC, subscription_name="sub")
        clients[0].publish("topic", TOPIC)
        for client in clients:
            rejected(client)
        return [there(clients[0], each) for each in dict.fromkeys((queue, topic))]

    values = " ".join(f"{each}='{value.here[0]}'" for each, value in tables.DEAD_LETTERS_FIXED.items())
    found = same(tmp_path, scenario, strategy(f"<{name}/>"), strategy(f"<{name} {values}/>"))
    assert found == ([["queue", "topic", "topic"]] if queue == topic else [["queue"], ["topic", "topic"]])
    for each, value in tables.DEAD_LETTERS_FIXED.items():
        other = "false" if value.here[0] == "true" else "true"
        assert warned(tmp_path, strategy(f"<{name} {each}='{other}'/>"), each)


@case("DISCARDING_SILENT", *tables.DISCARDING_SILENT)
@case("DROPS_SILENT", *tables.DROPS_SILENT)
@pytest.mark.parametrize("value", ["true", "false"])
def test_dead_letters_are_dropped(tmp_path: Path, value: str) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client = server.openwire_client()
        own = client.temporary_queue()
        for destination in (own, "q"):
            client.consume(destination)
            client.publish("bad", destination)
            client.publish("bad", destination, persistent=False)
        rejected(client)
        client.publish("late", "old", expiration=server.now // 1_000_000 + 10)
        server.now += SECOND
        while server.broker.expiry.scan(server.now, 1_000):
            pass
        return there(client, "ActiveMQ.DLQ"), there(client, "ActiveMQ.DLQ.Queue.q")

    numbers = ("expiration", "maxAuditDepth", "maxProducersToAudit", "maxDestinationsToAudit", "deadLetterQueue")
    truths = [name for name in tables.DISCARDING_SILENT if name not in numbers]
    stated = strategy(f"<discarding {attributes(truths, value)} {attributes(numbers, '1')}/>")
    assert same(tmp_path / "strategy", scenario, strategy("<discarding/>"), stated) == ([], [])

    def plugin(more: str) -> ClassicFile:
        return ClassicFile(inside=f"<plugins><discardingDLQBrokerPlugin {more}/></plugins>")

    stated = plugin(f"dropAll='true' {attributes(tables.DROPS_SILENT, value)}")
    assert same(tmp_path / "plugin", scenario, plugin(""), stated) == ([], [])
    assert warned(tmp_path, plugin("dropAll='false' dropTemporaryQueues='true'"), "dropTemporaryQueues")


@case("REDELIVERY_PLUGIN_FIXED", *tables.REDELIVERY_PLUGIN_FIXED)
@case("REDELIVERY_FIXED", *tables.REDELIVERY_FIXED)
def test_a_message_that_came_too_often_is_a_dead_letter(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        sender = server.openwire_client("s")
        sender.publish("1", "q")
        deliveries = 0
        for attempt in range(4):
            client = server.openwire_client(f"c{attempt}")
            client.consume("q")
            deliveries += len(client.dispatches())
            server.lost(client.conn)
            server.now += SECOND
            server.broker.on_timer(server.now, "kernel.scheduled")
            server.settle()
        return deliveries, there(sender, "ActiveMQ.DLQ")

    def plugin(more: str, policy: str) -> ClassicFile:
        return ClassicFile(
            inside=f"<plugins><redeliveryPlugin {more}><redeliveryPolicyMap><redeliveryPolicyMap><defaultEntry>"
            f"<redeliveryPolicy maximumRedeliveries='2' redeliveryDelay='10' initialRedeliveryDelay='10' {policy}/>"
            "</defaultEntry></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>"
        )

    names = tables.REDELIVERY_PLUGIN_FIXED
    stated = plugin(attributes(names, "true"), "preDispatchCheck='true'")
    assert same(tmp_path, scenario, plugin("", ""), stated) == (3, ["1"])
    other = plugin(attributes(names, "false"), "preDispatchCheck='false'")
    assert all(warned(tmp_path, other, name) for name in (*names, *tables.REDELIVERY_FIXED))


# -- virtual and composite destinations -----------------------------------------------------------------
def interceptors(inside: str, also: str = "", policy: str = "", children: str = "") -> ClassicFile:
    text = (
        "<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>"
        f"{inside}</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>{also}"
    )
    return ClassicFile(inside=text, policy=policy, children=children)


def shown(client: OpenWireClient) -> list[tuple[str | None, str]]:
    """The texts that came, and the destination that each message has."""
    return [(text(each), str(each.message and each.message.destination)) for each in client.dispatches()]


@case("VIRTUAL_SILENT", "transactedSend")
@case("VIRTUAL_FIXED", "setOriginalDestination", "copyMessage")
def test_a_message_is_at_once_in_all_queues_that_it_goes_to(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        client, clients = server.openwire_client(), [server.openwire_client(name) for name in ("one", "two", "into")]
        queues = ("Consumer.a.VirtualTopic.T", "Consumer.b.VirtualTopic.T", "into")
        for reader, queue in zip(clients, queues, strict=True):
            reader.consume(queue)
        client.publish("virtual", ActiveMQTopic("VirtualTopic.T"))
        client.publish("composite", "in")
        transaction = client.begin()
        client.publish("committed", ActiveMQTopic("VirtualTopic.T"), transaction_id=transaction)
        client.end(transaction)
        return [shown(each) for each in clients]

    def both(virtual: str, composite: str) -> ClassicFile:
        topics = f"<virtualTopic name='VirtualTopic.&gt;' prefix='Consumer.*.' {virtual}/>"
        target = "<forwardTo><queue physicalName='into'/></forwardTo>"
        return interceptors(f"{topics}<compositeQueue name='in' {composite}>{target}</compositeQueue>")

    files = [both(f"transactedSend='{value}' setOriginalDestination='true'", "copyMessage='true'") for value in
             ("true", "false")]  # fmt: skip
    found = same(tmp_path, scenario, both("", ""), *files)
    assert [[body for body, _ in each] for each in found] == [["virtual", "committed"]] * 2 + [["composite"]]
    assert "Consumer.a.VirtualTopic.T" in found[0][0][1] and "into" in found[2][0][1]
    assert warned(tmp_path, both("setOriginalDestination='false'", ""), "setOriginalDestination")
    assert warned(tmp_path, both("", "copyMessage='false'"), "copyMessage")


@case("VIRTUAL_FIXED", "dropOnResourceLimit")
def test_a_full_queue_of_a_virtual_topic_drops_nothing(tmp_path: Path) -> None:
    def scenario(server: ThreeProtocols) -> object:
        reader, sender = server.openwire_client("r"), server.openwire_client("s")
        reader.consume("Consumer.a.VirtualTopic.T", prefetch=1)
        sent = 0
        for _ in range(20):
            sender.send(sender.message("x" * 2_000, ActiveMQTopic("VirtualTopic.T")), True)
            sent += len(sender.output())
        found = 0
        while dispatches := reader.dispatches():
            for each in dispatches:
                found += 1
                reader.ack(each)
        return sent < 20, found == sent + len(sender.output())

    def limited(more: str) -> ClassicFile:
        return interceptors(
            f"<virtualTopic name='VirtualTopic.&gt;' prefix='Consumer.*.' {more}/>",
            policy="memoryLimit='10 kb' sendFailIfNoSpace='true'",
            children="<pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>",
        )

    same(tmp_path, scenario, limited(""), limited("dropOnResourceLimit='false'"))
    assert warned(tmp_path, limited("dropOnResourceLimit='true'"), "dropOnResourceLimit")


@case("SELECTOR_CACHE_SILENT", *tables.SELECTOR_CACHE_SILENT)
@case("SELECTOR_CACHE_FIXED", *tables.SELECTOR_CACHE_FIXED)
@pytest.mark.parametrize("name", tables.SELECTOR_CACHES)
def test_a_queue_keeps_the_selectors_of_its_consumers_without_them(tmp_path: Path, name: str) -> None:
    def scenario(server: ThreeProtocols) -> object:
        queue, topic = "Consumer.a.VirtualTopic.T", ActiveMQTopic("VirtualTopic.T")
        client = server.openwire_client("c")
        consumers = [client.consume(queue, selector=f"color = '{color}'") for color in ("red", "blue")]
        for consumer in consumers:
            client.close(consumer)
        server.restart()
        sender = server.openwire_client("s")
        for color in ("red", "green", "blue"):
            sender.publish(color, topic, properties={"color": color})
        found = there(sender, queue)
        everything = sender.consume(queue)
        sender.output()
        sender.close(everything)
        sender.publish("green", topic, properties={"color": "green"})
        return found, there(sender, queue)

    topics = "<virtualTopic name='VirtualTopic.&gt;' prefix='Consumer.*.' selectorAware='true'/>"
    fixed = attributes(tables.SELECTOR_CACHE_FIXED, "false")
    plugins = [
        f"<plugins><{name} {more}/></plugins>"
        for more in ("", "persistFile='/tmp/x'", "persistInterval='1'", fixed)
    ]
    found = same(tmp_path, scenario, interceptors(topics), *(interceptors(topics, also=each) for each in plugins))
    assert found == (["red", "blue"], ["red", "blue", "green"])
    for each in tables.SELECTOR_CACHE_FIXED:
        other = interceptors(topics, also=f"<plugins><{name} {each}='true'/></plugins>")
        assert warned(tmp_path, other, each)
