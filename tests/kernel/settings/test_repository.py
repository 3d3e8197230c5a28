"""Wildcards, and address settings merged over them."""

from __future__ import annotations

import dataclasses

import pytest

from atalanta.kernel.routing.wildcard import WildcardConfiguration, WildcardMatch
from atalanta.kernel.settings.repository import AddressSettings, AddressSettingsRepository


@pytest.mark.parametrize(
    ("match", "address", "expected"),
    [
        ("#", "", True),
        ("#", "a.b", True),
        ("a.#", "a", True),
        ("a.#", "a.b", True),
        ("a.#", "a.b.c", True),
        ("a.#", "ab", False),
        ("a.#", "a.", False),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.*", "a.", False),
        ("a.*", "a.b.c", False),
        ("a.*.c", "a.b.c", True),
        ("*.b.#", "a.b", True),
        ("*.b.#", "a.c", False),
        ("a*", "abc", True),
        ("a*", "a", False),
        ("a*", "a.b", False),
        ("a*c*e", "abcde", True),
        ("a*c*e", "ace", False),
        ("$sys.#", "$sys.x", True),
        ("a.b", "aXb", False),
        ("a#", "a.b", True),
        ("a#", "ab", False),
    ],
)
def test_wildcards(match: str, address: str, expected: bool) -> None:
    assert WildcardMatch(match, WildcardConfiguration()).matches(address) is expected


def test_other_wildcard_characters() -> None:
    slashes = WildcardConfiguration(delimiter="/", any_words=">", single_word="+")
    assert WildcardMatch("a/+/>", slashes).matches("a/b/c/d")
    assert not WildcardMatch("a/+", slashes).matches("a/b/c")
    assert not WildcardMatch("a.b", slashes).matches("a/b")


@pytest.mark.parametrize("match", ["", "#.a", "a.#.b"])
def test_malformed_matches_are_refused(match: str) -> None:
    with pytest.raises(ValueError):
        AddressSettingsRepository().add(match, {"max_delivery_attempts": 1})


def test_unknown_attributes_are_refused() -> None:
    with pytest.raises(AttributeError):
        AddressSettingsRepository().add("#", {"max_delivery_attempt": 1})


def test_nothing_set_gives_defaults() -> None:
    settings = AddressSettingsRepository().match("anything")
    assert settings == AddressSettings()
    assert settings.redistribution_delay_ms == -1
    assert settings.max_delivery_attempts == 10
    assert settings.dead_letter_address is None
    assert settings.auto_create_queues and settings.auto_delete_addresses
    assert settings.default_consumer_window_size == 1024 * 1024


def test_most_specific_wins_attribute_by_attribute() -> None:
    repository = AddressSettingsRepository()
    repository.add("a.b.c", {"max_delivery_attempts": 1})
    repository.add("a.*.c", {"max_delivery_attempts": 2, "redelivery_delay_ms": 2})
    repository.add("*.b.c", {"redelivery_delay_ms": 3, "id_cache_size": 3})
    repository.add("a.b.#", {"id_cache_size": 4, "expiry_delay_ms": 4})
    repository.add("a.#", {"expiry_delay_ms": 5, "dead_letter_address": "DLQ"})
    repository.add("#", {"dead_letter_address": "general", "expiry_address": "expired"})
    settings = repository.match("a.b.c")
    assert settings.max_delivery_attempts == 1
    assert settings.redelivery_delay_ms == 2  # the star further right is the more specific
    assert settings.id_cache_size == 3  # without '#' before with it
    assert settings.expiry_delay_ms == 4  # the longer one with '#' first
    assert settings.dead_letter_address == "DLQ"
    assert settings.expiry_address == "expired"
    assert settings.max_size_bytes == -1


def test_order_of_adding_does_not_matter() -> None:
    layers: list[tuple[str, int]] = [("a.#", 1), ("#", 2), ("a.b.#", 3), ("a.*", 4), ("a.b", 5)]
    for shift in range(len(layers)):
        repository = AddressSettingsRepository()
        for match, value in layers[shift:] + layers[:shift]:
            repository.add(match, {"max_delivery_attempts": value})
        found = [
            repository.match(name).max_delivery_attempts for name in ("a.b", "a.c", "a.b.c", "x")
        ]
        assert found == [5, 4, 3, 2]


def test_a_value_equal_to_the_default_still_overrides() -> None:
    repository = AddressSettingsRepository()
    repository.add("#", {"auto_create_queues": False, "dead_letter_address": "DLQ"})
    repository.add("a", {"auto_create_queues": True, "dead_letter_address": None})
    assert repository.match("a").auto_create_queues
    assert repository.match("a").dead_letter_address is None
    assert not repository.match("b").auto_create_queues


def test_matches_are_remembered_until_something_changes() -> None:
    repository = AddressSettingsRepository()
    first = repository.match("a.b")
    assert repository.match("a.b") is first
    repository.add("a.#", {"max_delivery_attempts": 3})
    assert repository.match("a.b").max_delivery_attempts == 3
    repository.add("a.#", {"redelivery_delay_ms": 7})  # replaces what a.# said
    assert repository.match("a.b").max_delivery_attempts == 10


def test_fqqn_has_the_settings_of_its_address() -> None:
    repository = AddressSettingsRepository()
    repository.add("a.#", {"max_delivery_attempts": 3})
    assert repository.match("a.b::queue").max_delivery_attempts == 3


def test_literal_markers() -> None:
    repository = AddressSettingsRepository(literal_markers="()")
    repository.add("(a.#)", {"max_delivery_attempts": 3})
    assert repository.match("a.b").max_delivery_attempts == 10
    assert repository.match("a.#").max_delivery_attempts == 3


def test_every_setting_says_its_name_and_reason() -> None:
    names = []
    for field in dataclasses.fields(AddressSettings):
        assert field.metadata["why"]
        names.append(field.metadata["xml"])
        if isinstance(field.default, int) and not isinstance(field.default, bool):
            assert field.metadata["unit"] or field.metadata["choices"] or "threshold" in field.name
    assert len(names) == len(set(names))
