"""`openwire-prefetch-extension`: whether messages that a client works on count for its prefetch."""

from __future__ import annotations

import pytest

from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTopic,
)
from tests.wire.openwire.server.openwire_rig import DELIVERED, OpenWireServer


@pytest.mark.parametrize("destination", [ActiveMQQueue("a"), ActiveMQTopic("a")])
@pytest.mark.parametrize("extends", [True, False])
def test_what_a_client_works_on(destination: ActiveMQDestination, extends: bool) -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"openwire_prefetch_extension": extends})
    client = OpenWireServer(settings=settings).openwire_client()
    client.consume(destination, prefetch=2)
    for each in ("1", "2", "3", "4"):
        client.publish(each, destination)
    got = client.dispatches()
    assert len(got) == 2
    client.ack(got[1], DELIVERED, got[0], 2)
    assert client.texts() == (["3", "4"] if extends else [])
    client.ack(got[1], first=got[0], count=2)
    assert client.texts() == ([] if extends else ["3", "4"])
