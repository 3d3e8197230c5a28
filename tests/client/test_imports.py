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


def test_connect_is_the_asynchronous_one() -> None:
    assert loaded("from atalanta.client import ConnectionFactory, connect, run", "asyncio") == ["asyncio"]
