"""Findings about what a node has logged. Each event of level error has one, or a reason why it has none."""

from __future__ import annotations

import logging

import pytest

from atalanta.runtime.process.logs import level_of
from atalanta.survey.findings.cluster_finding import ClusterFinding
from atalanta.survey.findings.events import (
    ELSEWHERE,
    FINDINGS,
    INCIDENT_MS,
    LOGIN_MS,
    event_findings,
)
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.health import EventView
from tests.management.management_rig import Desk
from tests.survey.desk import findings
from tools.events import events

ERRORS = [name for name in events() if level_of(name) >= logging.ERROR]
DELETING = ("delete", "remove", "empty", "purge", "wipe")


def node_with(*logged: EventView, clock_ms: int = 10_000) -> NodeView:
    node = NodeView("h:1", "id", "a", ours=True, clock_ms=clock_ms)
    for number, event in enumerate(logged, 1):
        event.number = number
        node.events.insert(0, event)
    return node


def found(*logged: EventView, clock_ms: int = 10_000) -> list[ClusterFinding]:
    return list(event_findings(LiveCluster([node_with(*logged, clock_ms=clock_ms)])))


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_of_the_log_has_a_finding_or_a_reason(name: str) -> None:
    assert (name in FINDINGS) != (name in ELSEWHERE), f"{name}: an entry of FINDINGS, or of ELSEWHERE with the reason"
    if name in ELSEWHERE:
        assert len(ELSEWHERE[name].split()) > 5
        return
    fields: dict[str, object] = {field: f"the {field}" for field in events()[name]}
    (one,) = found(EventView(name, "error", time_ms=9_000, fields=fields))
    assert (one.code, one.severity, one.node) == (name, "error", "a")
    assert "(unknown)" not in one.text + one.remedy and one.remedy


@pytest.mark.parametrize("name", FINDINGS)
def test_texts_have_the_fields_of_the_event_and_remedies_delete_nothing(name: str) -> None:
    fields: dict[str, object] = {field: f"the {field}" for field in events()[name]}
    (one,) = found(EventView(name, "warning", time_ms=9_000, fields=fields))
    assert "(unknown)" not in one.text + one.remedy
    assert not any(word in one.remedy.lower().split() for word in DELETING)
    assert all(over in events() for over in FINDINGS[name].over)


def test_no_entry_of_an_event_that_is_gone() -> None:
    assert [name for name in [*FINDINGS, *ELSEWHERE] if name not in events()] == []


def test_refused_logins() -> None:
    def login(time_ms: int) -> EventView:
        return EventView("login_refused", "warning", 0, time_ms, 312, {"user": "bob", "remote": "192.0.2.7:5"})

    (one,) = found(login(1_000), login(5_000))
    assert (one.severity, one.text) == (
        "warning", "refused logins: 312, the last one of user bob from 192.0.2.7:5, 5 s ago",
    )  # fmt: skip
    assert found(login(1_000), clock_ms=LOGIN_MS + 2_000) == []


def test_what_has_ended_is_not_told() -> None:
    down = EventView("directory_unavailable", "error", fields={"directory": "ldap1", "why": "no route"})
    other = EventView("directory_available", "info", fields={"directory": "ldap2"})
    (one,) = found(down, other)
    assert one.text == "directory ldap1 gives no answers, so nobody new comes in by it: no route"
    assert found(down, EventView("directory_available", "info", fields={"directory": "ldap1"})) == []
    assert len(found(EventView("directory_available", "info", fields={"directory": "ldap1"}), down)) == 1


def test_an_incident_is_a_note_after_a_day() -> None:
    damaged = EventView("page_file_damaged", "error", 0, 0, 1, {"queue": "orders", "messages": 7, "sequences": "3-9"})
    assert [one.severity for one in found(damaged, clock_ms=5_000)] == ["error"]
    assert [one.severity for one in found(damaged, clock_ms=INCIDENT_MS + 5_000)] == ["note"]


def test_an_error_of_a_later_release() -> None:
    (one,) = found(EventView("moon_damaged", "error", fields={"phase": "new"}), EventView("sun_lost", "warning"))
    assert (one.severity, one.code) == ("error", "logged_error")
    assert "moon_damaged" in one.text and "phase new" in one.text


def test_the_log_of_a_real_broker() -> None:
    desk = Desk()
    desk.trace.event("login_refused", {"user": "eve", "remote": "192.0.2.9:1"})
    desk.trace.event("acceptor_closed", {"acceptor": "core", "why": "a lock", "what_to_do": "do this"})
    told = {each.code: each for each in findings(desk)}
    assert "refused logins: 1, the last one of user eve" in told["login_refused"].text
    closed = told["acceptor_closed"]
    assert (closed.text, closed.remedy) == ("acceptor core is not open: a lock (logged 0 s ago)", "do this")
