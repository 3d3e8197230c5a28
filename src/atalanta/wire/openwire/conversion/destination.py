"""Destinations of OpenWire as addresses and queues of the broker (B.5 of AMQSession in Artemis, and Classic's rules).

A queue is an anycast address with a queue of its name. A composite name has parts with commas between them. `*` and `>`
are wildcards. A queue of a virtual topic (kernel/routing/virtual_topics.py) is a durable one of the topic's address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.wildcard import WildcardConfiguration
from atalanta.kernel.security.resource_limits import check_name
from atalanta.message.fqqn import join_fqqn
from atalanta.message.message_writer import encoded_address, encoded_property
from atalanta.message.properties import Byte
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTempTopic,
    ActiveMQTopic,
)

if TYPE_CHECKING:
    from atalanta.kernel.routing.virtual_topics import VirtualTopics

# As clients of ActiveMQ write wildcards, whatever the broker's own are.
CLASSIC_WILDCARDS: Final = WildcardConfiguration(delimiter=".", any_words=">", single_word="*")
ADVISORY_PREFIX: Final = "ActiveMQ.Advisory."
ROUTING_TYPE: Final = "_AMQ_ROUTING_TYPE"
PARTS_MAX: Final = 100  # of a composite name
# ActiveMQDestination: how destinations are written as text, in JMSReplyTo and in composite names.
QUEUE_TEXT: Final = "queue://"
TOPIC_TEXT: Final = "topic://"
TEMP_QUEUE_TEXT: Final = "temp-queue://"
TEMP_TOPIC_TEXT: Final = "temp-topic://"
# Names of temporary destinations, which clients make of their connection's id.
TEMPORARY_NAME: Final = "ID:"


class BrokerDestination:
    """A destination in the broker. `queue` is that part of a fully qualified name, or "".

    `temporary`: it ends with the connection that created it. `again`: a part of a composite destination before it has
    the same address, as in `queue://a,topic://a`. `virtual`: its queue is one of a virtual topic; `selector_aware`: one
    that takes only what its consumers select. `encoded` is its name, `encoded_routing_type` its routing
    type, both as headers of messages have them.
    """

    def __init__(self, address: str, routing_type: int, temporary: bool = False, queue: str = "") -> None:
        self.address = address
        self.routing_type = routing_type
        self.temporary = temporary
        self.queue = queue
        self.again: bool = False
        self.virtual: bool = False
        self.selector_aware: bool = False
        self._name = join_fqqn(address, queue) if queue else address
        self.encoded = encoded_address(self._name)
        self.encoded_routing_type = encoded_property(ROUTING_TYPE, Byte(routing_type))

    def name(self) -> str:
        """Returns the address, or the fully qualified name of its queue."""
        return self._name


class Route:
    """The targets of the messages for a destination: several if it is composite."""

    def __init__(self, destination: ActiveMQDestination, targets: list[BrokerDestination]) -> None:
        self.destination = destination
        self.targets = targets


def is_queue(destination: ActiveMQDestination) -> bool:
    """Returns True for a queue, also a temporary one."""
    return destination.code() in (codes.QUEUE, codes.TEMP_QUEUE)


def is_temporary(destination: ActiveMQDestination) -> bool:
    return destination.code() in (codes.TEMP_QUEUE, codes.TEMP_TOPIC)


def name_of(destination: ActiveMQDestination | None) -> str:
    """Returns the physical name. BrokerError without one."""
    name = None if destination is None else destination.physical_name
    if not name:
        raise BrokerError(ADDRESS_DOES_NOT_EXIST, "the command names no destination")
    return name


def of_kind(code: int, name: str) -> ActiveMQDestination:
    """Returns the destination of that type on the wire."""
    if code == codes.QUEUE:
        return ActiveMQQueue(name)
    if code == codes.TOPIC:
        return ActiveMQTopic(name)
    return ActiveMQTempQueue(name) if code == codes.TEMP_QUEUE else ActiveMQTempTopic(name)


def parts_of(destination: ActiveMQDestination) -> list[ActiveMQDestination]:
    """Returns the parts of a composite destination, or the destination itself. BrokerError for an empty part.

    A part that is named twice counts once, as in Classic.
    """
    name = name_of(destination)
    if "," not in name:
        return [destination]
    found: list[ActiveMQDestination] = []
    for part in name.split(","):
        text = part.strip()
        made = of_text(text)
        each = of_kind(destination.code(), text) if made is None else made
        name_of(each)
        if each not in found:
            found.append(each)
        if len(found) > PARTS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"a composite destination has at most {PARTS_MAX} parts")
    return found


def consumed_parts(destination: ActiveMQDestination) -> list[ActiveMQDestination]:
    """Returns the parts that a consumer needs: those without the topics that another of its topics includes.

    A consumer gets a message once, as in Classic, and here each of its topics has a queue of its own.
    """
    parts = parts_of(destination)
    if len(parts) == 1:
        return parts
    wide = [name_of(part).split(".") for part in parts if part.code() == codes.TOPIC and has_wildcard(name_of(part))]
    found: list[ActiveMQDestination] = []
    for part in parts:
        words = name_of(part).split(".")
        if part.code() != codes.TOPIC or not any([includes(each, words) for each in wide]):
            found.append(part)
    return found


def includes(wide: list[str], topic: list[str]) -> bool:
    """Returns True if the words of `wide` match each name that those of another topic match. `>` is the last one."""
    if wide == topic:
        return False
    for place, word in enumerate(wide):
        if word == ">":
            return place == len(wide) - 1
        if place == len(topic) or topic[place] == ">" or word not in ("*", topic[place]):
            return False
    return len(wide) == len(topic)


def of_text(text: str) -> ActiveMQDestination | None:
    """Returns the destination that a text with `queue://`, `topic://` or another prefix names; None without one."""
    if text.startswith(QUEUE_TEXT):
        return ActiveMQQueue(text[len(QUEUE_TEXT) :])
    if text.startswith(TOPIC_TEXT):
        return ActiveMQTopic(text[len(TOPIC_TEXT) :])
    if text.startswith(TEMP_QUEUE_TEXT):
        return ActiveMQTempQueue(text[len(TEMP_QUEUE_TEXT) :])
    if text.startswith(TEMP_TOPIC_TEXT):
        return ActiveMQTempTopic(text[len(TEMP_TOPIC_TEXT) :])
    return None


def text_of_destination(destination: ActiveMQDestination) -> str:
    """Returns a destination as JMS clients write it as text."""
    name = destination.physical_name or ""
    code = destination.code()
    if code == codes.QUEUE:
        return QUEUE_TEXT + name
    if code == codes.TOPIC:
        return TOPIC_TEXT + name
    return (TEMP_QUEUE_TEXT if code == codes.TEMP_QUEUE else TEMP_TOPIC_TEXT) + name


def has_wildcard(name: str) -> bool:
    """Returns True if a whole word is `*` or `>`."""
    return ("*" in name or ">" in name) and any(word in ("*", ">") for word in name.split("."))


def wildcard_name(name: str, wildcard: WildcardConfiguration) -> str:
    """Returns a name with wildcards as the broker's own configuration writes it."""
    words = {">": wildcard.any_words, "*": wildcard.single_word}
    return wildcard.delimiter.join(words.get(word, word) for word in name.split("."))


