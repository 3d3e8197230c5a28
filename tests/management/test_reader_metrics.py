"""Metrics of Spark's groups at a node."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from atalanta.kernel.errors import BrokerError
from tests.kernel.broker_rig import SECOND, RecordingEndpoint, consume
from tests.management.management_rig import Desk


def figures(desk: Desk, group: str) -> dict[str, float]:
    """Metric -> value, of the queue `work`."""
    text = "".join(desk.management.metrics())
    return {
        sample.name.removeprefix("atalanta_reader_"): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("group") == group and sample.labels["queue"] == "work"
    }


def test_a_group_has_lag_acknowledged_messages_and_lease(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 5)
    views = desk.broker.log_views
    assert figures(desk, "spark") == {}, "nobody reads"
    replies = RecordingEndpoint()
    views.lease(desk.now, "work", "spark", "me", 60_000_000_000, 0, replies, 1)
    held = views.lease(desk.now, "work", "spark", "me", 60_000_000_000, 0, replies, 2)
    desk.settle()
    third = views.plan("work", "", 0, 3, -1)[0]
    views.ack_through("work", "", "spark", held.epoch, third, replies, 3)
    desk.settle()
    assert figures(desk, "spark") == {
        "lag_messages": 2,
        "acknowledged_messages_total": 3,
        "acknowledged_sequence": third,
        "retained_messages": 0,
        "retained_bytes": 0,
        "lease_epoch": 2,
        "lease_seconds": 60,
        "lease_age_seconds": 0,
        "lease_silence_seconds": 0,
        "lease_refusals_total": 0,
        "lease_info": 1,
    }
    desk.now += 10 * SECOND
    views.lease(desk.now, "work", "spark", "me", 60_000_000_000, held.epoch, replies, 4)
    desk.now += 5 * SECOND
    with pytest.raises(BrokerError):
        consume(desk.session(), desk, "work")
    desk.fill("work", 1)  # a command tells the broker what time it is
    found = figures(desk, "spark")
    assert (found["lease_age_seconds"], found["lease_silence_seconds"], found["lease_seconds"]) == (15, 5, 55)
    assert found["lease_refusals_total"] == 1
    assert 'group="spark",owner="me"} 1\n' in "".join(desk.management.metrics())
    views.lease(desk.now, "work", "spark", "me", 0, held.epoch, replies, 5)
    desk.settle()
    found = figures(desk, "spark")
    assert (found["lease_age_seconds"], found["lease_silence_seconds"], found["lease_seconds"]) == (0, 0, 0)
    assert "lease_info" not in found, "nobody has the lease"
