"""Recipes of docs/guide/spark.md: bodies in JSON, and in Avro with the header of a schema registry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.source_tree import ROOT
from tests.spark.fake_node import FakeCluster

FIELDS = [{"name": "id", "type": "long"}, {"name": "shop", "type": "string"}]
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
SCHEMAS = {
    7: json.dumps({"type": "record", "name": "Order", "fields": FIELDS}),
    8: json.dumps({"type": "record", "name": "Order", "fields": [*FIELDS, NOTE]}),
}


def test_json_bodies_become_columns_and_what_is_no_json_stays(
    fake: SparkSession, cluster: FakeCluster
) -> None:
    queue = cluster.nodes[0].queue("orders")
    queue.add('{"id": 1, "shop": "a"}')
    queue.add(b'{"id": 2, "shop": "b"}')
    queue.add("no JSON")
    rows = fake.read.format("atalanta").options(servers=cluster.servers, queue="orders").load()
    schema = "id bigint, shop string, _corrupt_record string"
    options = {"columnNameOfCorruptRecord": "_corrupt_record"}
    order = F.from_json(F.col("body").cast("string"), schema, options)
    found = rows.withColumn("order", order).select("order.*").collect()
    assert sorted(tuple(row) for row in found if row.id) == [(1, "a", None), (2, "b", None)]
    assert [row._corrupt_record for row in found if not row.id] == ["no JSON"]


@pytest.fixture
def registry() -> Iterator[str]:
    """A schema registry that knows two schemas."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = int(self.path.rpartition("/")[2])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"schema": SCHEMAS[number]}).encode())

        def log_message(self, format: str, *values: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def framed(number: int, payload: bytes) -> bytes:
    """Confluent's wire format: 0, the schema's id in four bytes, Avro."""
    return b"\x00" + number.to_bytes(4, "big") + payload


def text(value: str) -> bytes:
    """A short text in Avro."""
    return bytes([2 * len(value)]) + value.encode()


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_avro_with_the_header_of_a_schema_registry(cluster: FakeCluster, registry: str) -> None:
    repository = Path.home() / ".m2/repository/org/apache/spark/spark-avro_2.13"
    jars = sorted(repository.glob("*/spark-avro_2.13-*.jar"))
    if not jars:
        pytest.skip("mvn dependency:get -Dartifact=org.apache.spark:spark-avro_2.13:4.1.1 -Dtransitive=false")
    queue = cluster.nodes[0].queue("orders")
    queue.add(framed(7, b"\x02" + text("a")))
    queue.add(framed(8, b"\x04" + text("b") + b"\x02" + text("fast")))
    queue.add(framed(9, b"\x06"))
    queue.add(b"no Avro")
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.spark.avro_job", str(jars[-1]), cluster.servers, registry]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [line for line in done.stdout.splitlines() if line.startswith("row")] == [
        "row 1 a None False",
        "row 2 b fast False",
        "row None None None True",
        "row None None None True",
    ]
