"""Messages that a real Java client has compressed are rows as they were sent, on our node and on a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow
import pytest

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.source import AtalantaDataSource
from tests.interop.harness.jms import PASSWORD, USER, Jms
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

WORD: Final = "säge € 𝄞 "  # as in Kinds.java
# Kind and size. The client compresses bodies above 100 KiB: those that are then smaller are ordinary messages, noise
# stays large, and above 4 MiB a node hands it out in pieces. The first two are sent as they are.
SENT: Final = (
    ("text", 20), ("bytes", 1_000), ("text", 300_000), ("bytes", 300_000), ("noise", 300_000), ("noise", 5_000_000),
)  # fmt: skip
MODES: Final = {"atalanta": ("log", "wal"), "artemis": ("wal",)}


def noise(size: int) -> bytes:
    """Returns what java.util.Random(size).nextBytes gives."""
    found = bytearray()
    state = size ^ 0x5DEECE66D
    while len(found) < size:
        state = (state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        found += (state >> 16).to_bytes(4, "little")
    return bytes(found[:size])


def body_of(kind: str, size: int) -> bytes:
    if kind == "text":
        units = len(WORD.encode("utf-16-le")) // 2
        return (WORD * (size // units + 1)).encode()
    return noise(size) if kind == "noise" else bytes(index % 251 for index in range(size))


@pytest.fixture(scope="module", params=["atalanta", "artemis"])
def filled(request: pytest.FixtureRequest, brokers: Lineup, jms: Jms) -> Iterator[BrokerProcess]:
    node = brokers.single(request.param)
    node.start()
    connection = jms.open(f"packed-{request.param}", node, "compressLargeMessage=true")
    for mode in MODES[request.param]:
        producer = jms.producer(f"{connection}.{mode}", connection, f"queue:packed.{mode}")
        for number, (kind, size) in enumerate(SENT):
            jms("send kind", producer, kind, number, size)
    jms.close_all(connection)
    yield node
    node.close()


def rows_of(reader: Any, partitions: Any) -> list[dict[str, Any]]:
    return [
        row
        for part in partitions
        for batch in reader.read(part)
        for row in pyarrow.Table.from_batches([batch]).to_pylist()
    ]


def check(rows: list[dict[str, Any]]) -> None:
    """Checks that the rows are what the application has sent."""
    assert [dict(row["properties"])["number"] for row in rows] == [str(number) for number in range(len(SENT))]
    for (kind, size), row in zip(SENT, rows, strict=True):
        body = body_of(kind, size)
        assert row["body"] == body, (kind, size, len(row["body"] or b""))
        assert row["text"] == (body.decode() if kind == "text" else None)
        assert row["type"] == ("text" if kind == "text" else "bytes") and row["error"] is None
        assert not [name for name, _ in row["properties"] if name.startswith("_AMQ")]


def options_for(node: BrokerProcess, mode: str) -> dict[str, str]:
    login = {"servers": f"127.0.0.1:{node.port}", "user": USER, "password": PASSWORD}
    return login | {"queue": f"packed.{mode}", "sourceMode": mode}


def test_batch_reads(filled: BrokerProcess) -> None:
    for mode in MODES[filled.kind]:
        reader = AtalantaDataSource(options_for(filled, mode)).reader(COLUMNS)
        check(rows_of(reader, reader.partitions()))


def test_streams(filled: BrokerProcess, tmp_path: Path) -> None:
    for mode in MODES[filled.kind]:
        options = options_for(filled, mode)
        if mode == "wal":
            options["walLocation"] = str(tmp_path / "wal")
        reader: Any = AtalantaDataSource(options).streamReader(COLUMNS)
        start = reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        check(rows_of(reader, reader.partitions(start, end)))
        reader.stop()
