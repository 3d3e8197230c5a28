"""`atalanta bench` against a node of ours, and the arithmetic of its figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from atalanta.cli.bench.result import value_at
from tests.cli.calls import Cli, node

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with node(tmp_path_factory.mktemp("node")) as found:
        yield found


def figures(cli: Cli, *words: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(cli("bench", *words, "--json"))
    (one,) = found
    return one


def test_every_message_of_a_queue_is_counted_once(cli: Cli) -> None:
    found = figures(cli, "--count", "500", "--producers", "2", "--consumers", "2", "--size", "10")
    assert (found["sent"], found["received"], found["lost"]) == (500, 500, 0)
    assert 0 < found["latency_p50_ms"] <= found["latency_p99_ms"] <= found["latency_max_ms"]
    assert found["send_rate"] > 0 and found["receive_rate"] > 0 and found["version"]
    assert json.loads(cli("queue", "stat", "atalanta.bench", "--json")) == []


def test_every_subscriber_of_a_topic_gets_all(cli: Cli) -> None:
    found = figures(cli, "topic://t", "--count", "200", "--consumers", "3", "--non-durable")
    assert (found["sent"], found["received"], found["lost"]) == (200, 600, 0)


def test_a_rate_is_kept(cli: Cli) -> None:
    found = figures(cli, "--rate", "200", "--duration", "0.5", "--warmup", "0.1")
    assert 0 < found["sent"] <= 130 and found["received"] == found["sent"]


def test_a_table_compares_brokers(cli: Cli) -> None:
    url = cli.environment["ATALANTA_URL"]
    table = cli("bench", "--count", "50", "--url", url, "--url", url + "?callTimeout=9000")
    assert table.count(url) == 2 and "latency p99.9 ms" in table


def test_producing_alone_and_consuming_alone(cli: Cli) -> None:
    cli("queue", "create", "half")
    assert figures(cli, "half", "--count", "100", "--consumers", "0")["sent"] == 100
    cli("bench", "half", "--count", "100", status=1)
    assert "queue half holds 100 messages" in cli.errors
    assert figures(cli, "half", "--count", "100", "--producers", "0")["received"] == 100


def test_percentiles() -> None:
    assert [value_at(range(1, 101), p) for p in (50, 99, 99.9, 100)] == [50, 99, 100, 100]
    assert value_at([7], 50) == 7
