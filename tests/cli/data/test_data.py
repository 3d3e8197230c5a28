"""`atalanta data`: a node fills a folder once for all tests here; each looks at a copy of it."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from atalanta.cli.data.inspect import KINDS
from atalanta.ha.lease import LeaseTerms
from atalanta.kernel.journal import records
from atalanta.runtime.ha.shared_store import SharedStore
from atalanta.store.block import BLOCK_MAGIC
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.cli.calls import Cli
from tests.ports import free_port

pytestmark = pytest.mark.process

BIG_BYTES = 300_000
PAGED = """<address-settings><address-setting match="paged">
<max-size-messages>50</max-size-messages><address-full-policy>PAGE</address-full-policy>
</address-setting></address-settings>"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("node")
    port = free_port()
    with BrokerProcess(write_broker_xml(folder, port, more=PAGED)) as broker:
        cli = Cli(f"tcp://127.0.0.1:{port}")
        cli("produce", "orders", "--count", "5", "-p", "n:int=1", "--text", "säge")
        cli("consume", "orders", "--count", "2")
        cli("produce", "orders", "--text", "later", "--delay", "600000")
        cli("produce", "gone", "--non-durable")
        cli("produce", "paged", "--count", "300", "--size", "2000")
        cli("produce", "big", "--count", "2", "--size", str(BIG_BYTES))
        cli("data", "show", str(folder), status=75)
        assert "a node uses it" in cli.errors
        assert [
            row["text"]
            for row in cli.rows("data", "messages", str(folder), "orders", "--while-running")
        ]
        assert "a node writes here" in cli.errors
        broker.end(signal.SIGKILL)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    copied = tmp_path / "node"
    shutil.copytree(written, copied)
    return copied


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def queues(cli: Cli, folder: Path) -> dict[str, dict[str, Any]]:
    found = json.loads(cli("data", "show", str(folder), "--json"))
    return {queue["name"]: queue for queue in found["queues"]}


def test_queues_and_messages_of_a_stopped_node_are_shown_and_nothing_is_changed(folder: Path) -> None:
    cli = Cli()
    before = digest(folder)
    found = queues(cli, folder)
    assert (found["orders"]["messages"], found["orders"]["scheduled"]) == (4, 1)
    assert found["gone"]["messages"] == 0, "not durable"
    assert found["paged"]["messages"] == 300 and found["paged"]["in_pages"] > 0
    assert queues(cli, folder / "etc" / "broker.xml") == found
    table = cli("data", "show", str(folder / "data"))
    assert "orders" in table and "acknowledgements" in table
    rows = cli.rows("data", "messages", str(folder), "orders", "--selector", "n = 1")
    assert [row["text"] for row in rows] == ["säge"] * 3
    assert rows[0]["property_types"] == {"n": "int"}
    assert "every checksum is correct" in cli("data", "verify", str(folder))
    assert digest(folder) == before


def test_export_is_complete_and_in_order_and_overwrites_nothing(
    folder: Path, tmp_path: Path
) -> None:
    cli = Cli()
    out = tmp_path / "all.jsonl"
    cli("data", "export", str(folder), "--output", str(out))
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [next(iter(line)) for line in lines[:9]] == ["export", *["export_address"] * 4, *["export_queue"] * 4]
    lines = lines[9:]
    assert len(lines) == 306
    numbers = [line["message_id"] for line in lines if line["queue"] == "paged"]
    assert len(numbers) == 300 and numbers == sorted(numbers)
    cli("data", "export", str(folder), "--output", str(out), status=73)
    assert len(cli("data", "export", str(folder), "--queue", "orders").splitlines()) == 4


def test_large_messages_are_read_with_their_files(folder: Path) -> None:
    """They were called damaged, left out of exports, and the command succeeded."""
    cli = Cli()
    before = digest(folder)
    for place in (folder, folder / "etc" / "broker.xml", folder / "data"):
        lines = [json.loads(line) for line in cli("data", "export", str(place), "--queue", "big").splitlines()]
        assert "damaged" not in cli.errors
        assert [len(base64.b64decode(line["body_base64"])) for line in lines] == [BIG_BYTES] * 2
    assert queues(cli, folder)["big"]["messages"] == 2
    assert f"{BIG_BYTES}" in cli("data", "messages", str(folder), "big")
    assert digest(folder) == before
    file = next((folder / "data").glob("large*/*/*.msg"))
    file.write_bytes(file.read_bytes()[:-1])
    cli("data", "verify", str(folder), status=65)
    assert f"bytes_found={BIG_BYTES - 1}" in cli.errors


def test_a_torn_tail_is_reported_and_damage_is_an_error(folder: Path) -> None:
    cli = Cli()
    segment = next((folder / "data" / "journal").glob("journal-*.log"))
    data = bytearray(segment.read_bytes())
    last = data.rfind(BLOCK_MAGIC)
    data[last + 40] ^= 1
    segment.write_bytes(data)
    found = json.loads(cli("data", "verify", str(folder), "--json"))
    assert found["torn_bytes"] > 0 and f"offset {last}" in found["torn_at"]
    first = data.find(BLOCK_MAGIC)
    data[first + 40] ^= 1
    segment.write_bytes(data)
    cli("data", "verify", str(folder), status=65)
    assert segment.name in cli.errors and len(cli.errors.splitlines()) == 1


def test_a_damaged_page_is_named(folder: Path) -> None:
    cli = Cli()
    page = sorted((folder / "data" / "paging").rglob("page-*.page"))[0]
    data = bytearray(page.read_bytes())
    data[-1] ^= 1
    page.write_bytes(data)
    cli("data", "verify", str(folder), status=65)
    assert page.name in cli.errors and "damaged" in cli.errors


def test_every_kind_of_record_has_a_name() -> None:
    kinds = {value for name, value in vars(records).items() if name.isupper() and type(value) is int}
    assert kinds == set(KINDS)
    assert len(set(KINDS.values())) == len(KINDS)


def test_a_missing_queue_folder_or_node_id_is_named(folder: Path, tmp_path: Path) -> None:
    cli = Cli()
    cli("data", "messages", str(folder), "nosuch", status=66)
    cli("data", "show", str(tmp_path / "empty"), status=66)
    assert "there is no such folder" in cli.errors
    cli("data", "show", str(tmp_path), status=66)
    assert "no journal of atalanta" in cli.errors
    (folder / "data" / "journal" / "node-id").unlink()
    cli("data", "show", str(folder), status=65)
    assert "node-id is missing" in cli.errors


def test_the_newest_epoch_of_a_pair_is_read_and_not_while_it_is_served(folder: Path) -> None:
    cli = Cli()
    before = queues(cli, folder)
    data = folder / "data"

    def pair() -> SharedStore:
        terms = LeaseTerms(400_000_000)
        return SharedStore(data / "journal", data / "paging", data / "largemessages", terms, lambda: bytes(16))

    for number in (1, 2):
        store = pair()
        store.look()
        held = store.take()
        assert held is not None and held.epoch == number
        held._empty_earlier()
        cli("data", "show", str(folder), status=75)
        assert "a node uses it" in cli.errors
        assert cli.rows("data", "messages", str(folder), "orders", "--while-running")
        held.stop("released")
        assert queues(cli, folder) == before
    # Begun, and not complete.
    (data / "journal" / "epochs" / "00000003").mkdir()
    assert queues(cli, folder / "etc" / "broker.xml") == before
    assert "every checksum is correct" in cli("data", "verify", str(folder))
