"""One page with all queries, and the same as Prometheus metrics: `/`, `/metrics`, `/health`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from atalanta.spark.pipeline.progress import FAILED, RUNNING, QueryState

PREFIX: Final = "atalanta_pipeline_query_"
GAUGES: Final[list[tuple[str, str, Callable[[QueryState], float]]]] = [
    ("running", "1 while the query runs", lambda one: float(one.state == RUNNING)),
    ("failed", "1 if the query has failed", lambda one: float(one.state == FAILED)),
    ("batch_id", "number of the last batch, -1 before the first", lambda one: float(one.batch)),
    ("rows_per_second", "rows a second of the last batch", lambda one: one.rows_per_second),
    ("batch_seconds", "duration of the last batch", lambda one: one.batch_ms / 1000),
    ("state_rows", "rows that aggregates and joins keep", lambda one: float(one.state_rows)),
]
COUNTERS: Final[list[tuple[str, str, Callable[[QueryState], float]]]] = [
    ("rows", "rows read since the start", lambda one: float(one.total_rows)),
    ("late_rows", "rows dropped behind the watermark", lambda one: float(one.late_rows)),
]
HEADINGS: Final = (
    "query", "state", "batch", "at", "rows", "rows/s", "batch ms", "lag per node", "watermark", "late rows",
    "last error",
)  # fmt: skip
STYLE: Final = (
    "body{font:14px sans-serif;margin:2em}td,th{padding:.3em .8em;text-align:left;border-bottom:1px solid #ccc;"
    "vertical-align:top}.failed{background:#fdd}"
)
States = Callable[[], Mapping[str, QueryState]]


class StateCollector(Collector):
    """The metrics of all queries, made when they are asked for."""

    def __init__(self, states: States) -> None:
        self.states = states

    def collect(self) -> Iterable[Metric]:
        states = list(self.states().values())
        for name, text, figure in GAUGES:
            gauge = GaugeMetricFamily(PREFIX + name, text, labels=["query"])
            for one in states:
                gauge.add_metric([one.name], figure(one))
            yield gauge
        for name, text, figure in COUNTERS:
            counter = CounterMetricFamily(PREFIX + name, text, labels=["query"])
            for one in states:
                counter.add_metric([one.name], figure(one))
            yield counter
        text = "messages at the node after the last batch"
        lag = GaugeMetricFamily(f"{PREFIX}lag_messages", text, labels=["query", "node"])
        for one in states:
            for node, messages in one.lag.items():
                lag.add_metric([one.name, node], messages)
        yield lag


def page(name: str, states: Mapping[str, QueryState]) -> str:
    """Returns the page in HTML; it loads itself again every two seconds."""
    rows = []
    for one in states.values():
        lag = ", ".join(f"{node}: {messages}" for node, messages in one.lag.items())
        error = f"{one.error} ({one.remedy})" if one.error else ""
        cells = (
            one.name, one.state, str(one.batch), one.at, str(one.total_rows), f"{one.rows_per_second:.0f}",
            str(one.batch_ms), lag, one.watermark or "", str(one.late_rows), error,
        )  # fmt: skip
        cells_html = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f'<tr class="{escape(one.state)}">{cells_html}</tr>')
    head = "".join(f"<th>{heading}</th>" for heading in HEADINGS)
    title = escape(name)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>"
        f'<table><tr>{head}</tr>{"".join(rows)}</table><p><a href="/metrics">metrics</a></p></body></html>'
    )


class QuietHandler(WSGIRequestHandler):
    """Requests without a line on stderr; a client that sends nothing is left after 10 s."""

    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        pass


class ThreadedServer(ThreadingMixIn, WSGIServer):
    """The server with a thread for each request; a thread does not delay the end of the process."""

    daemon_threads = True


class PageServer:
    """The HTTP server. Raises OSError if the address cannot be bound."""

    def __init__(self, name: str, states: States, listen: str) -> None:
        self.name = name
        self.states = states
        host, _, port = listen.rpartition(":")
        registry = CollectorRegistry()
        registry.register(StateCollector(states))
        self.metrics: Any = make_wsgi_app(registry)
        self.server = make_server(host, int(port), self.answer, ThreadedServer, QuietHandler)
        self.url = f"http://{host}:{self.server.server_port}/"
        self._thread = threading.Thread(target=self.server.serve_forever, name="page", daemon=True)

    def start(self) -> None:
        """Serves in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the server, also one that was not started: `shutdown` would wait for ever for its thread."""
        if self._thread.is_alive():
            self.server.shutdown()
        self.server.server_close()

    def answer(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answers a request (WSGI)."""
        path = environment.get("PATH_INFO", "/")
        if path == "/metrics":
            return iterated(self.metrics(environment, start))
        status, kind, text = "404 Not Found", "text/plain", "not found\n"
        if path == "/":
            status, kind, text = "200 OK", "text/html", page(self.name, self.states())
        elif path == "/health":
            failed = [one.name for one in self.states().values() if one.state == FAILED]
            status = "503 Service Unavailable" if failed else "200 OK"
            text = f"failed: {', '.join(failed)}\n" if failed else "ok\n"
        start(status, [("Content-Type", f"{kind}; charset=utf-8"), ("Cache-Control", "no-store")])
        return [text.encode()]


def iterated(parts: Iterable[bytes]) -> Iterator[bytes]:
    yield from parts
