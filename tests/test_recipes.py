"""docs/internals/recipes.md, carried out: each recipe in a toy of this process, with what a user sees of it."""

from __future__ import annotations

import ast
import logging
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
import typer
from pyspark.sql.types import StringType, StructField, StructType
from typer.testing import CliRunner

from atalanta.cli.application import MESSAGES, application
from atalanta.config import docs
from atalanta.config.problems import Report
from atalanta.config.xml.reader import XmlReader, into
from atalanta.config.xml.tree import XmlElement
from atalanta.kernel.option import ignored, option
from atalanta.management import metrics
from atalanta.management.request.call import Call, Operations, Parameters, text_of
from atalanta.runtime.trace import LogTrace
from atalanta.spark.arrow import schema
from atalanta.spark.arrow.chunk import ArrowChunk, texts
from atalanta.spark.arrow.columns import COLUMN_MAKERS, BatchBuilder
from atalanta.spark.dead_letters import SENT_AGAIN
from atalanta.spark.kafka_names import SINK_ALIASES
from tests.management.management_rig import Desk, Refused
from tests.source_tree import ROOT, SOURCE
from tests.spark.fake_node import chunk_of, message
from tools import events, reference

PAGE = (ROOT / "docs" / "internals" / "recipes.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide" / "spark.md").read_text(encoding="utf-8")


def test_the_page_names_what_exists() -> None:
    """Names in capitals stand in a file that their line, or the one before, names."""
    wrong = []
    lines = PAGE.splitlines()
    for at, line in enumerate(lines):
        near = " ".join(lines[max(0, at - 1) : at + 1])
        paths = [SOURCE / name for name in re.findall(r"`([\w/]+\.py)", near)]
        sources = "".join(path.read_text(encoding="utf-8") for path in paths if path.exists())
        for name in re.findall(r"\b[A-Z]+_[A-Z]+\b", line):
            if not re.search(rf"^{name}\b", sources, re.MULTILINE):
                wrong.append(f"{at + 1}: {name}")
    assert not wrong


def test_every_recipe_is_here() -> None:
    assert re.findall(r"^## (.*)", PAGE, re.MULTILINE) == [
        "A management operation", "An address setting", "A protocol", "A column of Spark's source or sink",
        "An event of the log", "A metric", "A command",
    ]  # fmt: skip
    assert "(protocols/README.md)" in PAGE  # tests/wire/test_line_protocol.py follows that one


# -- a management operation ------------------------------------------------------------------------


class ToyOperations:
    """A new group of operations."""

    def __init__(self) -> None:
        self.operations: Operations = {"shout": [("s", self.shout), ("si", self.shout)]}

    def shout(self, call: Call, given: Parameters) -> object:
        times = given[1] if len(given) > 1 else 1
        assert isinstance(times, int)
        return f"{call.queue.name}: {text_of(given, 0).upper() * times}"


def test_an_operation_is_an_entry_with_its_method() -> None:
    desk = Desk()
    desk.queue("orders")
    desk.management.controls["queue"].operations |= ToyOperations().operations
    assert desk.ask("queue.orders", "shout", "hey") == "orders: HEY"
    assert desk.ask("queue.orders", "shout", "hey", 2) == "orders: HEYHEY"
    with pytest.raises(Refused, match="shout"):
        desk.ask("queue.orders", "shout", "hey", 2, 3)
    with pytest.raises(Refused, match=r"queue\.nowhere"):
        desk.ask("queue.nowhere", "shout", "hey")


# -- an address setting ----------------------------------------------------------------------------


@dataclass
class ToySettings:
    volume: int = option(3, "shout-volume", "how loud", minimum=0, maximum=11)
    echo: bool = ignored(False, "shout-echo", "there are no walls")


def read_settings(**elements: str) -> tuple[ToySettings, Report]:
    settings, report = ToySettings(), Report()
    children = [
        XmlElement(name.replace("_", "-"), "", "broker.xml", line, {}, text)
        for line, (name, text) in enumerate(elements.items(), 2)
    ]
    XmlReader(report).read(XmlElement("address-setting", "", "broker.xml", 1, children=children), [into(settings)])
    return settings, report


