"""The alerting service, the screen, and what the demo knows of the Spark program."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from atalanta.client import ReceivedMessage
from atalanta.spark.options import read_options
from atalanta.spark.pipeline.check import read_pipeline
from atalanta.spark.pipeline.declaration import texts
from examples.flights import results
from examples.flights.airports import (
    AIRPORTS,
    ALERTS_AIRPORT,
    ARCHIVE_QUEUE,
    DELAYS_ADDRESS,
    DELAYS_QUEUE,
    FLIGHTS_ADDRESS,
    HOST,
    OPERATOR_LOGIN,
    SPARK_LOGIN,
    WINDOWS_QUEUE,
)
from examples.flights.alerts import AlertingService
from examples.flights.compare import Check
from examples.flights.out_folder import empty_folder
from examples.flights.progress import Progress
from examples.flights.report import Report
from examples.flights.spark_driver import PIPELINE, Batch, Settings, SparkDriver
from examples.flights.summary import print_summary


@dataclass
class FakeMessage:
    text: str
    redelivered: bool = False


def alert(key: str, redelivered: bool = False) -> ReceivedMessage:
    row = {"key": key, "carrier": "UA", "origin": "EWR", "dest": "IAH", "dep_delay": 61, "tailnum": "N1"}
    return cast(ReceivedMessage, FakeMessage(json.dumps(row), redelivered))


def test_an_alert_that_comes_twice_counts_once(tmp_path: Path) -> None:
    progress = Progress(["EWR"])
    service = AlertingService(progress)
    service.note(alert("a"))
    service.note(alert("b"))
    service.note(alert("a", redelivered=True))
    assert (progress.alerts, service.deliveries, service.redelivered, service.repeats) == (2, 3, 1, 1)
    service.write(tmp_path)
    document = json.loads((tmp_path / results.ALERTS).read_text())
    assert document["repeats_dropped"] == 1
    assert results.read_alerts(tmp_path)["key"].tolist() == ["a", "b"]


def test_a_batch_in_flight_is_planned_and_not_committed(tmp_path: Path) -> None:
    batches: list[Batch] = []
    driver = SparkDriver(Settings(str(tmp_path), "local[2]", 10, 60), tmp_path / "log", batches.append)
    assert driver.in_flight("archive") is None
    for folder, names in (("offsets", ["8", "9", "10", ".10.crc"]), ("commits", ["8", "9"])):
        path = tmp_path / "checkpoints" / "archive" / folder
        path.mkdir(parents=True)
        for name in names:
            (path / name).touch()
    assert driver.in_flight("archive") == 10
    (tmp_path / "checkpoints" / "archive" / "commits" / "10").touch()
    assert driver.in_flight("archive") is None


def test_the_files_of_the_nodes_say_what_the_program_says() -> None:
    for known in AIRPORTS:
        text = (known.configuration / "broker.xml").read_text()
        assert f"<name>{known.code}</name>" in text
        assert f'<acceptor name="core">{known.server}?' in text
        assert ('name="alerts"' in text) == (known == ALERTS_AIRPORT)
        users = (known.configuration / "artemis-users.properties").read_text()
        assert f"{OPERATOR_LOGIN.user} = {OPERATOR_LOGIN.password}\n" in users


def test_the_pipeline_of_the_demo_has_no_problems_and_the_servers_of_the_program(tmp_path: Path) -> None:
    settings = Settings(str(tmp_path), "local[2]", 10, 60)
    declaration = read_pipeline(PIPELINE, settings.variables()).declaration
    readers = [read_options(texts(source.options)) for source in declaration.source]
    queues = [(FLIGHTS_ADDRESS, ARCHIVE_QUEUE), (FLIGHTS_ADDRESS, DELAYS_QUEUE), (DELAYS_ADDRESS, WINDOWS_QUEUE)]
    assert [reader.queue for reader in readers] == [f"{address}::{queue}" for address, queue in queues]
    writers = [query.options for query in declaration.query if query.format == "atalanta"]
    assert [options["address"] for options in writers] == [DELAYS_ADDRESS]
    for options in (*(source.options for source in declaration.source), *writers):
        assert options["servers"] == ",".join(f"{HOST}:{airport.port}" for airport in AIRPORTS)
        assert (options["user"], options["password"]) == (SPARK_LOGIN.user, SPARK_LOGIN.password)


def test_the_table_shows_what_differs() -> None:
    out = io.StringIO()
    wrong = Check("archive: flights", 10, 9, lost=1, examples=["lost: 2013-01-01 UA1 EWR"])
    print_summary(Console(file=out, width=120), Report(10, [wrong]), Path("demo-out"))
    assert "✗" in out.getvalue()
    assert "lost: 2013-01-01 UA1 EWR" in out.getvalue()
    assert "demo-out/report.json" in out.getvalue()


def test_only_a_folder_of_the_demo_is_emptied(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("…")
    with pytest.raises(ValueError, match="choose another OUT"):
        empty_folder(precious)
    assert (precious / "thesis.txt").exists()
    own = tmp_path / "demo-out"
    empty_folder(own)
    (own / "archive").mkdir()
    empty_folder(own)
    assert not (own / "archive").exists()
