"""Operating a cluster: doctor, topology, and messages for a member that is away."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from atalanta.client.blocking import Connection, Consumer, Producer, connect
from atalanta.client.message import Message
from tests.cli.calls import Cli
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

BODY = bytes(10_000)


def shaping(index: int, ports: list[int]) -> Shape:
    """All know all; nothing is redistributed; parked messages come back after a second (ours)."""
    peers = tuple(port for port in ports if port != ports[index])
    return Shape(Cluster(peers), -1, own="parked-message-timeout = 1000\n")


def cli(node: BrokerProcess) -> Cli:
    found = Cli(f"tcp://127.0.0.1:{node.port}")
    found.environment |= {"ATALANTA_USER": "admin", "ATALANTA_PASSWORD": "admin"}
    return found


def doctor(node: BrokerProcess) -> dict[str, Any]:
    """Everybody's password is admin: there is always something to say."""
    at = f"127.0.0.1:{node.port}"
    found: dict[str, Any] = json.loads(cli(node)("doctor", at, "--wait", "0.5", "--json", status=1))
    return found


def picture(node: BrokerProcess) -> dict[str, Any]:
    at = f"127.0.0.1:{node.port}"
    found: dict[str, Any] = json.loads(cli(node)("topology", at, "--wait", "0", "--json"))
    return found


def linked(nodes: list[BrokerProcess]) -> bool:
    """Has everybody a link to everybody else?"""
    found = picture(nodes[0])
    links = [link for link in found["links"] if link["linked"]]
    return len(found["nodes"]) == len(nodes) and len(links) == len(nodes) * (len(nodes) - 1)


@contextmanager
def running(brokers: Lineup, kinds: str) -> Iterator[list[BrokerProcess]]:
    nodes = brokers.cluster(kinds, shaping)
    try:
        for node in nodes:
            node.launch()
        for node in nodes:
            node.await_ready()
        until("all forward to all", lambda: linked(nodes))
        yield nodes
    finally:
        for node in nodes:
            node.close()


def connection(node: BrokerProcess) -> Connection:
    return connect(f"tcp://127.0.0.1:{node.port}", user="admin", password="admin")


def test_doctor_names_a_stranded_message_and_the_setting_that_keeps_it(
    trio: str, brokers: Lineup
) -> None:
    with running(brokers, trio) as nodes, ExitStack() as stack:
        sender = stack.enter_context(connection(nodes[1]))
        sender.create_queue("stranding", routing="anycast")
        sender.producer("stranding", routing="anycast").send(Message(text="lonely"))
        taker = stack.enter_context(connection(nodes[0]))
        taker.create_queue("stranding", routing="anycast")
        taker.consumer("stranding")

        def stranded() -> dict[str, Any] | None:
            found = [one for one in doctor(nodes[2])["findings"] if one["code"] == "stranded"]
            return found[0] if found else None

        until("doctor finds it", lambda: stranded() is not None)
        finding = stranded()
        assert finding is not None
        assert (finding["node"], finding["queue"]) == (nodes[1].name, "stranding")
        assert finding["messages"] == 1 and finding["consumers_at"] == [nodes[0].name]
        assert finding["oldest_ms"] >= 0
        assert '<address-setting match="stranding"><redistribution-delay>0<' in finding["remedy"]
        assert {one["name"] for one in doctor(nodes[2])["nodes"]} == {one.name for one in nodes}
        codes = [one["code"] for one in doctor(nodes[0])["findings"]]
        # The users of this suite are as bad as can be; the cluster's password is not.
        assert "well_known_password" in codes and "default_cluster_password" not in codes
        assert not {"topology_differs", "one_way_link", "wrong_address", "not_told"} & set(codes)


def test_topology_shows_what_flows_and_what_waits(trio: str, brokers: Lineup) -> None:
    with running(brokers, trio) as nodes:
        found = picture(nodes[2])
        assert {node["label"] for node in found["nodes"]} == {node.name for node in nodes}
        assert all(node["reached"] for node in found["nodes"])
        drawn = cli(nodes[0])("topology", f"127.0.0.1:{nodes[0].port}", "--wait", "0")
        assert all(node.name in drawn for node in nodes)


