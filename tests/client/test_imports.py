"""A program that imports the client waits for few modules."""

from __future__ import annotations

import json
import subprocess
import sys


def loaded(statement: str, *names: str) -> list[str]:
    """Which of these modules a new process has after the statement."""
    code = f"{statement}\nimport sys\nimport json\nprint(json.dumps([n for n in {names!r} if n in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def test_a_client_that_blocks_brings_no_asyncio_no_http_and_no_xml() -> None:
    assert loaded("import atalanta.client.blocking", "asyncio", "h11", "lxml") == []


def test_a_client_without_tls_brings_none_and_nothing_of_the_broker() -> None:
    unwanted = ("ssl", "difflib", "google_crc32c", "atalanta.wire.endpoint", "atalanta.kernel.queue.queue")
    assert loaded("import atalanta.client.blocking", *unwanted) == []


def test_the_process_that_plans_a_query_of_spark_brings_what_it_needs() -> None:
    unwanted = ("ssl", "atalanta.kernel.queue.queue", "atalanta.spark.environment.session", "atalanta.client.producer")
    assert loaded("import atalanta.spark.source", *unwanted) == []
    assert loaded("from atalanta.spark import session", "atalanta.spark.environment.session") != []


def test_connect_is_the_asynchronous_one() -> None:
    assert loaded("from atalanta.client import ConnectionFactory, connect, run", "asyncio") == ["asyncio"]
