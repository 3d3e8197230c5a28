"""Numbers at the limits of their types, in each header of each protocol: the node lives, and the message arrives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.message.properties import Byte, Int, PropertyValue, Short
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.commands.responses import ExceptionResponse
from tests.share import sampled
from tests.wire.extreme_numbers_rig import (
    ADDRESSES,
    EXTREMES,
    EveryProtocol,
    bodies_of,
    core_message,
    pass_time,
    read_by_all,
    server_with_everything,
)
from tests.wire.openwire.server.openwire_rig import OpenWireClient

# Sends messages to an address; returns how many were confirmed.
Sender = Callable[[EveryProtocol, str, int], int]

CORE_PROPERTIES = (
    "_AMQ_ROUTING_TYPE", "_AMQ_GROUP_SEQUENCE", "_AMQ_SCHED_DELIVERY", "_AMQ_SCHED_PERIOD", "_AMQ_SCHED_REPEAT",
    "_AMQ_SCHED_JOB", "_AMQ_ORIG_ROUTING_TYPE", "_AMQ_ORIG_MESSAGE_ID", "_AMQ_ACTUAL_EXPIRY", "_AMQ_LARGE_SIZE",
    "_AMQ_INGRESS_TIMESTAMP", "_AMQ_DUPL_ID", "_AMQ_GROUP_ID", "_AMQ_LVQ_NAME", "JMSXDeliveryCount",
    "_AMQ_Distance", "__AMQ_CID", "number",
)  # fmt: skip
OPENWIRE_FIELDS = ("expiration", "timestamp", "group_sequence", "redelivery_counter", "priority")
OPENWIRE_PROPERTIES = ("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "_AMQ_DUPL_ID", "number")
STOMP_HEADERS = (
    "expires", "priority", "JMSXGroupSeq", "AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME", "AMQ_SCHEDULED_PERIOD",
    "AMQ_SCHEDULED_REPEAT", "_AMQ_SCHED_PERIOD", "_AMQ_SCHED_REPEAT", "_AMQ_ROUTING_TYPE", "timestamp",
)  # fmt: skip


def typed(value: int) -> list[PropertyValue]:
    """The value as each type of a property that has room for it."""
    found: list[PropertyValue] = [value, str(value)]
    for kind, bits in ((Int, 31), (Short, 15), (Byte, 7)):
        if -(1 << bits) <= value < 1 << bits:
            found.append(kind(value))
    return found


def confirmed(client: OpenWireClient, command: OpenWireMessage) -> int:
    """1, or 0 if the message was refused by name."""
    answer = client.call(command)
    if not isinstance(answer, ExceptionResponse):
        return 1
    assert answer.exception is not None and "AMQ_SCHEDULED_" in (answer.exception.message or ""), answer
    return 0


def by_core(name: str) -> Sender:
    def send(server: EveryProtocol, address: str, value: int) -> int:
        client = server.login()
        for number, each in enumerate(typed(value)):
            properties: dict[str, object] = {"key": f"{value}{number}", "_AMQ_GROUP_ID": "g", name: each}
            if name != "_AMQ_SCHED_DELIVERY" and name.startswith("_AMQ_SCHED"):
                properties["_AMQ_SCHED_DELIVERY"] = server.now // 1_000_000 + 1
            message = core_message(address, server.now // 1_000_000, "x", properties)
            client.succeeds(SendMessage(message, requires_response=True, correlation=number + 1, sender_id=0))
        return len(typed(value))

    return send


def by_core_header(name: str) -> Sender:
    def send(server: EveryProtocol, address: str, value: int) -> int:
        if name in ("priority", "kind") and not -128 <= value <= 127:
            return 0
        message = core_message(address, 1, "x", {"key": str(value)}, **{name: value})
        server.login().succeeds(SendMessage(message, requires_response=True, correlation=1, sender_id=0))
        return 1

    return send


def by_openwire(name: str, field: bool) -> Sender:
    def send(server: EveryProtocol, address: str, value: int) -> int:
        client = server.openwire_client(f"sender-{server.last_conn}")
        properties: dict[str, object] = {"key": str(value)}
        done = 0
        fields: dict[str, object] = {"timestamp": server.now // 1_000_000}
        if field:
            bits = {"expiration": 63, "timestamp": 63, "priority": 7}.get(name, 31)
            if not -(1 << bits) <= value < 1 << bits:
                return 0
            fields[name] = value
            fields.setdefault("group_id", "g")
            for scheduled in (False, True):
                if scheduled:
                    properties["AMQ_SCHEDULED_DELAY"] = 1
                done += confirmed(client, client.message("x", address, dict(properties), **fields))
        else:
            for each in typed(value):
                properties[name] = each
                done += confirmed(client, client.message("x", address, dict(properties), **fields))
        assert client.closed is None
        return done

    return send


def by_stomp(name: str) -> Sender:
    def send(server: EveryProtocol, address: str, value: int) -> int:
        client = server.stomp_client()
        headers = {name: str(value), "key": str(value), "destination": address, "persistent": "true"}
        if name in ("AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT"):
            headers = {"AMQ_SCHEDULED_PERIOD": "1000", "AMQ_SCHEDULED_REPEAT": "1", **headers}
        client.send("SEND", "x", receipt="r", **headers)
        answer = client.one()
        assert answer.command in ("RECEIPT", "ERROR")
        if answer.command == "ERROR":
            assert name in answer["message"] or "AMQ_SCHEDULED_PERIOD" in answer["message"], answer
        return 1 if answer.command == "RECEIPT" else 0

    return send


SENDERS: dict[str, Sender] = {
    **{f"core {name}": by_core(name) for name in CORE_PROPERTIES},
    **{f"core.{name}": by_core_header(name) for name in ("expiration", "timestamp", "priority", "kind")},
    **{f"openwire {name}": by_openwire(name, False) for name in OPENWIRE_PROPERTIES},
    **{f"openwire.{name}": by_openwire(name, True) for name in OPENWIRE_FIELDS},
    **{f"stomp {name}": by_stomp(name) for name in STOMP_HEADERS},
}


@pytest.mark.parametrize("name", sampled(SENDERS, 8))
def test_no_number_ends_the_node(name: str) -> None:
    """Sent to every kind of destination, read by every protocol, redelivered, expired, recovered."""
    server = server_with_everything()
    send = SENDERS[name]
    # With MULTICAST (0) the anycast queues of these addresses get nothing.
    values = [value for value in EXTREMES if value != 0 or name != "core _AMQ_ROUTING_TYPE"]
    taken = {address: sum(send(server, address, value) for value in values) for address in ADDRESSES}
    assert max(taken.values()) > 0
    pass_time(server, 2)
    kept = {queue: bodies_of(server, queue) for queue in ("plain", "diverted", "copies", "EXP", "wild")}
    assert kept["plain"] + kept["EXP"] >= taken["plain"], "a confirmed message is in no queue"
    assert kept["copies"] >= 1 and kept["wild"] + kept["EXP"] >= taken["wild.one"]
    for queue in (*ADDRESSES, "copies", "wild", "DLQ", "EXP"):
        read_by_all(server, queue)
    pass_time(server, 4_000)
    server.restart()
    server.broker.start_timers(server.now)
    pass_time(server, 60)
    for queue in (*ADDRESSES, "copies", "wild", "DLQ", "EXP"):
        read_by_all(server, queue)
    server.compact(server.journal.last)
    server.restart()
    validate(server.broker)


@pytest.mark.parametrize("value", [1, *(each for each in EXTREMES if each != 0)])
def test_a_routing_type_that_does_not_exist_means_none(value: int) -> None:
    server = server_with_everything()
    guest = server.login("guest")
    for each in typed(value):
        message = core_message("secret", 1, "x", {"_AMQ_ROUTING_TYPE": each})
        code, text = guest.fails(SendMessage(message, requires_response=True, correlation=9, sender_id=0))
        assert "guest does not have permission" in text
    admin = server.login()
    message = core_message("diverted", 1, "x", {"_AMQ_ROUTING_TYPE": value})
    admin.succeeds(SendMessage(message, requires_response=True, correlation=1, sender_id=0))
    admin.consume("copies")
    server.settle()
    [copy] = admin.deliveries()
    kept = copy.message.properties.get("_AMQ_ORIG_ROUTING_TYPE")
    assert kept == (1 if value == 1 else None)
