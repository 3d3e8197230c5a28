"""Matches of address settings and permissions of version 1, which could differ for queues and topics.

`jms.queue.#` and `jms.topic.#` are both `#` today. Where they say different things, each queue and topic of the file
gets a match of its own, with what version 1 gave it, and the common match keeps what both say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from atalanta.config.version_1.old_names import QUEUE, TOPIC, new_name
from atalanta.config.xml.tree import XmlElement
from atalanta.kernel.routing.wildcard import WildcardConfiguration, WildcardMatch

WILDCARD: Final = WildcardConfiguration()
MATCH: Final = "match"
PERMISSION: Final = "permission"
# The names of the file's queues by QUEUE, of its topics by TOPIC.
KindNames: TypeAlias = dict[str, list[str]]


class Entry:
    """A match of the file: `old` as it was, `new` as it is today."""

    def __init__(self, element: XmlElement) -> None:
        self.element = element
        self.old = element.attributes.get(MATCH, "")
        renamed = new_name(self.old)
        self.new = self.old if renamed is None else renamed
        self.pattern = WildcardMatch(self.old, WILDCARD)

    def may_match(self, kind: str) -> bool:
        """Returns whether it may concern addresses of that kind."""
        return self.old.startswith(kind) or not self.old.startswith((QUEUE, TOPIC))


def settle_matches(section: XmlElement, names: KindNames) -> list[str]:
    """Writes today's matches into the section. Returns lines for people where queues and topics had different ones."""
    entries: list[Entry] = []
    for element in section.children:
        try:
            entries.append(Entry(element))
        except ValueError:  # the reader of the result names a match that cannot be
            return []
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.new, []).append(entry)
    settled: dict[str, XmlElement] = {}
    differing: list[str] = []
    for new, group in groups.items():
        first = group[0].element
        of_queues, of_topics = (_effective(section, [e for e in group if e.may_match(kind)]) for kind in (QUEUE, TOPIC))
        if len(group) == 1:
            settled[new] = _with(first, new, first.children)
        elif _keys(of_queues) == _keys(of_topics):
            settled[new] = _with(first, new, of_queues)
        else:
            settled[new] = _with(first, new, _common(of_queues, of_topics))
            differing.append(new)
    for new in differing:
        pattern = WildcardMatch(new, WILDCARD)
        for kind, name in [(TOPIC, each) for each in names[TOPIC]] + [(QUEUE, each) for each in names[QUEUE]]:
            if pattern.matches(name):
                own = [each for each in entries if each.may_match(kind) and each.pattern.matches(f"{kind}{name}")]
                settled[name] = _with(groups[new][0].element, name, _effective(section, own))
    section.children = list(settled.values())
    both = sorted(set(names[QUEUE]) & set(names[TOPIC]))
    return [_told(groups[new][0].element, section.name, new, both) for new in differing]


def _told(first: XmlElement, section: str, new: str, both: list[str]) -> str:
    text = (
        f"{first.file}:{first.line}: {section} of queues and topics differ for '{new}': each queue and topic of <jms>"
        " has its own match now, and any other address has what both say"
    )
    return f"{text}; {', '.join(both)}: a queue and a topic, now one address: the queue's count" if both else text


def _effective(section: XmlElement, entries: list[Entry]) -> list[XmlElement]:
    """Returns what version 1 gave to an address that all `entries` match: settings are merged, permissions are not."""
    entries = sorted(entries, key=lambda each: each.pattern.order)
    if section.name == "security-settings":
        return entries[0].element.children if entries else []
    found: dict[str, XmlElement] = {}
    for entry in reversed(entries):
        found.update({child.name: child for child in entry.element.children})
    return list(found.values())


def _common(one: list[XmlElement], other: list[XmlElement]) -> list[XmlElement]:
    """Returns what is in both; of permissions of the same type the roles that are in both."""
    known = {_key(each) for each in other}
    roles = {each.attributes.get("type"): _roles(each) for each in other if each.name == PERMISSION}
    found: list[XmlElement] = []
    for child in one:
        if child.name == PERMISSION:
            shared = [each for each in _roles(child) if each in roles.get(child.attributes.get("type"), ())]
            attributes = {**child.attributes, "roles": ",".join(shared)}
            found.append(XmlElement(child.name, child.namespace, child.file, child.line, attributes))
        elif _key(child) in known:
            found.append(child)
    return found


def _roles(permission: XmlElement) -> list[str]:
    return [each.strip() for each in permission.attributes.get("roles", "").split(",") if each.strip()]


def _with(like: XmlElement, match: str, children: Iterable[XmlElement]) -> XmlElement:
    """Creates an element like that one, with another match and other children."""
    attributes = {**like.attributes, MATCH: match}
    return XmlElement(like.name, like.namespace, like.file, like.line, attributes, "", list(children))


def _keys(elements: list[XmlElement]) -> set[object]:
    return {_key(each) for each in elements}


def _key(element: XmlElement) -> object:
    """Returns what an element says, without its place."""
    inside = tuple(_key(each) for each in element.children)
    return (element.name, element.text.strip(), tuple(sorted(element.attributes.items())), inside)
