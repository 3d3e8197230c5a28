"""Wildcard addresses: a queue bound to `news.#` receives what is sent to `news.eu.today` (WildcardAddressManager).

Which wildcard addresses match an address is found when either comes into being, and kept at the address: a message
looks at that list alone. Wildcards match words as a whole (unlike those of settings): `*` one word, `#` any number of
words, none included, anywhere. A wildcard address never receives what is sent to another wildcard address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.wildcard import WildcardConfiguration


class AddressPattern:
    """The words of one wildcard address."""

    def __init__(self, text: str, wildcard: WildcardConfiguration) -> None:
        self.delimiter = wildcard.delimiter
        self.any_words = wildcard.any_words
        self.single_word = wildcard.single_word
        self.words: list[str] = text.split(wildcard.delimiter)

    def matches(self, address: str) -> bool:
        """Linear in words of the address times words of the pattern, however many `#` it has."""
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
    """A whole word is a wildcard, and routing by wildcards is on."""
    if not wildcard.routing_enabled:
        return False
    for word in name.split(wildcard.delimiter):
        if word == wildcard.any_words or word == wildcard.single_word:
            return True
    return False


class WildcardAddresses:
    """Keeps `Address.wildcards`; `hidden` are the names no wildcard matches (management, store and forward)."""

    def __init__(self, wildcard: WildcardConfiguration, hidden: list[str], prefix: str) -> None:
        self.wildcard = wildcard
        self.hidden = hidden
        self.prefix = prefix
        self.known: dict[str, tuple[AddressPattern, Address]] = {}

    def pattern(self, name: str) -> AddressPattern | None:
        """None for an ordinary address."""
        return AddressPattern(name, self.wildcard) if is_wildcard(name, self.wildcard) else None

    def enter(self, address: Address, others: dict[str, Address]) -> None:
        """A new address; `others` are all the broker has."""
        pattern = self.pattern(address.name)
        if pattern is None:
            self._join(address)
            return
        self.known[address.name] = (pattern, address)
        for other in others.values():
            if other.name not in self.known and not self.hides(other.name):
                if pattern.matches(other.name):
                    other.set_wildcards([*(other.wildcards or []), address])

    def leave(self, address: Address, others: dict[str, Address]) -> None:
        """An address that is gone."""
        if self.known.pop(address.name, None) is None:
            return
        for other in others.values():
            if other.wildcards is not None and address in other.wildcards:
                left = [kept for kept in other.wildcards if kept is not address]
                other.set_wildcards(left if left else None)

    def _join(self, address: Address) -> None:
        found: list[Address] = []
        if not self.hides(address.name):
            for pattern, wild in self.known.values():
                if pattern.matches(address.name):
                    found.append(wild)
        address.set_wildcards(found if found else None)

    def hides(self, name: str) -> bool:
        """No wildcard matches that name."""
        return name in self.hidden or name.startswith(self.prefix)
