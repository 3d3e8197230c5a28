"""uuid-namespace: the settings of addresses that a UUID names, and the permissions of temporary destinations."""

from __future__ import annotations

from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.kernel.registry.temporary_destinations import TemporaryDestinationRegister
from atalanta.kernel.routing.address import Address
from atalanta.kernel.routing.bindings import ON_DEMAND, RemoteBinding
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


def guarded(addresses: dict[str, Address]) -> tuple[Security, TemporaryDestinationRegister]:
    """The rules of a namespace, where guests may do everything."""
    names = TemporaryDestinationRegister(addresses, AddressSettingsRepository())
    security = Security(uuid_namespace="temp")
    security.temporaries = names
    security.add_rule("temp.#", {"send": ["guests"], "consume": ["guests"]})
    return security, names


def test_permissions_of_the_namespace() -> None:
    security, names = guarded({})
    owner, other = Identity("g", ("guests",), False), Identity("h", ("guests",), False)
    assert not security.allowed(owner, "consume", TEMPORARY)
    names.add(TEMPORARY, "g")
    for address in (TEMPORARY, f"{TEMPORARY}::{TEMPORARY}"):
        assert security.allowed(owner, "consume", address)
        assert security.allowed(other, "send", address)
        assert not security.allowed(other, "consume", address)
        rule = security.rule(address)
        assert rule is not None and rule.match == "temp.#"
    names.remove(TEMPORARY)
    assert not security.allowed(owner, "consume", TEMPORARY)
    assert not security.allowed(other, "send", TEMPORARY)


def test_an_address_whose_name_begins_as_the_namespace() -> None:
    """Artemis' option is only a prefix of names; that of an activemq.xml is of temporary destinations alone."""
    security, _ = guarded({})
    guest = Identity("g", ("guests",), False)
    assert security.allowed(guest, "send", "temp.orders")
    classic = Security(uuid_namespace="ActiveMQ.Temporary")
    classic.add_rule("ActiveMQ.Temporary.#", {"send": ["guests"]})
    assert not classic.allowed(guest, "send", "ActiveMQ.Temporary.orders")
    assert classic.allowed_temporary(guest, "send", "ID:a:1")
    assert not classic.allowed_temporary(guest, "send", "orders")


def test_a_temporary_queue_of_another_member_takes_replies() -> None:
    """Members do not say which queues are temporary: a unique name that only they have decides."""
    addresses = {name: Address(name, True, False, True) for name in (TEMPORARY, "orders")}
    forward = Queue(1, QueueSpec("sf", "sf", ANYCAST), None, "i")
    for number, name in enumerate(addresses):
        addresses[name].add_remote(RemoteBinding(2 + number, name, name, f"{name}node-b", 1, 1, forward, ON_DEMAND))
    security, names = guarded(addresses)
    guest = Identity("g", ("guests",), False)
    assert security.allowed(guest, "send", TEMPORARY)
    assert not security.allowed(guest, "consume", TEMPORARY)
    assert not security.allowed(guest, "send", "orders")
    assert not security.allowed(guest, "send", f"orders.{TEMPORARY}")
    spec = QueueSpec(TEMPORARY, TEMPORARY, ANYCAST)
    spec.set_temporary()
    assert names.is_made_by(spec)  # its client comes here from that member
