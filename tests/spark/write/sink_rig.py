"""Rows for the sink, and what the fake nodes have of them."""

from __future__ import annotations

import pyarrow as pa

from tests.spark.fake_node import FakeCluster


def batches(*texts: str) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"value": [text]}) for text in texts]


def sent(cluster: FakeCluster) -> list[str]:
    return sorted(str(one.text) for node in cluster.nodes for one in node.sent)


def prepared(cluster: FakeCluster) -> int:
    return sum(len(node.prepared) for node in cluster.nodes)
