"""Composite destinations, and queues by wildcards: with the user's own rights at every destination."""

from __future__ import annotations

import pytest

from atalanta.wire.stomp.destination import PARTS_MAX
from tests.wire.stomp.stomp_rig import StompServer, classic_server


def count(server: StompServer, queue: str) -> int:
    server.settle()
    return server.broker.queues[queue].message_count


def test_a_message_goes_to_each_part(either: StompServer) -> None:
    client = either.stomp_client()
    client.subscribe("/topic/c", "t")
    client.receipt("SEND", "x", destination="/queue/a,/queue/b, /topic/c,/queue/a")
    assert [message["destination"] for message in client.messages()] == ["/topic/c"]
    assert (count(either, "a"), count(either, "b")) == (1, 1)
    assert sorted(name for name in either.broker.queues if len(name) == 1) == ["a", "b"]


def test_the_receipt_follows_the_last_part(either: StompServer) -> None:
    client = either.stomp_client()
    for number in range(3):
        client.receipt("SEND", "x", destination="/queue/a,/queue/b", persistent="true")
        assert (count(either, "a"), count(either, "b")) == (number + 1, number + 1)


def test_the_parts_share_the_body(either: StompServer) -> None:
    """A long text to many queues is in memory once."""
    either.stomp_client().receipt("SEND", "x" * 100_000, destination="/queue/a,/queue/b", persistent="true")
    either.settle()
    bodies = [either.broker.queues[name].references[0].message.body for name in ("a", "b")]
    assert bodies[0] is bodies[1]


def test_a_transaction_has_all_parts(either: StompServer) -> None:
    client = either.stomp_client()
    client.send("BEGIN", transaction="t")
    client.receipt("SEND", "x", destination="/queue/a,/queue/b", transaction="t")
    client.receipt("ABORT", transaction="t")
    client.send("BEGIN", transaction="t")
    client.receipt("SEND", "y", destination="/queue/a,/queue/b", transaction="t")
    client.receipt("COMMIT", transaction="t")
    assert (count(either, "a"), count(either, "b")) == (1, 1)


def test_all_parts_or_none(either: StompServer) -> None:
    """A sender that may not send to one part has sent to none."""
    either.security.add_rule("a", {"send": ["guest"], "createAddress": ["guest"], "createDurableQueue": ["guest"]})
    error = either.stomp_client(login="guest", passcode="guest").error("SEND", "x", destination="/queue/a,/queue/b")
    assert "SEND" in error and "b" in error
    assert "a" not in either.broker.queues or count(either, "a") == 0


@pytest.mark.parametrize("ack", ["auto", "client", "client-individual"])
def test_a_subscription_has_several_queues(either: StompServer, ack: str) -> None:
    client = either.stomp_client()
    client.subscribe("/queue/a,/queue/b", ack=ack)
    for text, destination in (("1", "/queue/a"), ("2", "/queue/b"), ("3", "/queue/a"), ("4", "/queue/b")):
        client.send("SEND", text, destination=destination)
        client.server.settle()
    got = client.messages()
    assert sorted(each.body.decode() for each in got) == ["1", "2", "3", "4"]
    assert {each["destination"] for each in got} == {"/queue/a", "/queue/b"} and got[0]["subscription"] == "1"
    if ack == "client":
        client.receipt("ACK", id=got[2]["ack"])
        assert count(either, "a") + count(either, "b") == 1  # all three that were delivered before, in both queues
        client.receipt("ACK", id=got[3]["ack"])
    elif ack == "client-individual":
        for each in got:
            client.receipt("ACK", id=each["ack"])
    assert (count(either, "a"), count(either, "b")) == (0, 0)
    client.receipt("UNSUBSCRIBE", id="1")
    client.receipt("SEND", "5", destination="/queue/a")
    assert client.frames() == [] and count(either, "a") == 1


def test_one_part_that_is_refused_refuses_the_subscription(either: StompServer) -> None:
    rights = ("consume", "createDurableQueue", "createAddress")
    either.security.add_rule("a", {each: ["guest"] for each in rights})
    error = either.stomp_client(login="guest", passcode="guest").error(
        "SUBSCRIBE", destination="/queue/a,/queue/b", id="1"
    )
    assert "'b'" in error or " b" in error
    assert all(queue.consumer_count() == 0 for queue in either.broker.queues.values())


def test_a_composite_subscription_of_stomp_1_0_ends_by_its_destination(either: StompServer) -> None:
    client = either.stomp_client("1.0")
    client.receipt("SUBSCRIBE", destination="/queue/a,/queue/b")
    client.receipt("UNSUBSCRIBE", destination="/queue/a,/queue/b")
    assert all(queue.consumer_count() == 0 for queue in either.broker.queues.values())


def test_a_subscription_with_an_id_ends_by_its_destination(either: StompServer) -> None:
    client = either.stomp_client("1.0")
    client.subscribe("/queue/a", "1")
    client.receipt("UNSUBSCRIBE", destination="/queue/a")
    assert either.broker.queues["a"].consumer_count() == 0


def test_a_durable_subscription_has_one_topic(either: StompServer) -> None:
    client = either.stomp_client(client_id="c")
    error = client.error("SUBSCRIBE", destination="/topic/a,/topic/b", id="1", durable_subscription_name="s")
    assert "has one topic" in error and "c.s" not in either.broker.queues


