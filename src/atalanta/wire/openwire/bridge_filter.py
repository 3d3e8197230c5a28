"""Which messages and which demand a bridge of a network takes (NetworkBridgeFilter of ActiveMQ Classic).

The rule of messages is a selector of the bridge's consumer, so that queues treat it as any other one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.broker_path import BROKER_PATH, SEPARATOR, broker_text

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.identifiers import BrokerId

ESCAPE: Final = "!"
TTL_MAX: Final = 64  # a higher one is any number: paths are short, and no message returns to a broker of its path


def message_selector(target: BrokerId, message_ttl: int, selector: str | None = None) -> str:
    """Returns the selector of a bridge to the broker `target`.

    It refuses a message that has been there, and one that has passed `message_ttl` bridges (negative, or more than
    TTL_MAX: any number). The number comes from the other broker: the length of the selector must not follow it.
    `selector` is that of the consumers behind the bridge. BrokerError: the id of the broker cannot be in a path.
    """
    if message_ttl == 0:
        return "FALSE"
    passed = [f"{BROKER_PATH} <> {_quoted(broker_text(target))}"]
    name = _pattern(broker_text(target))
    for pattern in (f"{name},%", f"%,{name}", f"%,{name},%"):
        passed.append(f"{BROKER_PATH} NOT LIKE {_quoted(pattern)} ESCAPE '{ESCAPE}'")
    if 1 < message_ttl <= TTL_MAX:
        passed.append(f"{BROKER_PATH} NOT LIKE '{(f'%{SEPARATOR}' * (message_ttl - 1))}%'")
    own = f"{BROKER_PATH} IS NULL"
    if message_ttl != 1:
        own = f"({own} OR ({' AND '.join(passed)}))"
    text = (selector or "").strip()
    return f"({text}) AND {own}" if text else own


def returning_selector(target: BrokerId) -> str:
    """Returns the selector of messages that have been at the broker `target`. BrokerError as above."""
    name = _pattern(broker_text(target))
    passed = [f"{BROKER_PATH} = {_quoted(broker_text(target))}"]
    for pattern in (f"{name},%", f"%,{name}", f"%,{name},%"):
        passed.append(f"{BROKER_PATH} LIKE {_quoted(pattern)} ESCAPE '{ESCAPE}'")
    return " OR ".join(passed)


def takes_demand(path: list[BrokerId] | None, to: BrokerId, consumer_ttl: int) -> bool:
    """Returns True if a consumer that was announced over `path` is demand of the broker `to`.

    It is none if it came from there, or over `consumer_ttl` bridges (negative: any number).
    """
    if path is None:
        return consumer_ttl != 0
    return (consumer_ttl < 0 or len(path) < consumer_ttl) and to not in path


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _pattern(text: str) -> str:
    """Returns a text as the pattern of LIKE that matches it alone."""
    for special in (ESCAPE, "%", "_"):
        text = text.replace(special, ESCAPE + special)
    return text