def parked(first: BrokerProcess, name: str, total: int) -> list[int]:
    """Numbers of the messages for the other node that never left this one: it is away, and so is its consumer."""
    with connection(first) as here:
        here.create_queue(name, routing="anycast")
        consumer = here.consumer(name)
        got: list[int] = []
        while (message := consumer.receive(6.0)) is not None:
            got.append(int(str(message.properties["n"])))
            message.acknowledge()
        consumer.close()
    assert len(got) <= total
    return got


def until_known(producer: Producer, *consumers: Consumer) -> None:
    """Each consumer gets something, so its binding is known there; then nothing is left."""
    for consumer in consumers:
        deadline = time.monotonic() + 30
        warm = None
        while warm is None:
            assert time.monotonic() < deadline
            producer.send(Message(body=b"", properties={"n": -1}))
            warm = consumer.receive(0.3)
        warm.acknowledge()
    for consumer in consumers:
        while (warm := consumer.receive(0.5)) is not None:
            warm.acknowledge()


@pytest.mark.differs("artemis", "a real Artemis keeps what is parked until that node id returns")
def test_messages_for_a_killed_member_come_back_and_none_twice(
    lineup: str, brokers: Lineup
) -> None:
    kinds = "+".join(sorted(lineup.split("+"), reverse=True))  # ours is the one that stays
    with running(brokers, kinds) as (stays, goes):
        name = "parking"
        total = 400
        with connection(stays) as here, connection(goes) as there:
            there.create_queue(name, routing="anycast")
            consumer = there.consumer(name)
            producer = here.producer(name, routing="anycast")
            until_known(producer, consumer)
            os.kill(goes.pid, signal.SIGSTOP)  # the link stands, and takes a little
            for number in range(total):
                producer.send(Message(body=BODY, properties={"n": number}))
            goes.kill()
        time.sleep(1.5)
        came_back = parked(stays, name, total)
        assert came_back and came_back == sorted(came_back)
        goes.start()
        with connection(goes) as there:
            consumer = there.consumer(name)
            rest: list[int] = []
            while len(rest) + len(came_back) < total:
                message = consumer.receive(20.0)
                assert message is not None, (len(rest), len(came_back))
                rest.append(int(str(message.properties["n"])))
                message.acknowledge()
            assert consumer.receive(2.0) is None
        assert sorted(came_back + rest) == list(range(total))


@pytest.mark.differs("artemis", "a real Artemis keeps what is parked until that node id returns")
def test_what_was_parked_comes_to_another_member_and_none_twice(
    trio: str, brokers: Lineup
) -> None:
    """Between two of ours; the member that is away may be a real Artemis."""
    with running(brokers, trio) as nodes, ExitStack() as stack:
        kinds = trio.split("+")
        others = [node for node, kind in zip(nodes, kinds, strict=True) if kind == "artemis"]
        stays, third, goes = [*[node for node in nodes if node not in others], *others]
        name = "order"
        total = 800
        near = stack.enter_context(connection(stays))
        consumers = []
        for node in (goes, third):
            there = stack.enter_context(connection(node))
            there.create_queue(name, routing="anycast")
            consumers.append(there.consumer(name, window=0))
        producer = near.producer(name, routing="anycast")
        until_known(producer, *consumers)
        os.kill(goes.pid, signal.SIGSTOP)  # the link stands, and takes a little
        for number in range(total):
            producer.send(Message(body=BODY, properties={"n": number}))
        goes.kill()
        time.sleep(3)
        got: list[int] = []
        while (message := consumers[1].receive(6.0)) is not None:
            got.append(int(str(message.properties["n"])))
            message.acknowledge()
        assert len(got) > total // 2 and len(got) == len(set(got))