def test_a_queue_has_no_durable_subscription(classic: StompServer, server: StompServer) -> None:
    headers = {"destination": "/queue/a", "id": "1", "durable_subscription_name": "s"}
    assert "no durable subscriptions" in classic.stomp_client(client_id="c").error("SUBSCRIBE", **headers)
    server.stomp_client(client_id="c").receipt("SUBSCRIBE", **headers)  # as in Artemis
    assert list(server.broker.queues) == ["a"]


def test_too_many_parts_and_an_empty_one(either: StompServer) -> None:
    names = ",".join(f"/queue/q{number}" for number in range(PARTS_MAX + 1))
    assert f"at most {PARTS_MAX} parts" in either.stomp_client().error("SEND", "x", destination=names)
    assert "empty part" in classic_server().stomp_client().error("SEND", "x", destination="/queue/a,,/queue/b")


def test_later_parts_without_a_prefix_are_queues_in_classic() -> None:
    server = classic_server()
    client = server.stomp_client()
    client.receipt("SEND", "x", destination="/queue/a,b")
    client.receipt("SEND", "x", destination="c,d")
    assert [count(server, name) for name in ("a", "b", "c", "d")] == [1, 1, 1, 1]


def test_a_comma_without_prefixes_is_a_part_of_the_name_in_artemis(server: StompServer) -> None:
    client = server.stomp_client()
    client.receipt("SEND", "x", destination="a,b", destination_type="ANYCAST")
    assert count(server, "a,b") == 1
    server.login().create_queue("/queue/a,/queue/b")
    client.receipt("SEND", "x", destination="/queue/a,/queue/b")
    assert count(server, "/queue/a,/queue/b") == 1


# -- wildcards ------------------------------------------------------------------------------------
def test_wildcards_mean_the_queues_that_are_there_and_those_that_come(classic: StompServer) -> None:
    client = classic.stomp_client()
    client.receipt("SEND", "1", destination="/queue/q.a")
    client.receipt("SEND", "no", destination="/queue/other")
    client.subscribe("/queue/q.>", ack="client")
    (first,) = client.messages()
    assert (first.body, first["destination"], first["subscription"]) == (b"1", "/queue/q.a", "1")
    client.receipt("SEND", "2", destination="/queue/q.b.c")
    classic.beat()
    second = client.one()
    assert (second.body, second["destination"]) == (b"2", "/queue/q.b.c")
    client.receipt("ACK", id=second["ack"])
    assert (count(classic, "q.a"), count(classic, "q.b.c"), count(classic, "other")) == (0, 0, 1)
    assert "q.>" not in classic.broker.queues
    client.receipt("UNSUBSCRIBE", id="1")
    client.receipt("SEND", "3", destination="/queue/q.new")
    classic.beat()
    assert client.frames() == []
    assert not classic.stomp.wildcard_queues.consumers and not classic.stomp.wildcard_queues.patterns


def test_a_star_is_one_word(classic: StompServer) -> None:
    client = classic.stomp_client()
    for name in ("q.a", "q.a.b"):
        client.receipt("SEND", name, destination=f"/queue/{name}")
    client.subscribe("/queue/q.*")
    assert client.texts() == ["q.a"]


def test_wildcards_give_no_queue_that_the_user_may_not_consume(classic: StompServer) -> None:
    sender = classic.stomp_client()
    for name in ("q.a", "q.b"):
        sender.receipt("SEND", name, destination=f"/queue/{name}")
    classic.security.add_rule("q.a", {"consume": ["guest"]})
    guest = classic.stomp_client(login="guest", passcode="guest")
    guest.subscribe("/queue/q.>")
    assert guest.texts() == ["q.a"]
    sender.receipt("SEND", "new", destination="/queue/q.c")
    classic.beat()
    assert guest.frames() == [] and guest.closed is None
    told = [fields["queue"] for name, fields in classic.trace.events if name == "wildcard_queue_left_out"]
    assert told == ["q.b", "q.c"]


def test_one_of_the_queues_is_deleted(classic: StompServer) -> None:
    client = classic.stomp_client()
    client.receipt("SEND", "1", destination="/queue/q.a")
    client.receipt("SEND", "2", destination="/queue/q.b")
    client.subscribe("/queue/q.>", ack="client")
    assert sorted(client.texts()) == ["1", "2"]
    classic.broker.queue_registry.delete(classic.now, "q.a", "by test")
    assert client.frames() == [] and client.closed is None
    client.receipt("SEND", "3", destination="/queue/q.a")
    classic.beat()
    assert client.texts() == ["3"]


def test_a_lost_connection_leaves_no_pattern(classic: StompServer) -> None:
    client = classic.stomp_client()
    client.subscribe("/queue/q.>")
    classic.lost(client.conn)
    assert not classic.stomp.wildcard_queues.consumers and not classic.stomp.wildcard_queues.patterns


def test_a_queue_of_a_wildcard_address_gets_copies_in_artemis(server: StompServer) -> None:
    """As in Artemis: the queue has the name with its wildcard, and what is sent to matching addresses from then on."""
    client = server.stomp_client()
    client.subscribe("/queue/q.#")
    client.receipt("SEND", "1", destination="/queue/q.a")
    assert client.texts() == ["1"] and count(server, "q.a") == 1
