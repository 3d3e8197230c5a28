"""The options that another broker's network connector tells: the text of a Java properties file in its BrokerInfo."""

from __future__ import annotations

from typing import Final

from atalanta.wire.openwire.conversion.destination import is_queue, of_text
from atalanta.wire.openwire.options import INT_MAX, INT_MIN
from atalanta.wire.openwire.server.bridge.rules import BridgeNames, BridgeRules, DestinationList
from atalanta.wire.protocol_error import ProtocolError

TEXT_CHARACTERS_MAX: Final = 1 << 16
NUMBER_CHARACTERS_MAX: Final = 10
DESTINATIONS_MAX: Final = 1_000  # of a list: each is compared with what the other broker wants
ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


class NetworkProperties:
    """The options, by their names in Classic. ProtocolError: they are too long."""

    def __init__(self, text: str) -> None:
        if len(text) > TEXT_CHARACTERS_MAX:
            raise ProtocolError(f"networkProperties of {len(text)} characters: {TEXT_CHARACTERS_MAX} are the most")
        self.values: dict[str, str] = {}
        for line in text.splitlines():
            stripped = line.lstrip()
            if stripped and stripped[0] not in "#!":
                key, value = _pair(stripped)
                self.values[key] = value

    def text(self, name: str, otherwise: str = "") -> str:
        return self.values.get(name, otherwise)

    def flag(self, name: str, otherwise: bool) -> bool:
        value = self.values.get(name)
        return otherwise if value is None else value == "true"

    def number(self, name: str, otherwise: int) -> int:
        """Returns a number of 32 bits. ProtocolError: the value is none."""
        value = self.values.get(name)
        if value is None:
            return otherwise
        digits = value[1:] if value.startswith("-") else value
        if not (digits.isascii() and digits.isdigit()) or len(digits) > NUMBER_CHARACTERS_MAX:
            raise ProtocolError(f"networkProperties: {name}={value[:100]} is no number")
        number = int(value)
        if not INT_MIN <= number <= INT_MAX:
            raise ProtocolError(f"networkProperties: {name}={value} is no number of 32 bits")
        return number

    def destinations(self, name: str) -> list[tuple[bool, str]]:
        """Returns a list of destinations, written as `[queue://a, topic://b]`: (True for a queue, name).

        ProtocolError: there are too many.
        """
        found: list[tuple[bool, str]] = []
        for part in self.text(name).strip().removeprefix("[").removesuffix("]").split(","):
            destination = of_text(part.strip())
            if destination is not None:
                found.append((is_queue(destination), (destination.physical_name or "").partition("?")[0]))
        if len(found) > DESTINATIONS_MAX:
            text = f"{len(found)} destinations: {DESTINATIONS_MAX} are the most, take wildcards"
            raise ProtocolError(f"networkProperties: {name} has {text}")
        return found

    def rules(self, local: str, remote: str) -> BridgeRules:
        """Returns the rules of the bridge from the broker `local` to `remote`, which has sent the options."""
        return BridgeRules(
            names=BridgeNames(self.text("name", "NC"), local, remote, self.text("clientIdToken", "_")),
            conduit=self.flag("conduitSubscriptions", True),
            conduit_network_queues=self.flag("conduitNetworkQueueSubscriptions", False),
            dynamic_only=self.flag("dynamicOnly", False),
            lower_priority=self.flag("decreaseNetworkConsumerPriority", True),
            priority_base=self.number("consumerPriorityBase", -5),
            prefetch=max(self.number("prefetchSize", 1_000), 1),
            message_ttl=self.number("messageTTL", 1),
            consumer_ttl=self.number("consumerTTL", 1),
            suppress_queues=self.flag("suppressDuplicateQueueSubscriptions", False),
            suppress_topics=self.flag("suppressDuplicateTopicSubscriptions", True),
            temporary=self.flag("bridgeTempDestinations", True),
            always_sync_send=self.flag("alwaysSyncSend", True),
            compress=self.flag("useCompression", False),
            virtual=self.flag("useVirtualDestSubs", False),
            excluded=DestinationList(self.destinations("excludedDestinations")),
            dynamic=DestinationList(self.destinations("dynamicallyIncludedDestinations")),
            static=DestinationList(self.destinations("staticallyIncludedDestinations")),
        )


def _pair(line: str) -> tuple[str, str]:
    """Returns key and value of a line. The first `=`, `:` or blank that has no backslash parts them."""
    key: list[str] = []
    position = 0
    while position < len(line) and line[position] not in "=: \t":
        character, position = _character(line, position)
        key.append(character)
    rest = line[position:].lstrip()
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip()
    value: list[str] = []
    position = 0
    while position < len(rest):
        character, position = _character(rest, position)
        value.append(character)
    return "".join(key), "".join(value)


def _character(text: str, position: int) -> tuple[str, int]:
    """Returns the character at the position, maybe an escaped one, and the position behind it."""
    if text[position] != "\\" or position + 1 >= len(text):
        return text[position], position + 1
    following = text[position + 1]
    digits = text[position + 2 : position + 6]
    if following == "u" and len(digits) == 4 and all(each in "0123456789abcdefABCDEF" for each in digits):
        return chr(int(digits, 16)), position + 6
    return ESCAPES.get(following, following), position + 2