def classic_name(name: str, wildcard: WildcardConfiguration) -> str:
    """Returns a name of the broker as OpenWire clients write it."""
    words = {wildcard.any_words: CLASSIC_WILDCARDS.any_words, wildcard.single_word: CLASSIC_WILDCARDS.single_word}
    return CLASSIC_WILDCARDS.delimiter.join(words.get(word, word) for word in name.split(wildcard.delimiter))


def is_advisory(destination: ActiveMQDestination) -> bool:
    return (destination.physical_name or "").startswith(ADVISORY_PREFIX)


def names_advisories(destination: ActiveMQDestination) -> bool:
    """Returns True for a destination whose parts are advisory topics. BrokerError: only some of them are."""
    if ADVISORY_PREFIX not in (destination.physical_name or ""):
        return False
    parts = [is_advisory(part) for part in parts_of(destination)]
    if any(parts) and not all(parts):
        why = "a consumer is for advisory topics or for other destinations, not for both: make two consumers"
        raise BrokerError(ILLEGAL_STATE, f"{(destination.physical_name or '')[:200]}: {why}")
    return parts[0]


def target_of(
    destination: ActiveMQDestination, wildcard: WildcardConfiguration, topics: VirtualTopics
) -> BrokerDestination:
    """Returns the address or queue behind one destination that is not composite. BrokerError: its name is too long."""
    name = name_of(destination)
    check_name(name)
    if is_temporary(destination):
        return BrokerDestination(name, ANYCAST if is_queue(destination) else MULTICAST, True)
    address, found, queue = name.partition("::")
    if found:
        if not queue:
            raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"{name}: a full name is ADDRESS::QUEUE")
        return BrokerDestination(address, ANYCAST if is_queue(destination) else MULTICAST, False, queue)
    if is_queue(destination):
        topic = topics.topic_of(name)
        if topic is not None:
            made = BrokerDestination(wildcard_name(topic.name, wildcard), MULTICAST, False, name)
            made.virtual = True
            made.selector_aware = topic.selector_aware
            return made
    if has_wildcard(name):
        address = wildcard_name(name, wildcard)
    return BrokerDestination(address, ANYCAST if is_queue(destination) else MULTICAST)
