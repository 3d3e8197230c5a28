"""Tasks of one worker process: which connections they share."""

from __future__ import annotations

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.gateway.gateway import Credentials
from atalanta.spark.options import read_options
from atalanta.spark.read.offsets import Range
from atalanta.spark.read.partition_reader import RangePartition, RangeReader
from tests.spark.fake_node import FakeCluster, FakeGateway

QUEUE = "flights::archive"


def test_a_task_never_reads_with_what_another_query_logged_in_with(cluster: FakeCluster) -> None:
    """Certificates are users, too."""
    logins: list[tuple[str | None, tuple[tuple[str, str], ...]]] = []

    def connect(server: str, credentials: Credentials) -> FakeGateway:
        logins.append((credentials.password, credentials.tls))
        return FakeGateway(server, credentials)

    node = cluster.nodes[0]
    node.queue(QUEUE).add("row")
    alice = {"sslEnabled": "true", "keyStorePath": "alice.pem"}
    bob = {"sslEnabled": "true", "keyStorePath": "bob.pem"}
    for more in (alice, alice, bob, {"user": "u", "password": "a"}, {"user": "u", "password": "b"}):
        options = read_options({"servers": node.address, "queue": QUEUE} | more)
        part = RangePartition(Range(node.node_id, "inc-1", node.address, 0, 1))
        (batch,) = RangeReader(options, COLUMNS, connect, part).batches()
        assert batch.num_rows == 1
    assert logins == [
        (None, tuple(alice.items())), (None, tuple(bob.items())), ("a", ()), ("b", ()),
    ]  # fmt: skip
