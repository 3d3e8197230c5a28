"""Requests of the Spark sink at a real Artemis: branches that survive a restart, and first decisions."""

from __future__ import annotations

import json
import time
import uuid

import pytest

from atalanta.client.blocking import connect as connect_blocking
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials, OutMessage
from atalanta.spark.options import write_options
from atalanta.spark.write.abandoned_branches import ABANDONED_S, AbandonedBranches
from atalanta.spark.write.batch_commit import end_others
from atalanta.spark.write.branch_name import BranchName, fingerprint
from atalanta.spark.write.node_calls import NodeCalls
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


def test_abandoned_branches_end(node: BrokerProcess) -> None:
    server = f"127.0.0.1:{node.port}"
    login = write_options(
        {"servers": server, "user": USER, "password": PASSWORD, "address": "spark.abandoned"}
    ).login
    old_s = int(time.time()) - ABANDONED_S - 60
    decided, lost = (
        BranchName(
            str(uuid.uuid4()), 0, f"0.{uuid.uuid4().hex}.{old_s:08x}.{fingerprint([server])}"
        )
        for _ in range(2)
    )
    fresh = BranchName.new(str(uuid.uuid4()), 0, 0, [server])
    with NodeCalls(login, connect) as nodes:
        gateway = nodes.gateway(server)
        for branch, row in ((decided, "decided"), (lost, "lost"), (fresh, "fresh")):
            message = text(row)
            message.address = "spark.abandoned"
            gateway.prepare([message], str(branch))
        gateway.decide(decided.query, 0, json.dumps({"branches": [[server, str(decided)]]}))
        AbandonedBranches([server], nodes).end({server: end_others(gateway, "own", 0, set())})
        names = gateway.prepared_branches()
        assert str(fresh) in names
        assert not {str(decided), str(lost)} & set(names)
        gateway.roll_back_branch(str(fresh))
    with connect_blocking(f"tcp://{server}", user=USER, password=PASSWORD) as connection:
        found = [message.text for message in connection.consumer("spark.abandoned", browse=True)]
    assert found == ["decided"]
