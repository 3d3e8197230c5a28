"""The storage of a node: what its start tells about its data folder."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from atalanta.app.storage import open_storage
from atalanta.config.configuration import Configuration


def test_a_node_id_without_a_journal_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The messages are gone, or the configuration names another folder than before."""
    configuration = Configuration(tmp_path / "broker.xml", tmp_path)
    caplog.set_level(logging.WARNING)
    journal = configuration.journal_folder
    first = open_storage(configuration)
    assert first.folder is not None
    (journal / "journal-1").write_bytes(b"x")
    first.close()
    open_storage(configuration).close()
    assert caplog.records == []
    (journal / "journal-1").unlink()
    second = open_storage(configuration)
    second.close()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and "journal_missing" in record.getMessage()
    assert str(journal) in record.getMessage() and second.node_id == first.node_id
