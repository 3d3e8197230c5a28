"""What waits in the queues of the nodes, and how much they forwarded to each other."""

from __future__ import annotations

import asyncio
import json

from atalanta.client import Connection, Message, connect
from examples.flights.airports import AIRPORTS, CLUSTER, OPERATOR_LOGIN, Airport

LOOK_S = 0.25
ANSWER_S = 10.0
MANAGEMENT = "activemq.management"
# Store-and-forward queues are called so, followed by the node id of whom the messages are for.
FORWARDING = f"$.artemis.internal.sf.{CLUSTER}."


class Operator:
    """One connection to each node, of the user who may look at everything. Use as a context."""

    def __init__(self) -> None:
        self._connections: dict[str, Connection] = {}
        # By the code of the airport that the messages in them are for; the same at every node.
        self._forwarding: dict[str, str] = {}

    async def __aenter__(self) -> Operator:
        for airport in AIRPORTS:
            url = f"{airport.server}?stay=true&reconnectAttempts=-1&initialConnectAttempts=20&retryInterval=200"
            connection = connect(url, user=OPERATOR_LOGIN.user, password=OPERATOR_LOGIN.password)
            self._connections[airport.code] = await connection.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))

    async def until_formed(self) -> None:
        """Returns when every node knows all the others. To be called before what concerns forwarding."""
        while any(len(connection.topology) < len(AIRPORTS) for connection in self._connections.values()):
            await asyncio.sleep(LOOK_S)
        for member in self._connections[AIRPORTS[0].code].topology:
            for airport in AIRPORTS:
                if airport.port == member.port:
                    self._forwarding[airport.code] = f"{FORWARDING}{member.node_id}"

    async def until_empty(self, *queues: str) -> None:
        """Returns when the named queues are empty at every node that has them."""
        while await self.messages(*queues):
            await asyncio.sleep(LOOK_S)

    async def until_forwarded(self) -> None:
        """Returns when nothing waits at any node for another one."""
        while any([await self.parked(airport) for airport in AIRPORTS]):
            await asyncio.sleep(LOOK_S)

    async def parked(self, target: Airport) -> int:
        """How many messages wait at the other nodes for that of `target`."""
        queue = self._forwarding[target.code]
        others = [airport for airport in AIRPORTS if airport != target]
        return sum([(await self._connections[other.code].query_queue(queue)).message_count for other in others])

    async def forwarded(self) -> dict[tuple[str, str], int]:
        """Messages that each node passed to each other one since its start, and were taken there."""
        found: dict[tuple[str, str], int] = {}
        for origin in AIRPORTS:
            for target in AIRPORTS:
                if origin != target:
                    resource = f"queue.{self._forwarding[target.code]}"
                    count = await self._attribute(origin, resource, "MessagesAcknowledged")
                    found[origin.code, target.code] = count
        return found

    async def messages(self, *queues: str) -> int:
        """How many wait in the named queues, all nodes together."""
        return sum(
            [
                (await connection.query_queue(queue)).message_count
                for connection in self._connections.values()
                for queue in queues
            ]
        )

    async def _attribute(self, airport: Airport, resource: str, attribute: str) -> int:
        """A number from the node's management, asked by message as in Artemis."""
        connection = self._connections[airport.code]
        replies = f"operator.{airport.code}"
        await connection.create_queue(replies, routing="anycast", temporary=True, ignore_existing=True)
        consumer = await connection.consumer(replies, ack="auto")
        try:
            producer = await connection.producer(MANAGEMENT)
            properties = {"_AMQ_ResourceName": resource, "_AMQ_Attribute": attribute}
            await producer.send(Message(properties=properties, reply_to=replies, durable=False))
            reply = await consumer.receive(ANSWER_S)
            if reply is None or reply.properties.get("_AMQ_OperationSucceeded") is False:
                raise LookupError(f"{airport.code}: {resource} {attribute}: {reply and reply.text}")
            return int(json.loads(reply.text or "[]")[0])
        finally:
            await consumer.close()
            await connection.delete_queue(replies)
