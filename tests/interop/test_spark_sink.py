"""Requests of the Spark sink at a real Artemis: branches that survive a restart, and first decisions."""

from __future__ import annotations

import uuid

import pytest

from atalanta.client.blocking import connect as connect_blocking
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials, OutMessage
from atalanta.spark.write.branch_name import BranchName
from tests.interop.harness.jms import PASSWORD, USER
from tests.interop.harness.node import BrokerProcess

USUAL_TARGET = "artemis"
pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]


def text(value: str) -> OutMessage:
    return OutMessage(
        "spark.out", "anycast", None, value, 3, True, 4, 0, None, {}, None, None, None, None
    )


def test_branches_and_decisions(node: BrokerProcess) -> None:
    server = f"127.0.0.1:{node.port}"
    query = str(uuid.uuid4())
    first, second, third = (BranchName.new(query, 0, number) for number in range(3))
    gateway = connect(server, Credentials(USER, PASSWORD, 5.0, 10.0))
    try:
        for branch in (first, second, third):
            gateway.prepare([text(f"{number}") for number in range(3)], str(branch))
        assert sorted(gateway.prepared_branches()) == sorted(map(str, (first, second, third)))
        assert [gateway.commit_branch(str(first)) for _ in range(2)] == [True, False]
        assert [gateway.roll_back_branch(str(second)) for _ in range(2)] == [True, False]
        assert gateway.decisions(query) == {}
        for batch, decision in [(0, "one"), (0, "two"), (1, "three")]:
            gateway.decide(query, batch, decision)
        assert gateway.decisions(query) == {0: "one", 1: "three"}
        gateway.forget_decisions(query, 1)
        assert gateway.decisions(query) == {1: "three"}
    finally:
        gateway.close()
    node.stop()
    node.start()
    gateway = connect(server, Credentials(USER, PASSWORD, 5.0, 10.0))
    try:
        assert gateway.prepared_branches() == [str(third)]
        assert gateway.commit_branch(str(third))
        gateway.decide(query, 1, "late")
        assert gateway.decisions(query) == {1: "three"}
    finally:
        gateway.close()
    with connect_blocking(f"tcp://{server}", user=USER, password=PASSWORD) as connection:
        found = [message.text for message in connection.consumer("spark.out", browse=True)]
    assert found == ["0", "1", "2"] * 2
