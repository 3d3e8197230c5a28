"""Wildcard addresses: a queue bound to `news.#` receives messages to `news.eu.today` (WildcardAddressManager).

The wildcard addresses that match an address are computed when either is created or recovered, and stored in the
address, so that a message only reads that list. It has each of them once, and none of them has a list itself.
Wildcards match whole words (unlike those of settings): `*` one word, `#` any number of words, at any position. A
wildcard address never receives messages sent to another wildcard address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.wildcard import WildcardConfiguration


class AddressPattern:
    """The words of one wildcard address. `literals`: those that every matching address has."""

    def __init__(self, text: str, wildcard: WildcardConfiguration) -> None:
        self.delimiter = wildcard.delimiter
        self.any_words = wildcard.any_words
        self.single_word = wildcard.single_word
        self.words: list[str] = text.split(wildcard.delimiter)
        self.literals: list[str] = [
            word for word in dict.fromkeys(self.words) if word not in ("", self.any_words, self.single_word)
        ]

    def matches(self, address: str) -> bool:
        """Returns True if the address matches, in time linear in words of address times words of pattern."""
        for literal in self.literals:
            if literal not in address:
                return False  # most patterns: much faster than by words
        # reached[i]: the first i words of the pattern match the words of the address seen so far.
        reached = [True]
        for i in range(len(self.words)):
            reached.append(reached[i] and self.words[i] == self.any_words)
        for word in address.split(self.delimiter):
            following = [False]
            for i in range(len(self.words)):
                expected = self.words[i]
                if expected == self.any_words:
                    following.append(following[i] or reached[i + 1])
                else:
                    fits = expected == self.single_word or expected == word
                    following.append(fits and reached[i])
            reached = following
        return reached[len(self.words)]


def is_wildcard(name: str, wildcard: WildcardConfiguration) -> bool:
    """Returns True if one whole word is a wildcard and wildcard routing is enabled."""
    if not wildcard.routing_enabled:
        return False
    for word in name.split(wildcard.delimiter):
        if word == wildcard.any_words or word == wildcard.single_word:
            return True
    return False


class KnownPattern:
    """A wildcard address. `key` is a literal word under which it is found, "" if it has none."""

    def __init__(self, number: int, key: str, pattern: AddressPattern, address: Address) -> None:
        self.number = number
        self.key = key
        self.pattern = pattern
        self.address = address


class WildcardAddresses:
    """Maintains `Address.wildcards`. `hidden` names match no wildcard (management, store-and-forward).

    Clients create wildcard addresses: what an address does not match is not looked at one by one, `by_word` has the
    patterns with one of its words.
    """

    def __init__(self, wildcard: WildcardConfiguration, hidden: list[str], prefix: str) -> None:
        self.wildcard = wildcard
        self.hidden = hidden
        self.prefix = prefix
        self.known: dict[str, KnownPattern] = {}
        self.by_word: dict[str, dict[str, KnownPattern]] = {}
        self.last_number: int = 0

    def pattern(self, name: str) -> AddressPattern | None:
        """Returns the pattern of a wildcard address, None for an ordinary address."""
        return AddressPattern(name, self.wildcard) if is_wildcard(name, self.wildcard) else None

    def enter(self, address: Address, others: dict[str, Address]) -> None:
        """Links a new address with matching ones; `others` are all addresses of the broker."""
        pattern = self.pattern(address.name)
        if pattern is None:
            self.join(address)
            return
        self._add(pattern, address)
        for other in others.values():
            if self.receives(pattern, other.name):
                other.set_wildcards([*(other.wildcards or []), address])

    def enter_all(self, addresses: list[Address]) -> None:
        """Links new addresses with each other: as `enter` for each, without comparing each with each."""
        ordinary: list[Address] = []
        for address in addresses:
            pattern = self.pattern(address.name)
            if pattern is None:
                ordinary.append(address)
            else:
                self._add(pattern, address)
        for address in ordinary:
            self.join(address)

    def _add(self, pattern: AddressPattern, address: Address) -> None:
        """Adds a pattern, by that of its words which the fewest others have."""
        self.last_number += 1
        key = ""
        fewest = -1
        for word in pattern.literals:
            size = len(self.by_word.get(word, {}))
            if fewest < 0 or size < fewest:
                key, fewest = word, size
        known = KnownPattern(self.last_number, key, pattern, address)
        self.known[address.name] = known
        self.by_word.setdefault(key, {})[address.name] = known

    def leave(self, address: Address, others: dict[str, Address]) -> None:
        """Unlinks a deleted address."""
        known = self.known.pop(address.name, None)
        if known is None:
            return
        entries = self.by_word[known.key]
        del entries[address.name]
        if not entries:
            del self.by_word[known.key]
        for other in others.values():
            if other.wildcards is not None and address in other.wildcards:
                left = [kept for kept in other.wildcards if kept is not address]
                other.set_wildcards(left if left else None)

    def join(self, address: Address) -> None:
        """Links an address that is no wildcard with the wildcard addresses that match it."""
        found = self.matching(address.name)
        address.set_wildcards(found if found else None)

    def matching(self, name: str) -> list[Address]:
        """Returns the wildcard addresses whose queues receive the messages to an address of that name."""
        if not self.known:
            return []
        found: list[KnownPattern] = []
        for word in dict.fromkeys(["", *name.split(self.wildcard.delimiter)]):
            for known in self.by_word.get(word, {}).values():
                if self.receives(known.pattern, name):
                    found.append(known)
        return [known.address for known in sorted(found, key=_number)]

    def receives(self, pattern: AddressPattern, name: str) -> bool:
        """Returns True if the queues of that wildcard address receive the messages to an address of that name.

        The name is asked, and not `known`: others may be entered after this one.
        """
        return pattern.matches(name) and not self.hides(name) and not is_wildcard(name, self.wildcard)

    def hides(self, name: str) -> bool:
        """Returns True if no wildcard matches that name."""
        return name in self.hidden or name.startswith(self.prefix)


def _number(known: KnownPattern) -> int:
    return known.number
