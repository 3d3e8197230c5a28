"""Wildcard matching of addresses against the matches of settings and permissions.

Follows Artemis' Match and HierarchicalObjectRepository (core/settings/impl): the delimiter separates words, `*`
stands for one or more characters of one word, `#` (only at the end) for any number of further words.
"""

from __future__ import annotations

from dataclasses import dataclass

from atalanta.kernel.option import option


@dataclass
class WildcardConfiguration:
    """The characters of address wildcards (`<wildcard-addresses>`)."""

    routing_enabled: bool = option(
        True,
        "routing-enabled",
        "queues of a wildcard address receive what is sent to addresses that match",
        also=("enabled",),
    )
    delimiter: str = option(".", "delimiter", "parts the words of an address")
    any_words: str = option("#", "any-words", "stands for any further words, none included")
    single_word: str = option("*", "single-word", "stands for one word")

    def is_wild(self, match: str) -> bool:
        return self.any_words in match or self.single_word in match


def verify_match(match: str, wildcard: WildcardConfiguration) -> None:
    """Checks a match: ValueError if `match` is empty or has `#` anywhere but at its end."""
    if not match:
        raise ValueError("a match must not be empty")
    position = match.find(wildcard.any_words)
    if position >= 0 and position < len(match) - len(wildcard.any_words):
        raise ValueError(f"'{wildcard.any_words}' can only stand at the end of a match: '{match}'")


class WildcardMatch:
    """A compiled match. The time of `matches` is linear in the address for words without inner wildcards."""

    def __init__(self, text: str, wildcard: WildcardConfiguration) -> None:
        verify_match(text, wildcard)
        self.text = text
        self.delimiter = wildcard.delimiter
        self.single_word = wildcard.single_word
        self.everything: bool = text == wildcard.any_words
        self.open_ended: bool = text.endswith(wildcard.any_words)
        closed = text
        if self.open_ended:
            closed = closed[: -len(wildcard.any_words)]
            if closed.endswith(wildcard.delimiter):
                closed = closed[: -len(wildcard.delimiter)]
        self.words: list[str] = closed.split(wildcard.delimiter)
        self.order: tuple[int, int, tuple[int, ...], int] = _order(text, wildcard)

    def matches(self, address: str) -> bool:
        if self.everything:
            return True
        words = address.split(self.delimiter)
        count = len(self.words)
        if len(words) < count or (len(words) > count and not self.open_ended):
            return False
        if len(words) == count + 1 and not words[count]:
            return False  # a delimiter at the end begins no further word
        for i in range(count):
            if not _word_matches(self.words[i], words[i], self.single_word):
                return False
        return True


def _word_matches(pattern: str, word: str, single_word: str) -> bool:
    """Returns True if the pattern matches the word.

    `pattern` may have the single-word wildcard anywhere; each stands for at least one character of `word`.
    """
    if single_word not in pattern:
        return pattern == word
    if pattern == single_word:
        return len(word) > 0
    pieces = pattern.split(single_word)
    if not word.startswith(pieces[0]):
        return False
    at = len(pieces[0])
    last = len(pieces) - 1
    for i in range(1, last):
        found = word.find(pieces[i], at + 1)
        if found < 0:
            return False
        at = found + len(pieces[i])
    tail = pieces[last]
    return word.endswith(tail) and len(word) - len(tail) >= at + 1


def _order(text: str, wildcard: WildcardConfiguration) -> tuple[int, int, tuple[int, ...], int]:
    """Returns the sort key, most specific first, in the order of Artemis' MatchComparator.

    Matches without `#` come before those with it; among those with `#` the longer comes first. Then those without `*`
    come before those with it; then an earlier literal word before a `*`; then the shorter.
    """
    if wildcard.any_words in text:
        return (2, -len(text), (), 0)
    if wildcard.single_word not in text:
        return (0, 0, (), len(text))
    stars: list[int] = []
    for word in text.split(wildcard.delimiter):
        stars.append(1 if word == wildcard.single_word else 0)
    return (1, 0, tuple(stars), len(text))
