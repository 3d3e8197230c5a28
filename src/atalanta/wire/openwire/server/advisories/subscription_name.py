"""Names of queues of durable subscriptions (ActiveMQDestination.createQueueNameForSubscription of Artemis)."""

from __future__ import annotations


def durable_name(client_id: str, subscription: str) -> str:
    """Returns the name of the queue of a durable subscription."""
    return f"{_escaped(client_id)}.{_escaped(subscription)}"


def subscription_parts(queue: str) -> tuple[str, str]:
    """Returns the client id and the name of the subscription; the client id is "" if the queue has another name."""
    position = 0
    while position < len(queue):
        if queue[position] == "\\":
            position += 1
        elif queue[position] == ".":
            return _plain(queue[:position]), _plain(queue[position + 1 :])
        position += 1
    return "", queue


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(".", "\\.")


def _plain(text: str) -> str:
    """Returns a text without its escapes."""
    found: list[str] = []
    escaped = False
    for character in text:
        if character == "\\" and not escaped:
            escaped = True
            continue
        found.append(character)
        escaped = False
    return "".join(found)
