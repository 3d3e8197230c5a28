"""Requests of the Spark sink at a real Artemis: branches that survive a restart, and first decisions."""

from __future__ import annotations

import json
import time
import uuid

import pytest

from atalanta.client.blocking import connect as connect_blocking
from atalanta.spark.errors import DuplicateRow, GatewayError
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


def of(address: str, value: str, duplicate_id: str | None = None) -> OutMessage:
    return OutMessage(address, "anycast", None, value, 3, True, 4, 0, None, {}, None, None, None, duplicate_id)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("DROP", "has the address-full-policy DROP, and this broker confirms messages that it drops"),
        ("FAIL", "is full.*set its address-full-policy PAGE"),
        ("BLOCK", r"has taken no message for 2 s \(blockTimeout\).*BLOCK"),
    ],
)
def test_a_full_address_is_told(node: BrokerProcess, policy: str, said: str) -> None:
    """The batch fills the address by itself; nothing of it arrives."""
    server, address = f"127.0.0.1:{node.port}", f"spark.full.{policy.lower()}"
    with connect_blocking(f"tcp://{server}", user=USER, password=PASSWORD) as connection:
        settings = {"addressFullMessagePolicy": policy, "maxSizeBytes": 20_000, "pageSizeBytes": 10_000}
        connection.management().call("broker", "addAddressSettings", address, json.dumps(settings))
        connection.create_queue(address, routing="anycast")
        gateway = connect(server, Credentials(USER, PASSWORD, 5.0, 10.0, block_timeout_s=2.0))
        try:
            # More than the window of credits, which Artemis has granted when the address was empty.
            rows = [of(address, f"{number}" * 1_000) for number in range(300)]
            with pytest.raises(GatewayError, match=said) as caught:
                gateway.prepare(rows, str(BranchName.new("full", 0, 0)))
            assert address in str(caught.value)
            assert not [name for name in gateway.prepared_branches() if name.startswith("full/")]
        finally:
            gateway.close()
        assert connection.query_queue(address).message_count == 0


def test_a_repeated_duplicate_id_is_told(node: BrokerProcess) -> None:
    gateway = connect(f"127.0.0.1:{node.port}", Credentials(USER, PASSWORD, 5.0, 10.0))
    try:
        first = str(BranchName.new("repeats", 0, 0))
        gateway.prepare([of("spark.once", "a", "id-1")], first)
        assert gateway.commit_branch(first)
        with pytest.raises(DuplicateRow, match="Duplicate message detected.*dropDuplicates"):
            gateway.prepare([of("spark.once", "b", "id-1")], str(BranchName.new("repeats", 1, 0)))
        # A branch that a killed driver has left does not keep the repeat of its batch from its ids.
        left, again = (str(BranchName.new("repeats", 2, 0)) for _ in range(2))
        for branch in (left, again):
            gateway.prepare([of("spark.once", "c", "id-2")], branch)
        assert gateway.commit_branch(again) and gateway.roll_back_branch(left)
        both = [str(BranchName.new("repeats", 3, number)) for number in range(2)]
        for branch in both:
            gateway.prepare([of("spark.once", branch, "id-3")], branch)
        assert all([gateway.commit_branch(branch) for branch in both])
        assert not gateway.is_taken_over("repeats", 0)
        gateway.decide("repeats", 0, "one")
        gateway.take_over("repeats", 0)
        assert gateway.is_taken_over("repeats", 0) and not gateway.is_taken_over("repeats", 1)
        assert gateway.decisions("repeats") == {0: "one"}
        gateway.forget_decisions("repeats", 1)
        assert gateway.decisions("repeats") == {} and not gateway.is_taken_over("repeats", 0)
    finally:
        gateway.close()
    with connect_blocking(f"tcp://127.0.0.1:{node.port}", user=USER, password=PASSWORD) as connection:
        found = [message.text for message in connection.consumer("spark.once", browse=True)]
    assert found == ["a", "c", *both]  # our nodes drop the second


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
