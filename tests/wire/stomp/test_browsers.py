"""SUBSCRIBE with `browser:true`: the messages of a queue, which stay there, and their end."""

from __future__ import annotations

import pytest

from tests.wire.stomp.stomp_rig import StompClient, StompServer, classic_server


def fill(server: StompServer, *texts: str, destination: str = "/queue/a", **headers: str) -> None:
    sender = server.stomp_client()
    for text in texts:
        sender.send("SEND", text, destination=destination, **headers)
    server.settle()


def browsed(client: StompClient) -> list[str]:
    """The bodies that a browser got; the last frame is the end."""
    found = client.messages()
    assert found and found[-1]["browser"] == "end" and found[-1].body == b""
    assert all("browser" not in each.headers for each in found[:-1])
    return [each.body.decode() for each in found[:-1]]


@pytest.mark.parametrize("header", ["browser", "activemq.browser"])
@pytest.mark.parametrize("ack", ["auto", "client", "client-individual"])
def test_a_browser_takes_nothing_and_sees_the_end(either: StompServer, ack: str, header: str) -> None:
    fill(either, "1", "2")
    client = either.stomp_client()
    client.subscribe("/queue/a", ack=ack, **{header: "true"})
    assert browsed(client) == ["1", "2"]
    assert either.broker.queues["a"].message_count == 2
    fill(either, "3")
    assert client.frames() == []  # nothing after its end
    client.receipt("UNSUBSCRIBE", id="1")
    client.subscribe("/queue/a")
    assert client.texts() == ["1", "2", "3"]


def test_the_end_names_the_subscription(either: StompServer) -> None:
    client = either.stomp_client()
    client.subscribe("/queue/a", "7", browser="true")
    end = client.one()
    assert (end.command, end["subscription"], end["browser"]) == ("MESSAGE", "7", "end")
    assert end["destination"] == "/queue/a" and end["message-id"] == "0"


def test_a_browser_with_a_window_goes_on_with_its_acknowledgements(either: StompServer) -> None:
    fill(either, "1", "2", "3")
    client = either.stomp_client()
    client.subscribe("/queue/a", ack="client-individual", browser="true", **{"activemq.prefetchSize": "1"})
    for text in ("1", "2", "3"):
        for _ in range(3):  # a drain waits a second for credits
            either.now += 1_000_000_000
            either.broker.on_timer(either.now, "kernel.drain.a")
        got = client.one()
        assert got.body.decode() == text
        client.send("ACK", id=got["ack"])
    assert browsed(client) == []
    assert either.broker.queues["a"].message_count == 3


def test_a_browser_has_a_selector_and_refuses_nack(either: StompServer) -> None:
    fill(either, "1", n="1")
    fill(either, "2", n="2")
    client = either.stomp_client()
    client.subscribe("/queue/a", browser="true", ack="client", selector="n > 1")
    found = client.messages()
    assert [each.body for each in found] == [b"2", b""]
    assert "browser" in client.error("NACK", id=found[0]["ack"])
    assert either.broker.queues["a"].message_count == 2


def test_a_topic_has_nothing_to_browse(either: StompServer) -> None:
    error = either.stomp_client().error("SUBSCRIBE", destination="/topic/t", id="1", browser="true")
    assert "browser:true needs a queue" in error


def test_who_may_browse_and_not_consume(either: StompServer) -> None:
    fill(either, "1")
    either.security.add_rule("a", {"browse": ["guest"], "send": ["admin"]})
    guest = either.stomp_client(login="guest", passcode="guest")
    guest.subscribe("/queue/a", browser="true")
    assert browsed(guest) == ["1"]
    error = guest.error("SUBSCRIBE", destination="/queue/a", id="2")
    assert "CONSUME" in error


def test_a_browser_of_wildcards_sees_each_queue_once() -> None:
    server = classic_server()
    fill(server, "1", destination="/queue/q.a")
    fill(server, "2", destination="/queue/q.b")
    client = server.stomp_client()
    client.subscribe("/queue/q.>", browser="true")
    assert sorted(browsed(client)) == ["1", "2"]
    fill(server, "3", destination="/queue/q.c")
    server.beat()
    assert client.frames() == []
    client.subscribe("/queue/none.>", "2", browser="true")
    assert browsed(client) == []
