"""The storage of a node: what its start tells about its data folder."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from atalanta.app.startup_error import StartupError
from atalanta.app.storage import open_storage
from atalanta.config.configuration import Configuration
from atalanta.runtime.process.exit_codes import BAD_DATA


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


@pytest.mark.parametrize("text", [b"not an id\n", None])
def test_a_damaged_node_id_is_bad_data_and_not_a_folder_in_use(tmp_path: Path, text: bytes | None) -> None:
    configuration = Configuration(tmp_path / "broker.xml", tmp_path)
    first = open_storage(configuration)
    (configuration.journal_folder / "journal-1").write_bytes(b"x")
    first.close()
    path = configuration.journal_folder / "node-id"
    if text is None:
        path.unlink()
    else:
        path.write_bytes(text)
    with pytest.raises(StartupError, match="node-id") as refused:
        open_storage(configuration)
    assert refused.value.status == BAD_DATA
