"""`retroactive-marked-only`: subscriptions begin with the last message that its sender has marked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from tests.wire.classic_server import ThreeProtocols
from tests.wire.openwire.server.openwire_rig import OpenWireClient, properties, text
from tests.wire.stomp.stomp_rig import door

TOPIC = ActiveMQTopic("prices")
MARK, KEPT = "ActiveMQ.Retain", "ActiveMQ.Retained"


def settings_of(marked: bool = True) -> AddressSettingsRepository:
    settings = AddressSettingsRepository()
    kept: dict[str, SettingValue] = {"retroactive_message_count": 1, "retroactive_on_request": True}
    settings.add("prices", {"retroactive_marked_only": marked, **kept})
    return settings


@pytest.fixture
def server() -> Iterator[ThreeProtocols]:
    made = ThreeProtocols(settings=settings_of(), acceptor=door(classic=True))
    yield made
    validate(made.broker)


def begins_with(server: ThreeProtocols, name: str = "late") -> list[tuple[str | None, dict[str, object]]]:
    """Texts and properties of what a new retroactive subscription begins with."""
    client = server.openwire_client(name)
    client.consume(TOPIC, retroactive=True)
    found = [(text(each), dict(properties(each))) for each in client.dispatches()]
    server.lost(client.conn)
    return found


def send(client: OpenWireClient, body: str, mark: object = None) -> None:
    client.publish(body, TOPIC, properties={} if mark is None else {MARK: mark})


def test_a_subscription_begins_with_the_last_marked_message(server: ThreeProtocols) -> None:
    client = server.openwire_client()
    for body, mark in (("1", True), ("2", True), ("3", False), ("4", None)):
        send(client, body, mark)
    ((first, found),) = begins_with(server)
    assert first == "2" and found[KEPT] is True and MARK not in found


def test_present_subscribers_get_every_message_without_the_mark(server: ThreeProtocols) -> None:
    client, reader = server.openwire_client(), server.openwire_client("r")
    reader.consume(TOPIC)
    send(client, "1", True)
    send(client, "2")
    got = reader.dispatches()
    assert [text(each) for each in got] == ["1", "2"]
    assert not any(MARK in properties(each) or KEPT in properties(each) for each in got)


def test_an_empty_marked_message_ends_it(server: ThreeProtocols) -> None:
    client = server.openwire_client()
    send(client, "1", True)
    send(client, "", True)
    assert begins_with(server) == []
    send(client, "2", True)
    assert [body for body, _ in begins_with(server)] == ["2"]


def test_a_subscription_that_does_not_ask_begins_with_nothing(server: ThreeProtocols) -> None:
    send(server.openwire_client(), "1", True)
    reader = server.openwire_client("r")
    reader.consume(TOPIC)
    assert reader.texts() == []


def test_of_stomp_and_after_a_restart(server: ThreeProtocols) -> None:
    sender = server.stomp_client()
    headers = {"destination": "/topic/prices", "persistent": "true", MARK: "true", "receipt": "1"}
    sender.send("SEND", "1", **headers)
    sender.frames()
    server.settle()
    server.restart()
    server.broker.retroactive.deploy(server.now)
    client = server.stomp_client()
    client.subscribe("/topic/prices", **{"activemq.retroactive": "true"})
    (got,) = client.messages()
    assert got.body == b"1" and got[KEPT] == "true" and MARK not in got.headers


def test_a_setting_that_changes_takes_effect_at_once(server: ThreeProtocols) -> None:
    client = server.openwire_client()
    send(client, "1", True)
    server.broker.settings.replace(settings_of(False))
    server.broker.retroactive.deploy(server.now)
    send(client, "2")
    assert [body for body, _ in begins_with(server)] == ["2"]
    server.broker.settings.replace(settings_of())
    server.broker.retroactive.deploy(server.now)
    assert begins_with(server) == []
    send(client, "3", True)
    send(client, "4")
    assert [body for body, _ in begins_with(server)] == ["3"]