def test_a_setting_is_one_line() -> None:
    settings, report = read_settings(shout_volume="11")
    assert (settings.volume, report.problems) == (11, [])
    (problem,) = read_settings(shout_volume="12")[1].problems
    assert "shout-volume" in str(problem) and "11" in str(problem) and ":2" in str(problem)
    (problem,) = read_settings(shout_volum="1")[1].problems
    assert "shout-volume" in str(problem)  # meant, perhaps
    assert [each.name for each in read_settings(shout_echo="true")[1].unsupported] == ["shout-echo"]


def test_the_page_of_settings_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "SECTIONS", (*docs.SECTIONS, ("`<address-setting match=…>`", "", ToySettings)))
    assert "| `shout-volume` | 3 |  | how loud |" in docs.page()


# -- a column --------------------------------------------------------------------------------------


def test_every_column_of_the_source_has_what_fills_it() -> None:
    assert set(COLUMN_MAKERS) == set(schema.TYPES)


def test_the_guide_has_every_column() -> None:
    reading, _, writing = GUIDE.partition("\n## Writing")
    rows = re.findall(r"^\| (`[^|]*) \|", reading.partition("### Columns")[2].partition("### Options")[0], re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(schema.TYPES)
    rows = re.findall(r"^\| (`[^|]*) \|", writing.partition("Any other column")[0], re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == {*schema.SINK_COLUMNS, *SINK_ALIASES}


def test_what_a_dead_letter_keeps_can_be_written() -> None:
    assert set(SENT_AGAIN) <= set(schema.SINK_COLUMNS) & set(schema.TYPES)


def test_a_column_is_a_row_and_what_fills_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def shouted(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
        found = COLUMN_MAKERS["text"](kind, rows).to_pylist()
        return texts(kind, [None if text is None else text.upper() for text in found])

    monkeypatch.setitem(schema.TYPES, "shouted", StringType())
    monkeypatch.setitem(COLUMN_MAKERS, "shouted", shouted)
    chosen = schema.default_schema(True, ["text", "shouted"])
    schema.check_schema(chosen)
    assert chosen == StructType([StructField("text", StringType()), StructField("shouted", StringType())])
    batch = BatchBuilder(chosen, "orders", "node-1").build(*chunk_of([(1, message("hey"), 0)]))
    assert batch.to_pylist() == [{"text": "hey", "shouted": "HEY"}]


# -- an event --------------------------------------------------------------------------------------


def test_an_event_is_a_line_with_its_row(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    with caplog.at_level(logging.INFO, "atalanta.node.node"):
        LogTrace().event("shout_failed", {"queue": "orders", "volume": 11})
    assert caplog.messages == ["shout_failed queue=orders volume=11"]
    assert caplog.records[0].levelno == logging.WARNING
    finder = events.Finder()
    finder.visit(ast.parse('self.trace.event("shout_failed", {"queue": queue.name, "volume": 11})'))
    found = {name: list(each) for name, each in finder.found.items()}
    assert found == {"shout_failed": ["queue", "volume"]}
    monkeypatch.setattr(events, "events", lambda: found)
    assert "| `shout_failed` | warning | `queue` `volume` | too loud |\n" in events.page({"shout_failed": "too loud"})


# -- a metric --------------------------------------------------------------------------------------


def test_a_metric_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    figure: Any = ("shouts", "how often it was loud", lambda queue: len(queue.name))
    monkeypatch.setattr(metrics, "QUEUE_FIGURES", [*metrics.QUEUE_FIGURES, figure])
    desk = Desk()
    desk.queue("orders")
    desk.resources.register_metrics(lambda: iter(["atalanta_walls 4\n"]))
    text = "".join(desk.management.metrics())
    assert "# HELP artemis_shouts how often it was loud\n" in text
    assert re.search(r'^artemis_shouts\{address="orders",broker="[^"]*",queue="orders"\} 6$', text, re.MULTILINE)
    assert "\natalanta_walls 4\n" in text


# -- a command -------------------------------------------------------------------------------------


def shout(text: str, times: int = 1) -> None:
    """Say it loud."""
    typer.echo(text.upper() * times)


def test_a_command_is_a_function_and_the_line_that_registers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "registered_commands", [*application.registered_commands])
    application.command(rich_help_panel=MESSAGES)(shout)
    done = CliRunner().invoke(application, ["shout", "hey", "--times", "2"])
    assert (done.exit_code, done.output) == (0, "HEYHEY\n")
    assert CliRunner().invoke(application, ["shout"]).exit_code == 2
    assert "## `atalanta shout`" in reference.cli_page()
