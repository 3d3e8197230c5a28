"""The names of clients 1.0 to 1.5 (versions before 129), whose JMS destinations have prefixes.

An acceptor with `anycastPrefix=jms.queue.;multicastPrefix=jms.topic.` removes the prefixes from what such a client
sends. What it receives gets them again, otherwise it would not know its destinations (QueueAbstractPacket,
ServerConsumerImpl.applyPrefixForLegacyConsumer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.message import Message

QUEUE_PREFIX: Final = "jms.queue."
TOPIC_PREFIX: Final = "jms.topic."
TEMPORARY_QUEUE_PREFIX: Final = "jms.tempqueue."
JMS_KEY: Final = "jms-session"  # metadata of the sessions of a JMS client


def routing_type_of(address: str) -> int:
    """Returns the routing type of a queue that such a client creates; it cannot name one."""
    return ANYCAST if address.startswith((QUEUE_PREFIX, TEMPORARY_QUEUE_PREFIX)) else MULTICAST


def with_prefix(name: str, prefix: str) -> str:
    """Returns the name with the prefix before it, once."""
    return name if name.startswith(prefix) else prefix + name


def address_of(name: str, routing_type: int) -> str:
    """Returns the address as such a client writes it."""
    return with_prefix(name, QUEUE_PREFIX if routing_type == ANYCAST else TOPIC_PREFIX)


def queue_names(asked: str, names: list[str]) -> list[str]:
    """Returns the queues of the address `asked` as such a client looks for them."""
    for prefix in (QUEUE_PREFIX, TOPIC_PREFIX):
        if asked.startswith(prefix):
            return [with_prefix(name, prefix) for name in names]
    return names


def addressed(message: Message, queue: Queue) -> Message:
    """Returns the message with the address as such a client knows it: a copy, the message itself is in the queue."""
    name = address_of(message.address, queue.spec.routing_type)
    if name == message.address:
        return message
    twin = message.copy(message.id)
    twin.address = name
    return twin
