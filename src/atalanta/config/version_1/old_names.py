"""Names of Artemis 1.x in a broker.xml: `jms.queue.` and `jms.topic.` before the names of queues and topics.

In version 1 a JMS queue `orders` had the address `jms.queue.orders`, and so it was written in matches, diverts and
`<address>` of cluster connections. Since version 2 the address is `orders`, and such a name means another one.
Source: Artemis' migration guide, "Address Naming"; JMSServerManagerImpl of 1.x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from atalanta.config.xml.tree import XmlElement, below

JMS: Final = "jms"
QUEUE: Final = "jms.queue."
TOPIC: Final = "jms.topic."
ANY_WORDS: Final = "#"
EVERY_KIND: Final = "jms.*."
# Sections that name no address of version 1: URLs, and declared addresses, whose names are taken as they are.
OTHER_SECTIONS: Final = ("acceptors", "connectors", "addresses", "queues")
# Elements whose `<address>` is a list of prefixes.
PREFIXED: Final = ("cluster-connections", "grouping-handler")
REMOTE: Final = "forwarding-address"  # of a bridge: an address of another node, which may be of version 1


@dataclass(frozen=True)
class OldName:
    """A name of version 1, in an attribute of `element`, or in its text (`attribute` is "").

    `new` is what means the same today; "" means everything: the element is then left out.
    """

    element: XmlElement
    attribute: str
    old: str
    new: str

    def __str__(self) -> str:
        tag = self.element.name
        what = f'{self.attribute}="{self.new}"' if self.attribute else f"<{tag}>{self.new}</{tag}>"
        remedy = f"write {what}" if self.new else f"leave <{tag}> out"
        return (
            f"{self.element.file}:{self.element.line}: '{self.old}' is a name of version 1, where the addresses of JMS"
            f" began with {QUEUE} and {TOPIC}: now they are the names alone; {remedy}, or `atalanta convert` the file"
        )


def is_version_1(root: XmlElement) -> bool:
    """Returns whether the file has queues of version 1, or names of it."""
    return any(root.all(JMS)) or bool(old_names(root))


def old_names(root: XmlElement) -> list[OldName]:
    """Returns the names of version 1 in a broker.xml; none where addresses are declared that begin with `jms.`."""
    found: list[OldName] = []
    for core in cores(root):
        if not any(_declared(core)):
            found.extend(_names(core))
    return found


def cores(root: XmlElement) -> list[XmlElement]:
    """Returns the `<core>` of a broker.xml, which may be the root."""
    return [root] if root.name == "core" else list(root.all("core"))


def new_name(old: str) -> str | None:
    """Returns the name without what version 1 had before it; None for another name."""
    for before in (QUEUE, TOPIC, EVERY_KIND):
        if old.startswith(before) and old != before:
            return old.removeprefix(before)
    return ANY_WORDS if old == f"{JMS}.{ANY_WORDS}" else None


def _declared(core: XmlElement) -> Iterator[bool]:
    """Iterates over the declared addresses: whether their names begin as those of version 1."""
    for section in core.children:
        if section.name in ("addresses", "queues"):
            for element in below(section):
                text = element.text if element.name == "address" else ""
                yield (text or element.attributes.get("name", "")).strip().startswith((QUEUE, TOPIC))


def _names(core: XmlElement) -> Iterator[OldName]:
    for section in core.children:
        if section.name in OTHER_SECTIONS:
            continue
        for element in below(section):
            match = element.attributes.get("match", "")
            renamed = new_name(match)
            if renamed is not None:
                yield OldName(element, "match", match, renamed)
            text = element.text.strip()
            if section.name in PREFIXED and element.name == "address":
                prefixes = _prefixes(text)
                if prefixes is not None:
                    yield OldName(element, "", text, prefixes)
            elif section.name != "bridges" or element.name != REMOTE:
                renamed = new_name(text)
                if renamed is not None:
                    yield OldName(element, "", text, renamed)


def _prefixes(text: str) -> str | None:
    """Returns the list of prefixes with today's names, None if it has none of version 1."""
    old = [each.strip() for each in text.split(",") if each.strip()]
    new = [_prefix(each) for each in old]
    if new == old:
        return None
    kept = [each for each in new if each.startswith("!")] if "" in new else new
    return ",".join(kept)


def _prefix(old: str) -> str:
    """Returns a prefix without what version 1 had before it; "" for all addresses. An excluded one begins with `!`."""
    mark = "!" if old.startswith("!") else ""
    name = old.removeprefix("!")
    for before in (QUEUE, TOPIC):
        name = name.removeprefix(before)
    if name in (JMS, f"{JMS}.", QUEUE.rstrip("."), TOPIC.rstrip("."), "") and not mark:
        return ""
    return mark + name
