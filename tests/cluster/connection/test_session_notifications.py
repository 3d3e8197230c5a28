"""Sessions at other members: told on to whoever listens here, as Artemis does, and without any effect."""

from __future__ import annotations

from atalanta.wire.core.packets.session import UniqueAddMetadata
from tests.cluster.cluster_rig import Client, Rig

NEWS = "activemq.notifications"


def news_of(client: Client) -> list[dict[str, object]]:
    found: list[dict[str, object]] = [
        dict(packet.message.properties.items()) for packet in client.messages
    ]
    return [each for each in found if each.get("_AMQ_NotifType") == "SESSION_CREATED"]


def test_a_session_at_a_member_is_told_here_one_node_further_away(rig: Rig) -> None:
    first, second, third = rig.cluster(3)
    listener = rig.client(second)
    listener.create("news", NEWS, 0)
    listener.consume("news")
    rig.run(1)
    listener.messages.clear()
    rig.client(first)
    rig.run(1)
    news = news_of(listener)
    assert [each["_AMQ_Distance"] for each in news] == [1], "once, and not by way of the third"
    assert news[0]["_AMQ_Protocol_Name"] == "CORE" and news[0]["_AMQ_ConnectionName"]
    assert "_AMQ_User" not in news[0]
    listener.messages.clear()
    rig.client(second)
    rig.run(1)
    assert [each["_AMQ_Distance"] for each in news_of(listener)] == [0]


def test_one_client_id_may_be_used_at_two_members_at_once(rig: Rig) -> None:
    """As with a real Artemis: it looks for it on its own node only (ServerSessionImpl.addUniqueMetaData)."""
    first, second = rig.cluster(2)
    clients = [rig.client(first), rig.client(second), rig.client(second)]
    for client in clients:
        client.send(UniqueAddMetadata("jms-client-id", "the-one"))
        rig.run(0.5)
    assert [len(client.errors) for client in clients] == [0, 0, 1]
