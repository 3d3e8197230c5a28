"""Calling the command line in this process, and one broker for the tests of a module."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from atalanta.cli.application import application
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.ports import free_port


class Cli:
    """`cli("browse", "orders")` is what it writes to stdout; the exit status must be `status`."""

    def __init__(self, url: str | None = None) -> None:
        self.environment = {} if url is None else {"ATALANTA_URL": url}
        self.errors = ""

    def __call__(self, *words: str, typed: str | bytes | None = None, status: int = 0) -> str:
        result = CliRunner().invoke(application, list(words), input=typed, env=self.environment)
        self.errors = result.stderr
        assert result.exit_code == status, (
            f"{result.exit_code}: {result.output} {result.exception!r}"
        )
        if status:
            assert "Traceback" not in result.output
        return result.stdout

    def rows(self, *words: str, status: int = 0) -> list[dict[str, Any]]:
        """The JSON lines that it writes."""
        lines = self(*words, "--json", status=status).splitlines()
        return [json.loads(line) for line in lines]


@contextmanager
def node(folder: Path, more: str = "") -> Iterator[Cli]:
    """A node without security, and the command line that finds it."""
    port = free_port()
    with BrokerProcess(write_broker_xml(folder, port, more=more)):
        yield Cli(f"tcp://127.0.0.1:{port}")
