"""A message for which a batch has no room stays in the queue of a node, in its place and once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.nodes import PASSWORD, USER, BrokerCluster
from tests.spark.wal.limited_batches import EXPECTED, limited_batches

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def test_a_message_without_room_is_in_the_next_batch(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path / "brokers", 1) as brokers:
        assert limited_batches(brokers.servers, USER, PASSWORD, "out", tmp_path / "wal") == EXPECTED
        assert brokers.waiting("out") == 0
