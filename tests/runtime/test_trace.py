"""Log lines that people and programs search: stable, one line each, values unambiguous."""

from __future__ import annotations

import json
import logging
import re
import uuid

import pytest

from atalanta.runtime.ids import SystemIds
from atalanta.runtime.process.logs import JsonFormatter, LineLimit, level_of, log_event
from atalanta.runtime.trace import LogTrace


def test_an_event_is_one_line_of_words(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "atalanta.node.node"):
        LogTrace().event(
            "dial_failed", {"host": "a:61616", "why": 'no "route"\nto host', "node": b"\x01\xff"}
        )
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert (
        record.getMessage() == 'dial_failed host=a:61616 why="no \\"route\\"\\nto host" node=01ff'
    )


def test_a_percent_sign_in_a_value_is_only_a_character(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "atalanta.node.node"):
        LogTrace().event("queue_created", {"name": "100%s"})
    assert caplog.messages == ["queue_created name=100%s"]


def test_counters_add_up() -> None:
    trace = LogTrace()
    trace.count("messages")
    trace.count("messages", 4)
    assert trace.counters == {"messages": 5}


def test_ids_are_version_one_and_differ() -> None:
    ids = SystemIds()
    made = [ids.uuid() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert {uuid.UUID(bytes=one).version for one in made} == {1}
    assert len(ids.secret(24)) == 24 and ids.secret(24) != ids.secret(24)


def test_of_one_name_so_many_lines_a_second_and_then_their_number() -> None:
    limit = LineLimit(2)
    assert [limit.take("a", 1.0), limit.take("a", 1.1), limit.take("a", 1.2)] == [0, 0, -1]
    assert limit.take("b", 1.3) == 0
    assert limit.take("a", 1.9) == -1
    assert limit.take("a", 2.0) == 2
    assert limit.take("a", 2.1) == 0


def test_a_flood_of_one_event_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    trace = LogTrace()
    with caplog.at_level(logging.INFO, "atalanta.node.node"):
        for _ in range(1_000):
            trace.event("login_refused", {"user": "x"})
        trace.event("member", {"node": "y"})
    assert caplog.messages[-1] == "member node=y"
    assert len(caplog.messages) < 200
    assert trace.counters["events.hidden"] == 1_000 - (len(caplog.messages) - 1)


def test_json_lines(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "atalanta.node.node"):
        LogTrace().event("dial_failed", {"why": "ä\n", "port": 5, "node": b"\x01", "level": None})
        try:
            raise ValueError("x")
        except ValueError as error:
            log_event(logging.getLogger("atalanta.node.node"), "node_bug", {}, error)
        logging.getLogger("foreign").warning("50%% of %s", "it")
    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert all("\n" not in line for line in lines)
    first, second, third = (json.loads(line) for line in lines)
    assert (first["event"], first["level"], first["logger"]) == (
        "dial_failed", "warning", "atalanta.node.node",
    )  # fmt: skip
    assert (first["why"], first["port"], first["node"]) == ("ä\n", 5, "01")
    assert "field_level" in first and re.fullmatch(r"\d{4}-.*T.*\.\d{3}Z", first["time"])
    assert second["event"] == "node_bug" and "ValueError: x" in second["traceback"]
    assert (third["event"], third["text"]) == ("message", "50% of it")


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("dial_failed", logging.WARNING),
        ("node_bug", logging.CRITICAL),
        ("reload_bug", logging.ERROR),
        ("trace_routed", logging.DEBUG),
        ("member_gone", logging.INFO),
    ],
)
def test_levels_come_from_the_names(name: str, level: int) -> None:
    assert level_of(name) == level
