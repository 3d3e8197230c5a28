"""A journal of an earlier build, whose messages have two routes to a queue: it is read, and each comes once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.cli.calls import Cli
from tests.ports import free_port

pytestmark = pytest.mark.process

VECTOR = Path(__file__).parents[2] / "golden" / "vectors" / "journal-doubled-routes.log.gz"
QUEUES = {"here0": "pub.t", "here1": "pub.*", "here2": "pub.#"}
NODE_ID = "30254894-eb7c-11f1-8ddd-edcd1db5ff1b"
SEGMENT = """<journal-file-size>64K</journal-file-size>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    journal = tmp_path / "data" / "journal"
    journal.mkdir(parents=True)
    (journal / "journal-00000000000000000001.log").write_bytes(gzip.decompress(VECTOR.read_bytes()))
    (journal / "node-id").write_text(NODE_ID + "\n", encoding="ascii")
    return tmp_path


def test_the_doubled_messages_of_a_journal_are_shown(folder: Path) -> None:
    shown = json.loads(Cli()("data", "show", str(folder / "data"), "--json"))
    found = {queue["name"]: queue for queue in shown["queues"]}
    forward = [name for name in found if name.startswith("$.artemis.internal.sf.")]
    assert len(forward) == 1, "one peer, which was away"
    for name in [*QUEUES, *forward]:
        assert (found[name]["messages"], found[name]["scheduled"]) == (3, 1), name


def test_a_node_starts_with_it_and_delivers_each_message_once(folder: Path) -> None:
    port = free_port()
    for _ in range(2):
        with BrokerProcess(write_broker_xml(folder, port, more=SEGMENT)):
            cli = Cli(f"tcp://127.0.0.1:{port}")
            for name, address in QUEUES.items():
                rows = cli.rows("browse", f"fqqn://{address}::{name}")
                assert [row["text"] for row in rows] == ["first", "second", "later"]
    with BrokerProcess(write_broker_xml(folder, port, more=SEGMENT)):
        cli = Cli(f"tcp://127.0.0.1:{port}")
        for name, address in QUEUES.items():
            rows = cli.rows("consume", f"fqqn://{address}::{name}", "--timeout", "0.5")
            assert [row["text"] for row in rows] == ["first", "second", "later"]
        cli("produce", "topic://pub.t", "--text", "new")
        for name, address in QUEUES.items():
            rows = cli.rows("consume", f"fqqn://{address}::{name}", "--timeout", "0.5")
            assert [row["text"] for row in rows] == ["new"]
