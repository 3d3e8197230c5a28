"""The alarms, events and totals of a node by management."""

from __future__ import annotations

import json
from typing import Any

import pytest

from atalanta.kernel.event_record import NAMES_MAX, OF_A_NAME_MAX, EventRecord
from tests.management.management_rig import Desk, Refused


def listed(desk: Desk, level: str, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(str(desk.ask("broker", "listEvents", level, count)))
    return found


def test_no_alarm_of_a_healthy_node() -> None:
    desk = Desk()
    desk.queue("orders")
    desk.fill("orders", 3)
    assert desk.json("broker", "listAlarms") == []


def test_an_alarm_has_its_figures() -> None:
    desk = Desk()
    desk.queue("orders")
    desk.ask("address.orders", "block")
    assert desk.json("broker", "listAlarms") == [{
        "alarm": "address_blocked_by_operator", "address": "orders", "policy": "PAGE", "bytes": 0, "limitBytes": -1,
        "messages": 0, "limitMessages": -1, "pagedMessages": 0, "dropped": 0, "waitingSenders": 0,
    }]  # fmt: skip


def test_the_newest_events() -> None:
    desk = Desk()
    assert desk.json("broker", "listEvents", "info", 10) == []
    record = desk.trace.kept = EventRecord()
    for number in range(OF_A_NAME_MAX + 5):
        record.note(1_000 + number, 30, "login_refused", {"user": f"u{number}", "raw": b"\x01"})
    record.note(2_000, 40, "disk_exhausted", {})
    error, *warnings = listed(desk, "warning", 3)
    assert error == {"number": 26, "time": 2_000, "level": "error", "event": "disk_exhausted", "count": 1, "fields": {}}
    assert [each["fields"]["user"] for each in warnings] == ["u24", "u23"]
    assert (warnings[0]["count"], warnings[0]["fields"]["raw"]) == (25, "01")
    (only,) = listed(desk, "error", 100)
    assert only["event"] == "disk_exhausted"
    with pytest.raises(Refused, match="a level is one of info, warning, error, critical: loud"):
        desk.ask("broker", "listEvents", "loud", 1)


def test_names_are_bounded() -> None:
    record = EventRecord()
    for number in range(NAMES_MAX + 10):
        record.note(0, 30, f"name{number}", {})
    assert len(record.by_name) == NAMES_MAX


def test_totals() -> None:
    desk = Desk()
    desk.queue("orders")
    desk.fill("orders", 3)
    told = json.loads(str(desk.get("broker", "TotalsAsJSON")))
    assert (told["queues"], told["messages"], told["consumers"]) == (2, 3, 0)  # the desk's own for replies, too


def test_backups_that_wait() -> None:
    assert Desk().get("broker", "WaitingBackups") is None
