"""A duplex bridge of a real broker of Classic whose user lacks one permission at our node: what it loses, and what not.

The other files about networks run with the same user, who lacks none (NEIGHBOUR_PERMISSIONS).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.broker_xml import NEIGHBOUR_PERMISSIONS
from tests.interop.harness.classic import Classic, ClassicBroker, numbers
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


class Network:
    """Classic's broker `broker`, and our node that it dials, whose user lacks a permission."""

    def __init__(self, classic: Classic, node: BrokerProcess, broker: ClassicBroker) -> None:
        self.classic = classic
        self.node = node
        self.broker = broker
        self.here = f"tcp://127.0.0.1:{node.port}"

    def refusals(self, words: str) -> list[str]:
        """The events of refused demand with these words."""
        lines = self.node.log.read_text().splitlines()
        return [line for line in lines if "network_demand_refused" in line and words in line]

    def refuses(self, permission: str, address: str) -> None:
        """Waits for the event that names permission and address; it is there once."""
        words = f"permission='{permission}'"
        until(f"{permission} on {address} is refused", lambda: len(self.refusals(words)) > 0)
        assert len(self.refusals(words)) == 1 and address in self.refusals(words)[0]

    def arrives(self, consumer: str) -> bool:
        """Whether a message to the topic comes to the consumer; the demand may need a moment."""
        self.classic.send(self.here, "topic:news", range(100, 101))
        return self.classic.receive(consumer, 1, 500) != []


@pytest.fixture
def network(classic: Classic, brokers: Lineup, permission: str) -> Iterator[Network]:
    """The two, connected; the queue `orders` of the node has three messages."""
    node = brokers.openwire()
    path = node.folder / "etc" / "broker.xml"
    granted = f'<permission type="{permission}" roles="amq,neighbours"/>'
    text = path.read_text()
    assert text.count(granted) == 1
    path.write_text(text.replace(granted, f'<permission type="{permission}" roles="amq"/>'))
    node.start()
    broker = classic.broker("classic")
    made = Network(classic, node, broker)
    classic.send(made.here, "queue:orders", range(3))
    broker.connect(f"static:({made.here})", "userName=neighbour", "password=neighbour", "duplex=true")
    until("the bridge is up", lambda: len(broker.bridges()) == 1)
    yield made
    classic.close_all()
    broker.stop()
    node.close()


@pytest.mark.parametrize("permission", NEIGHBOUR_PERMISSIONS)
def test_a_neighbour_without_a_permission_loses_that_alone(network: Network, permission: str) -> None:
    classic, there = network.classic, network.broker.url
    if permission == "consume":
        orders = classic.consumer(there, "queue:orders")
        network.refuses("CONSUME", "queue orders")
        assert classic.rest(orders) == []
        assert classic.receive(classic.consumer(network.here, "queue:orders"), 3) == numbers(0, 3)
        return
    assert classic.receive(classic.consumer(there, "queue:orders"), 3) == numbers(0, 3)
    if permission == "send":
        back = classic.consumer(network.here, "queue:back")
        classic.send(there, "queue:back", range(3))
        assert classic.rest(back) == [] and network.broker.depth("queue:back")[0] == 3
    elif permission == "createAddress":
        classic.consumer(there, "queue:new")
        network.refuses("CREATE_ADDRESS", "queue new")
    elif permission == "createDurableQueue":
        classic.consumer(there, "durable:news:one", client_id="client.one")
        network.refuses("CREATE_DURABLE_QUEUE", "address news")
        plain = classic.consumer(there, "topic:news")
        until("the plain consumer is served", lambda: network.arrives(plain))
    elif permission == "createNonDurableQueue":
        classic.consumer(there, "topic:news")
        network.refuses("CREATE_NON_DURABLE_QUEUE", "address news")
    elif permission == "deleteDurableQueue":
        subscriber = classic.consumer(there, "durable:news:one", client_id="client.one")
        until("the subscriber is served", lambda: network.arrives(subscriber))
        classic.close(subscriber)
        classic.unsubscribe(there, "one", "client.one")
        network.refuses("DELETE_DURABLE_QUEUE", "address news")
    else:
        classic.replier(network.here, "queue:requests")
        assert classic.request(there, "queue:requests", "a") == ["re a"]
        classic.close_all()
        network.refuses("DELETE_NON_DURABLE_QUEUE", "ID:")
