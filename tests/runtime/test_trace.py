"""Log lines that people and programs search: stable, one line each, values unambiguous."""

from __future__ import annotations

import logging
import uuid

import pytest

from atalanta.runtime.ids import SystemIds
from atalanta.runtime.trace import LogTrace


def test_an_event_is_one_line_of_words(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "atalanta.node"):
        LogTrace().event(
            "dial_failed", {"host": "a:61616", "why": 'no "route"\nto host', "node": b"\x01\xff"}
        )
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert (
        record.getMessage() == 'dial_failed host=a:61616 why="no \\"route\\"\\nto host" node=01ff'
    )


def test_a_percent_sign_in_a_value_is_only_a_character(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "atalanta.node"):
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
