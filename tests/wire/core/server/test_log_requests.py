"""The log view's packets end to end (docs/internals/protocols/log-view.md)."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import (
    FENCED,
    ILLEGAL_STATE,
    INCARNATION_CHANGED,
    INVALID_FILTER,
    LEASE_ENDED,
    QUEUE_DOES_NOT_EXIST,
    RANGE_LOST,
)
from atalanta.kernel.log import chunk
from atalanta.message.log_position import Position
from atalanta.wire.core.packet_types import LOG_COLUMNS
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import Acknowledge
from atalanta.wire.core.packets.log_chunk import (
    LogReadColumnsResponse,
    LogReadResponse,
    decode_entries,
)
from atalanta.wire.core.packets.logview import (
    LogAckThrough,
    LogAckThroughResponse,
    LogLease,
    LogLeaseResponse,
    LogLost,
    LogLostResponse,
    LogPlan,
    LogPlanResponse,
    LogPosition,
    LogPositionResponse,
    LogQueues,
    LogQueuesResponse,
    LogRead,
    LogReadColumns,
    LogSeek,
    LogSeekResponse,
)
from atalanta.wire.core.packets.query import BindingQuery, BindingQueryResponseV5
from atalanta.wire.core.packets.queue import DeleteQueue
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import Client, Server

QUEUE = "flights::archive"


def filled(server: Server, count: int) -> Client:
    client = server.login()
    client.create_queue("archive", "flights", 0)
    for number in range(count):
        client.publish("flights", str(number), wait=False, parity=number % 2)
    server.settle()
    client.receive()
    return client


def position(client: Client) -> Position:
    answer = client.call(LogPosition(1, QUEUE))
    assert isinstance(answer, LogPositionResponse) and answer.correlation == 1
    return answer.position


def read_request(
    start: int, end: int, max_bytes: int = 0, selector: str | None = None, incarnation: str = ""
) -> LogRead:
    return LogRead(
        correlation=5,
        queue=QUEUE,
        incarnation=incarnation,
        start=start,
        end=end,
        max_bytes=max_bytes,
        selector=selector,
    )


def acknowledgement(epoch: int, end: int, incarnation: str = "") -> LogAckThrough:
    return LogAckThrough(
        correlation=5, queue=QUEUE, incarnation=incarnation, group="g", epoch=epoch, end=end
    )


def plan_request(
    start: int, max_messages: int = -1, max_bytes: int = -1, incarnation: str = ""
) -> LogPlan:
    return LogPlan(
        correlation=5,
        queue=QUEUE,
        incarnation=incarnation,
        start=start,
        max_messages=max_messages,
        max_bytes=max_bytes,
    )


def lease_request(
    owner: str = "driver", group: str = "g", ttl_ms: int = 60_000, epoch: int = 0
) -> LogLease:
    return LogLease(
        correlation=5, queue=QUEUE, group=group, owner=owner, ttl_ms=ttl_ms, epoch=epoch
    )


def lease(
    client: Client, epoch: int = 0, owner: str = "driver", group: str = "g"
) -> LogLeaseResponse:
    answer = client.call(lease_request(group=group, owner=owner, epoch=epoch))
    assert isinstance(answer, LogLeaseResponse), answer
    return answer


def read(
    client: Client, start: int, end: int, max_bytes: int = 0, selector: str | None = None
) -> list[str]:
    """All chunks of (start, end], as "sequence=text"."""
    found: list[str] = []
    while True:
        answer = client.call(
            read_request(start=start, end=end, max_bytes=max_bytes, selector=selector)
        )
        assert isinstance(answer, LogReadResponse), answer
        for entry in decode_entries(answer):
            found.append(f"{entry.sequence}={entry.message.text()}")
        start = answer.next
        if answer.last:
            return found


def refusal(client: Client, packet: Packet) -> int:
    """The code; a failure carries the correlation of its request."""
    answer = client.call(packet)
    assert isinstance(answer, ExceptionResponse), answer
    assert answer.correlation == packet.values()[0]
    return answer.code


def test_a_position_tells_where_the_log_begins_and_ends(server: Server) -> None:
    client = filled(server, 0)
    empty = position(client)
    assert (empty.first, empty.last, empty.messages) == (1, 0, 0)
    for number in range(3):
        client.publish("flights", str(number), wait=False)
    before = position_without_disk(server, client)
    assert (before.first, before.last) == (1, 0)
    server.settle()
    now = position(client)
    assert (now.node_id, now.first, now.last, now.messages) == ("node-a", 1, 3, 3)
    assert now.first_timestamp_ms == now.last_timestamp_ms == 1_700_000_000_000


def position_without_disk(server: Server, client: Client) -> Position:
    client.receive()
    client.send(LogPosition(1, QUEUE))
    return client.packets(LogPositionResponse)[0].position


def test_a_plan_stays_within_its_limits() -> None:
    client = filled(Server(), 10)
    answer = client.call(plan_request(start=0, max_messages=4))
    assert isinstance(answer, LogPlanResponse)
    assert (answer.correlation, answer.end, answer.messages) == (5, 4, 4)
    small = client.call(plan_request(start=4, max_bytes=1))
    assert isinstance(small, LogPlanResponse) and (small.end, small.messages) == (5, 1)
    rest = client.call(plan_request(start=4))
    assert isinstance(rest, LogPlanResponse) and (rest.end, rest.messages) == (10, 6)


def test_a_range_reads_the_same_in_chunks_of_any_size_and_after_a_crash(server: Server) -> None:
    client = filled(server, 20)
    whole = read(client, 2, 17)
    assert whole == [f"{number + 1}={number}" for number in range(2, 17)]
    assert read(client, 2, 17, max_bytes=1) == whole
    assert read(client, 2, 17, max_bytes=500) == whole
    assert read(client, 0, 20, selector="parity = 1") == [f"{n + 1}={n}" for n in range(1, 20, 2)]
    server.restart()
    assert read(server.login(), 2, 17, max_bytes=500) == whole


def read_columns(client: Client, start: int, end: int, max_bytes: int, selector: str | None = None) -> list[str]:
    """As `read`, by columns."""
    found: list[str] = []
    while True:
        answer = client.call(LogReadColumns(5, QUEUE, "", start, end, max_bytes, selector))
        assert isinstance(answer, LogReadColumnsResponse), answer
        assert answer.correlation == 5
        rows = LogReadResponse(5, answer.next, answer.last, answer.chunk.count, answer.chunk.rows())
        found += [f"{entry.sequence}={entry.message.text()}" for entry in decode_entries(rows)]
        start = answer.next
        if answer.last:
            return found


def test_a_range_by_columns_has_the_same_messages(server: Server) -> None:
    client = filled(server, 20)
    ranges = ((2, 17, 0, None), (2, 17, 1, None), (0, 20, 500, "parity = 1"), (20, 30, 0, None))
    for start, end, max_bytes, selector in ranges:
        expected = read(client, start, end, max_bytes, selector)
        assert read_columns(client, start, end, max_bytes, selector) == expected
    server.restart()
    assert read_columns(server.login(), 2, 17, 500) == read(server.login(), 2, 17)
    anew = LogReadColumns(5, QUEUE, "another", 0, 5, 0)
    assert refusal(server.login(), anew) == INCARNATION_CHANGED


def test_a_node_tells_that_it_reads_by_columns_and_is_no_address_for_that(server: Server) -> None:
    answer = server.login().call(BindingQuery("$.atalanta.logview"))
    assert isinstance(answer, BindingQueryResponseV5)
    assert (answer.exists, answer.queue_names) == (True, [LOG_COLUMNS])
    other = server.login().call(BindingQuery("$.atalanta.settle"))
    assert isinstance(other, BindingQueryResponseV5) and other.queue_names == []


def test_answers_by_columns_keep_the_order_of_their_requests(server: Server) -> None:
    client = filled(server, 3)
    packets = (LogPosition(1, QUEUE), LogReadColumns(2, QUEUE, "", 0, 3, 0), LogPosition(3, QUEUE), read_request(0, 3))
    client.feed(b"".join(codec.encode(packet, 10, client.version) for packet in packets))  # one batch of inputs
    assert [answer.values()[0] for _, answer in client.receive()] == [1, 2, 3, 5]


def test_chunks_of_long_and_of_short_bodies_come_whole_and_in_the_order_of_their_requests(server: Server) -> None:
    client = server.login()
    client.create_queue("archive", "flights", 0)
    texts = ["short", "x" * 3_000, "y" * 5_000, "", "z" * 2_000]
    for text in texts:
        client.publish("flights", text, wait=False)
    server.settle()
    client.receive()
    encoded = [
        codec.encode(packet, 10, client.version)
        for packet in (
            LogPosition(1, QUEUE), read_request(0, 5), LogPosition(2, QUEUE), read_request(0, 1), read_request(2, 5),
        )
    ]  # fmt: skip
    client.feed(b"".join(encoded))  # one batch of inputs
    first, whole, second, short, rest = [answer for _, answer in client.receive()]
    assert isinstance(first, LogPositionResponse) and isinstance(second, LogPositionResponse)
    assert (first.correlation, second.correlation) == (1, 2)
    chunks = []
    for answer in (whole, short, rest):
        assert isinstance(answer, LogReadResponse)
        chunks.append([(entry.sequence, entry.message.text()) for entry in decode_entries(answer)])
    numbered = list(enumerate(texts, 1))
    assert chunks == [numbered, numbered[:1], numbered[2:]]


def test_a_read_that_finds_nothing_looks_at_a_bounded_number_of_messages(server: Server) -> None:
    server.queue("archive", "flights", 0)
    session = server.session()
    server.security.add_rule("flights", {"consume": ["admin"], "send": ["tester"]})
    session.identity.roles = ("tester",)
    count = chunk.READ_LOOKS_MAX + 10
    for _ in range(count):
        session.send(server.now, server.message("flights", b""), 1)
    server.settle()
    client = server.login()
    answer = client.call(read_request(start=0, end=count, selector="parity = 1"))
    assert isinstance(answer, LogReadResponse)
    assert (answer.next, answer.last, answer.count) == (chunk.READ_LOOKS_MAX, False, 0)
    assert read(client, 0, count, selector="parity = 1") == []


def test_acknowledging_through_is_durable_before_its_answer_and_idempotent(server: Server) -> None:
    client = filled(server, 10)
    held = lease(client)
    request = acknowledgement(incarnation=held.incarnation, epoch=held.epoch, end=6)
    client.send(request)
    assert client.receive() == []
    server.settle()
    assert [packet.acked_messages for packet in client.packets(LogAckThroughResponse)] == [6]
    again = client.call(request)
    assert isinstance(again, LogAckThroughResponse) and again.acked_messages == 0
    server.restart()
    client = server.login()
    assert (position(client).first, position(client).acked_through) == (7, 6)
    assert refusal(client, read_request(start=3, end=10)) == RANGE_LOST


def test_a_new_owner_fences_the_old_one_also_after_a_crash(server: Server) -> None:
    client = filled(server, 4)
    old = lease(client)
    new = lease(client, owner="successor")
    assert new.epoch == old.epoch + 1
    assert refusal(client, acknowledgement(epoch=old.epoch, end=2)) == FENCED
    assert refusal(client, lease_request(epoch=old.epoch)) == FENCED
    server.restart()
    client = server.login()
    assert refusal(client, acknowledgement(epoch=old.epoch, end=2)) == FENCED
    assert lease(client, new.epoch, "successor").epoch == new.epoch


def test_one_group_and_no_consumer_beside_it(server: Server) -> None:
    client = filled(server, 4)
    held = lease(client)
    assert refusal(client, lease_request(group="other", owner="me")) == FENCED
    answer = client.consume("archive")
    assert isinstance(answer, ExceptionResponse) and answer.code == FENCED
    assert not isinstance(client.consume("archive", browse=True, credits=0), ExceptionResponse)
    released = client.call(lease_request(ttl_ms=0, epoch=held.epoch))
    assert isinstance(released, LogLeaseResponse)
    client.consume("archive", consumer_id=1, credits=0)
    assert refusal(client, lease_request()) == FENCED


def test_a_refused_consumer_or_group_is_told_for_how_long_and_how_to_end_it(server: Server) -> None:
    client = filled(server, 1)
    lease(client, owner="vm/24456/fc4c6f80")
    expected = (
        "queue archive is leased to the log-view group g of vm/24456/fc4c6f80 for 60 s more, longer if it is renewed. "
        "`atalanta queue stat archive` shows the lease, `atalanta queue end-lease archive` ends it and removes no "
        "message"
    )
    for refused in (client.consume("archive"), client.call(lease_request(group="other", owner="me"))):
        assert isinstance(refused, ExceptionResponse)
        assert (refused.code, refused.message) == (FENCED, expected)


def test_the_owner_of_an_ended_lease_is_told_by_whom(server: Server) -> None:
    client = filled(server, 2)
    held = lease(client)
    queue = server.broker.queues["archive"]
    server.broker.log_views.end_lease(server.now, queue, "user admin from h:1", held.epoch)
    for packet in (acknowledgement(epoch=held.epoch, end=2), lease_request(epoch=held.epoch)):
        refused = client.call(packet)
        assert isinstance(refused, ExceptionResponse) and refused.code == LEASE_ENDED
        assert refused.message == (
            "the lease of group g of queue archive was ended by user admin from h:1 (epoch 2, yours is 1)"
        )
    assert not isinstance(client.consume("archive"), ExceptionResponse)
    server.settle()
    assert len(client.deliveries()) == 2


def test_what_left_by_another_way_is_reported_as_lost(server: Server) -> None:
    client = filled(server, 6)
    lease(client)
    read(client, 0, 6)
    server.now += 120 * SECOND
    server.broker.log_views.end_leases(server.now)
    client.consume("archive")
    client.send(Acknowledge(0, client.deliveries()[1].message.id, False))
    server.settle()
    answer = client.call(LogLost(correlation=6, queue=QUEUE, incarnation="", start=0, end=6))
    assert isinstance(answer, LogLostResponse)
    assert [(lost.start, lost.end) for lost in answer.ranges] == [(1, 2)]


def test_a_time_is_found() -> None:
    client = filled(Server(), 3)
    for when, sequence in ((0, 0), (1_700_000_000_000, 0), (1_700_000_000_001, 3)):
        answer = client.call(LogSeek(8, QUEUE, when))
        assert isinstance(answer, LogSeekResponse)
        assert (answer.correlation, answer.sequence) == (8, sequence)


def test_a_queue_made_anew_is_noticed(server: Server) -> None:
    client = filled(server, 3)
    old = position(client).incarnation
    client.succeeds(DeleteQueue("archive"))
    client.create_queue("archive", "flights", 0)
    assert position(client).incarnation != old
    assert refusal(client, read_request(incarnation=old, start=0, end=3)) == INCARNATION_CHANGED
    assert (
        refusal(client, plan_request(incarnation=old, start=0, max_messages=3, max_bytes=0))
        == INCARNATION_CHANGED
    )


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (LogPosition(5, "missing"), QUEUE_DOES_NOT_EXIST),
        (
            read_request(start=0, end=3, selector="parity ="),
            INVALID_FILTER,
        ),
        (
            acknowledgement(epoch=1, end=2),
            FENCED,
        ),
        (lease_request(owner="me", ttl_ms=-5), ILLEGAL_STATE),
        (
            lease_request(owner="me", ttl_ms=1 << 62),
            ILLEGAL_STATE,
        ),
        (LogPosition(5, "volatile"), ILLEGAL_STATE),
    ],
)
def test_refusals_carry_the_correlation(server: Server, packet: Packet, code: int) -> None:
    client = filled(server, 3)
    server.queue("volatile", "flights", 0, durable=False)
    assert refusal(client, packet) == code


def test_acknowledging_what_is_not_there_yet_is_refused() -> None:
    client = filled(Server(), 3)
    held = lease(client)
    assert refusal(client, acknowledgement(epoch=held.epoch, end=4)) == ILLEGAL_STATE


def listed(client: Client, pattern: str) -> list[str]:
    answer = client.call(LogQueues(5, pattern))
    assert isinstance(answer, LogQueuesResponse) and answer.correlation == 5
    return answer.names


def test_a_pattern_finds_the_queues_that_can_be_read(server: Server) -> None:
    for name in ("orders.eu.new", "orders.eu.paid", "orders.us.new", "bills"):
        server.queue(name, name, 1)
    server.queue("orders.eu.volatile", "orders.eu.volatile", 1, durable=False)
    server.settle()
    client = server.login()
    assert listed(client, "orders.#") == ["orders.eu.new", "orders.eu.paid", "orders.us.new"]
    assert listed(client, "orders.*.new") == ["orders.eu.new", "orders.us.new"]
    assert listed(client, "bills") == ["bills"]
    refused = client.call(LogQueues(6, "#.new"))
    assert isinstance(refused, ExceptionResponse) and refused.code == ILLEGAL_STATE


def test_a_pattern_finds_only_queues_that_the_user_may_consume(server: Server) -> None:
    for name in ("orders.open", "orders.secret"):
        server.queue(name, name, 1)
    server.settle()
    server.security.add_rule("orders.#", {"consume": ["guest"]})
    server.security.add_rule("orders.secret", {"consume": ["admin"]})
    assert listed(server.login("guest"), "orders.#") == ["orders.open"]
