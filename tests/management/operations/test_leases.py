"""Leases of Spark's groups in management: who has a queue, and the end of a lease."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.settings.broker_config import BrokerConfig
from tests.kernel.broker_rig import SECOND, RecordingEndpoint, consume
from tests.management.management_rig import Desk, Refused

TTL = 300 * SECOND


def leased(desk: Desk) -> int:
    """A queue `work` with three messages, two of which the reader was shown; returns the epoch of its lease."""
    desk.queue("work")
    desk.fill("work", 3)
    views = desk.broker.log_views
    epoch = views.lease(desk.now, "work", "spark", "vm/24/ab", TTL, 0, RecordingEndpoint(), 1).epoch
    desk.settle()
    views.plan("work", "", 0, 2, -1)
    return epoch


def row(desk: Desk, name: str) -> dict[str, object]:
    """The queue's row of listQueues."""
    options = json.dumps({"field": "name", "operation": "EQUALS", "value": name})
    answer = json.loads(str(desk.ask("broker", "listQueues", options, 1, 10)))
    (found,) = answer["data"]
    assert isinstance(found, dict)
    return found


def test_the_list_of_queues_says_who_has_a_queue(desk: Desk) -> None:
    leased(desk)
    desk.queue("free")
    desk.now += 60 * SECOND
    with pytest.raises(BrokerError):
        consume(desk.session(), desk, "work")
    desk.now += SECOND
    expected = {
        "group": "spark", "owner": "vm/24/ab", "epoch": 1, "active": True, "ageMs": 61_000, "sinceRenewalMs": 61_000,
        "endsInMs": 239_000, "timeoutMs": 300_000, "refusals": 1, "sinceRefusalMs": 1_000, "unacknowledgedMax": 2,
        "endedBy": "",
    }  # fmt: skip
    assert json.loads(str(row(desk, "work")["lease"])) == expected
    assert row(desk, "free")["lease"] == ""
    assert desk.json("queue.work", "listLeasesAsJSON") == [expected]
    assert desk.json("queue.free", "listLeasesAsJSON") == []
    options = json.dumps({"field": "lease", "operation": "NOT_EQUALS", "value": ""})
    found = json.loads(str(desk.ask("broker", "listQueues", options, 1, 10)))
    assert [each["name"] for each in found["data"]] == ["work"]


def test_an_operator_ends_a_lease_and_hears_what_it_was(desk: Desk) -> None:
    epoch = leased(desk)
    session = desk.session()
    session.identity.user = "admin"
    before = json.loads(str(desk.ask("queue.work", "endLease", epoch, session=session)))
    assert (before["group"], before["owner"], before["epoch"]) == ("spark", "vm/24/ab", 1)
    assert before["unacknowledgedMax"] == 2
    assert row(desk, "work")["lease"] == ""
    listed = desk.json("queue.work", "listLeasesAsJSON")
    assert isinstance(listed, list) and len(listed) == 1
    after = listed[0]
    assert (after["active"], after["epoch"], after["endsInMs"], after["sinceRenewalMs"]) == (False, 2, 0, -1)
    assert str(after["endedBy"]).startswith("user admin from ")
    with pytest.raises(BrokerError, match="was ended by user admin from "):
        desk.broker.log_views.ack_through("work", "", "spark", epoch, 2, RecordingEndpoint(), 2)
    assert desk.bodies("work") == [b"0", b"1", b"2"]


def test_without_a_lease_nothing_is_ended(desk: Desk) -> None:
    epoch = leased(desk)
    with pytest.raises(Refused, match=f"has epoch {epoch} of vm/24/ab"):
        desk.ask("queue.work", "endLease", epoch + 1)
    assert desk.ask("queue.work", "endLease") is not None
    with pytest.raises(Refused, match="queue work has no lease that could be ended"):
        desk.ask("queue.work", "endLease")
    with pytest.raises(Refused, match="Cannot find resource"):
        desk.ask("queue.typo", "endLease")


def test_the_reply_waits_for_the_disk(desk: Desk) -> None:
    leased(desk)
    desk.put("queue.work", "endLease")
    desk.broker.flush(desk.now)
    assert desk.broker.queues["replies"].message_count == 0
    desk.answer()


def test_an_end_needs_the_rights_of_other_changes() -> None:
    config = BrokerConfig()
    config.management_message_rbac = True
    desk = Desk(config)
    leased(desk)
    session = desk.session()
    session.identity.roles = ("watcher",)
    security = desk.broker.security
    security.enabled = True
    security.add_rule("activemq.management", {"manage": ["watcher"]})
    security.add_rule("mops.#", {"view": ["watcher"]})
    assert "vm/24/ab" in str(desk.ask("queue.work", "listLeasesAsJSON", session=session))
    with pytest.raises(Refused, match="permission='EDIT' on address mops.queue.work.endLease"):
        desk.ask("queue.work", "endLease", session=session)
    security.add_rule("activemq.management", {"manage": ["admin"]})
    with pytest.raises(BrokerError, match="MANAGE"):
        desk.put("queue.work", "endLease", session=session)
    assert desk.broker.queues["work"].active_lease() is not None
