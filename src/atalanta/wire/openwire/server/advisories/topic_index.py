"""The consumers of advisories by their topics, so that an advisory looks at those only that it may be for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.server.advisories.watcher import DELIMITER, WILDCARDS

if TYPE_CHECKING:
    from atalanta.wire.openwire.server.advisories.watcher import Watcher

WORDS: Final = 5  # ActiveMQ, Advisory, Consumer, Queue, and the first of a name


class TopicIndex:
    """The watchers by the names of their topics, and those with wildcards by the words before the first wildcard."""

    def __init__(self) -> None:
        self.by_topic: dict[str, dict[int, Watcher]] = {}
        self.by_words: dict[str, dict[int, Watcher]] = {}

    def add(self, watcher: Watcher) -> None:
        """Adds a watcher, whose number is its key."""
        for topic in watcher.topics:
            self.by_topic.setdefault(topic, {})[watcher.number] = watcher
        for pattern in watcher.patterns:
            self.by_words.setdefault(first_words(pattern), {})[watcher.number] = watcher

    def remove(self, watcher: Watcher) -> None:
        """Removes what `add` has added."""
        for topic in watcher.topics:
            _take_out(self.by_topic, topic, watcher.number)
        for pattern in watcher.patterns:
            _take_out(self.by_words, first_words(pattern), watcher.number)

    def find(self, topic: str) -> list[Watcher]:
        """Returns the watchers of a topic, each once."""
        exact = self.by_topic.get(topic, {})
        if not self.by_words:
            return list(exact.values())
        found = dict(exact)
        words = topic.split(DELIMITER, WORDS)[:WORDS]
        for count in range(1, len(words) + 1):
            for number, watcher in self.by_words.get(DELIMITER.join(words[:count]), {}).items():
                if number not in found and watcher.watches(topic):
                    found[number] = watcher
        return list(found.values())


def first_words(pattern: str) -> str:
    """Returns the words before the first wildcard, at most as many as the index has."""
    found: list[str] = []
    for word in pattern.split(DELIMITER):
        if word in WILDCARDS or len(found) == WORDS:
            break
        found.append(word)
    return DELIMITER.join(found)


def _take_out(table: dict[str, dict[int, Watcher]], key: str, number: int) -> None:
    entries = table.get(key)
    if entries is not None and entries.pop(number, None) is not None and not entries:
        del table[key]
