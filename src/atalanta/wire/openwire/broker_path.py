"""The brokers of a network that a message has passed: a property of the message, as Artemis writes it.

A bridge adds the broker that it takes a message from (DemandForwardingBridgeSupport.appendToBrokerPath of Classic), so
the path has no broker on its first one, and one for each bridge.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.message.internal_headers import BROKER_PATH
from atalanta.wire.openwire.commands.identifiers import BrokerId

__all__ = ["BROKER_PATH", "broker_text", "longer_path", "path_of", "path_text"]

SEPARATOR: Final = ","
BROKERS_MAX: Final = 1_000
ID_CHARACTERS_MAX: Final = 1_000


def path_text(path: list[BrokerId]) -> str:
    """Returns the path as one text. BrokerError: it is too long, or one of its ids cannot be written in it."""
    if len(path) > BROKERS_MAX:
        raise BrokerError(ILLEGAL_STATE, f"a message has passed {len(path)} brokers; {BROKERS_MAX} are the most")
    return SEPARATOR.join([broker_text(broker) for broker in path])


def broker_text(passed: BrokerId) -> str:
    """Returns the id of a broker. BrokerError: it is empty, too long or has a comma."""
    value = passed.value or ""
    if not value or len(value) > ID_CHARACTERS_MAX or SEPARATOR in value:
        raise BrokerError(
            ILLEGAL_STATE,
            f"broker id {value[:100]!r}: give that broker an id of 1 to {ID_CHARACTERS_MAX} characters without commas",
        )
    return value


def path_of(text: object) -> list[BrokerId] | None:
    """Returns the path of such a text; None for a message that has passed no bridge."""
    if not isinstance(text, str) or not text:
        return None
    return [BrokerId(value) for value in text.split(SEPARATOR, BROKERS_MAX)]


def longer_path(path: list[BrokerId] | None, passed: BrokerId) -> list[BrokerId]:
    """Returns the path with one more broker at its end."""
    return [passed] if path is None else [*path, passed]
