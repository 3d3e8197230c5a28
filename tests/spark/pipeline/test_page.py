"""The page and the metrics of a pipeline."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from atalanta.spark.pipeline.page import PageServer
from atalanta.spark.pipeline.progress import FAILED, QueryState, lag_of

RUNS = QueryState(
    "archive", batch=7, rows=10, total_rows=70, rows_per_second=5.0, lag={"a:61616": 3}
)
FAILS = QueryState("delays", state=FAILED, error="no <queue> there", remedy="create the queue")


@pytest.fixture
def served() -> Iterator[PageServer]:
    states = {one.name: one for one in (RUNS, FAILS)}
    server = PageServer("orders", lambda: states, "127.0.0.1:0")
    server.start()
    yield server
    server.stop()


def get(server: PageServer, path: str) -> str:
    with urllib.request.urlopen(server.url + path, timeout=10) as answer:
        text: bytes = answer.read()
    return text.decode()


def test_the_page_has_progress_lag_and_errors(served: PageServer) -> None:
    text = get(served, "")
    for cell in ("archive", "7", "70", "a:61616: 3", "no &lt;queue&gt; there (create the queue)"):
        assert f"<td>{cell}</td>" in text


def test_the_metrics_are_those_of_prometheus(served: PageServer) -> None:
    families = text_string_to_metric_families(get(served, "metrics"))
    values = {
        (one.name, *sorted(one.labels.values())): one.value
        for family in families
        for one in family.samples
    }
    prefix = "atalanta_pipeline_query_"
    assert values[f"{prefix}batch_id", "archive"] == 7
    assert values[f"{prefix}rows_total", "archive"] == 70
    assert values[f"{prefix}lag_messages", "a:61616", "archive"] == 3
    assert (values[f"{prefix}failed", "archive"], values[f"{prefix}failed", "delays"]) == (0, 1)


def test_health_names_the_query_that_failed(served: PageServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        get(served, "health")
    assert raised.value.code == 503 and raised.value.read() == b"failed: delays\n"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(served, "other")


@pytest.mark.timeout(20)
def test_a_page_that_was_not_started_ends() -> None:
    """A start that Spark refuses ends the page before it has served."""
    server = PageServer("orders", dict, "127.0.0.1:0")
    server.stop()
    with pytest.raises(urllib.error.URLError):
        get(server, "")


def nodes(*lags: int) -> dict[str, object]:
    """The offset of one queue: a sequence says nothing about the lag."""
    entries = {
        f"n{at}": {"server": f"{name}:1", "sequence": 90, "lag": lag}
        for at, (name, lag) in enumerate(zip("ab", lags, strict=False))
    }
    return {"queue": "q", "nodes": entries, "lag": sum(lags)}


def test_lag_is_what_the_source_reports() -> None:
    def lag(*latest: object) -> dict[str, int]:
        return lag_of({"sources": [{"endOffset": None, "latestOffset": one} for one in latest]})

    assert lag(nodes(15, 2)) == lag(json.dumps(nodes(15, 2))) == {"a:1": 15, "b:1": 2}
    assert lag({"queues": {"eu": nodes(3, 1), "us": nodes(4)}}) == {"a:1": 7, "b:1": 1}
    assert lag(nodes(3), nodes(4)) == {"a:1": 7}
    assert lag(None, "17", 18, {"topic": {"0": 5}}, {"nodes": {"n": {"sequence": 3}}}) == {}
