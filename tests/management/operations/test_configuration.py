"""Requests about the configuration files by message: who asks, what the process answers, and the events."""

from __future__ import annotations

import pytest

from atalanta.kernel.ports import Process
from atalanta.kernel.settings.configuration_request import (
    CHANGE,
    LIST,
    ConfigurationAnswer,
    ConfigurationOutcome,
    ConfigurationRequest,
)
from tests.management.management_rig import Desk, Refused


class Files(Process):
    """Notes the requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ConfigurationRequest]] = []

    def operate_configuration(self, token: int, request: ConfigurationRequest) -> None:
        """Implements Process.operate_configuration."""
        self.asked.append((token, request))


def finish(desk: Desk, files: Files, answer: ConfigurationAnswer) -> None:
    """The process answers the last request."""
    token, _ = files.asked[-1]
    desk.management.configuration.finished(desk.now, token, answer)


def test_a_change_is_answered_when_the_process_has_done_it() -> None:
    files = Files()
    desk = Desk(process=files)
    desk.put("broker", "changeConfiguration", '{"changes": []}')
    [(_, request)] = files.asked
    assert (request.kind, request.text) == (CHANGE, '{"changes": []}')
    outcome = ConfigurationOutcome("10.0.0.1", "add bridge 'b'", after_restart="x: why")
    finish(desk, files, ConfigurationAnswer({"refused": ""}, outcome=outcome))
    assert desk.answer() == '{"refused":""}'
    fields = {"user": "", "from": "10.0.0.1", "changes": "add bridge 'b'", "not_written": "", "after_restart": "x: why"}
    assert ("configuration_changed", fields) in desk.trace.events


def test_events_of_a_refusal_and_of_an_undo() -> None:
    files = Files()
    desk = Desk(process=files)
    for outcome in (ConfigurationOutcome("h", "c", refused="why"), ConfigurationOutcome("h", "c", undone="7")):
        desk.put("broker", "undoConfiguration", "{}")
        finish(desk, files, ConfigurationAnswer({}, outcome=outcome))
        desk.answer()
    refused = {"user": "", "from": "h", "changes": "c", "why": "why"}
    assert ("configuration_change_refused", refused) in desk.trace.events
    assert any(name == "configuration_change_undone" and fields["id"] == "7" for name, fields in desk.trace.events)


def test_the_listing_says_what_runs_and_whether_the_caller_may_change() -> None:
    files = Files()
    desk = Desk(process=files)
    desk.put("broker", "listConfiguration")
    assert files.asked[-1][1].kind == LIST
    elements = [{"kind": "bridge", "name": "b", "state": ""}, {"kind": "address-setting", "name": "#", "state": ""}]
    finish(desk, files, ConfigurationAnswer({"elements": elements}))
    assert desk.answer() == (
        '{"elements":[{"kind":"bridge","name":"b","state":"absent"},'
        '{"kind":"address-setting","name":"#","state":""}],"permitted":true}'
    )


def test_a_node_without_files_and_one_with_too_many_requests_refuse() -> None:
    with pytest.raises(Refused, match="no configuration files that could be changed"):
        Desk().ask("broker", "listConfiguration")
    files = Files()
    desk = Desk(process=files)
    for _ in range(20):
        desk.put("broker", "listConfiguration")
    with pytest.raises(Refused, match="20 requests about the configuration are under way"):
        desk.ask("broker", "listConfiguration")
    assert len(files.asked) == 20


def test_what_the_process_cannot_do_is_the_reason() -> None:
    files = Files()
    desk = Desk(process=files)
    desk.put("broker", "downloadConfiguration")
    finish(desk, files, ConfigurationAnswer(why="an internal error, see the log"))
    with pytest.raises(Refused, match="an internal error"):
        desk.answer()
