"""listChangingCalls: who has changed what, without passwords, bounded, and never trusted."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.sessions.session import Session
from atalanta.management.operations import changing_calls
from atalanta.management.operations.changing_calls import OPERATOR_ADDRESS, bounded
from tests.management.management_rig import Desk, Refused


def session_of(desk: Desk, user: str = "ann") -> Session:
    session = desk.session()
    session.identity.user = user
    return session


def calls(desk: Desk, count: int = 100) -> list[dict[str, object]]:
    answer = desk.ask("broker", "listChangingCalls", count)
    assert isinstance(answer, str)
    found: list[dict[str, object]] = json.loads(answer)
    return found


def test_changes_are_kept_with_user_and_subject_and_looks_are_not(desk: Desk) -> None:
    desk.queue("work")
    session = session_of(desk)
    desk.ask("queue.work", "pause", session=session)
    desk.ask("queue.work", "countMessages", session=session)
    desk.ask("broker", "createQueue", '{"name": "new", "address": "a"}', session=session)
    with pytest.raises(Refused):
        desk.ask("broker", "destroyQueue", "none", session=session)
    desk.ask("queue.work", "resume")  # the node itself
    found = calls(desk)
    assert [(each["user"], each["resource"], each["operation"], each["name"]) for each in found] == [
        ("ann", "broker", "destroyQueue", "none"),
        ("ann", "broker", "createQueue", "new"),
        ("ann", "queue.work", "pause", ""),
    ]
    assert "AMQ229017" in str(found[0]["refusal"]) and found[1]["refusal"] == ""
    assert len(calls(desk, 1)) == 1 and calls(desk, 0) == [] and calls(desk, -5) == []
    events = [fields for name, fields in desk.trace.events if name == "management_called"]
    assert [each["operation"] for each in events] == ["pause", "createQueue", "destroyQueue"]


def test_no_parameter_but_a_name_is_kept(desk: Desk) -> None:
    desk.queue("work")
    session = session_of(desk)
    with pytest.raises(Refused):
        desk.ask("broker", "addUser", "eve", "hunter2", "role", False, session=session)
    desk.ask("queue.work", "sendMessage", {}, 3, "hunter2", True, None, None, session=session)
    text = json.dumps(calls(desk))
    assert "eve" in text and "hunter2" not in text


def test_calls_alike_are_one_entry_and_the_list_is_bounded(desk: Desk) -> None:
    desk.queue("work")
    session = session_of(desk)
    for _ in range(50):
        desk.ask("queue.work", "removeMessages", "x = 1", session=session)
    (one,) = calls(desk)
    assert one["count"] == 50
    for number in range(1_200):
        desk.put("broker", "destroyQueue", f"none{number}", session=session)
    desk.settle()
    assert len(calls(desk, 5_000)) == changing_calls.CALLS_MAX


def test_the_operators_address_is_bounded_text(desk: Desk) -> None:
    desk.queue("work")
    session = session_of(desk, "eve\n\x1b[31m")
    for address in ("10.0.0.1", "x\r\nuser=admin\x00\u202e", "y" * 10_000, 7):
        desk.put_with({OPERATOR_ADDRESS: address}, "queue.work", "pause", session=session)
    found = [str(each["operatorAddress"]) for each in reversed(calls(desk))]
    assert found[0] == "10.0.0.1" and found[1] == "x\\r\\nuser=admin\\x00\\u202e" and found[3] == ""
    assert len(found[2]) == changing_calls.ADDRESS_MAX
    assert all(str(each["user"]) == "eve\\n\\x1b[31m" for each in calls(desk))


def test_names_of_any_length_are_cut() -> None:
    assert bounded("\x00" * 1_000) == ("\\x00" * 50)[:199] + "…"
    assert bounded("a" * 200) == "a" * 200 and bounded("") == ""
