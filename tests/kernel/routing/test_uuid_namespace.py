"""uuid-namespace: settings and permissions of addresses that a UUID names."""

from __future__ import annotations

from atalanta.kernel.routing.uuid_namespace import is_uuid
from atalanta.kernel.security.security import Identity, Security
from atalanta.kernel.settings.repository import AddressSettingsRepository

TEMPORARY = "0b8d4a5e-c5a1-11f0-9d3e-0242ac110002"


def test_what_a_uuid_is() -> None:
    assert is_uuid(TEMPORARY)
    assert not is_uuid(TEMPORARY.upper())
    assert not is_uuid(TEMPORARY[:-1])
    assert not is_uuid(TEMPORARY.replace("-", "0"))


def test_settings_of_the_namespace() -> None:
    settings = AddressSettingsRepository(uuid_namespace="temp")
    settings.add("#", {"max_size_messages": 1})
    settings.add("temp.#", {"max_size_messages": 2})
    assert settings.match(TEMPORARY).max_size_messages == 2
    assert settings.match(f"{TEMPORARY}::{TEMPORARY}").max_size_messages == 2
    assert settings.match("orders").max_size_messages == 1
    plain = AddressSettingsRepository()
    plain.add("temp.#", {"max_size_messages": 2})
    assert plain.match(TEMPORARY).max_size_messages != 2


def test_permissions_of_the_namespace() -> None:
    security = Security(uuid_namespace="temp")
    security.add_rule("temp.#", {"consume": ["guests"]})
    guest = Identity("g", ("guests",), False)
    assert security.allowed(guest, "consume", TEMPORARY)
    assert security.allowed(guest, "consume", f"{TEMPORARY}::{TEMPORARY}")
    assert not security.allowed(guest, "consume", "orders")
