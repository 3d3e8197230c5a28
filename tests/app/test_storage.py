"""The storage of a node: what its start tells about its data folder."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from atalanta.app.startup_error import StartupError
from atalanta.app.storage import disk_reserve, open_storage
from atalanta.config.configuration import Configuration
from atalanta.kernel.settings.broker_config import AddressSetting
from atalanta.runtime.disk.reserve import NAMES
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


def test_the_reserve_of_a_disk_has_room_for_the_largest_page(tmp_path: Path) -> None:
    configuration = Configuration(tmp_path / "broker.xml", tmp_path)
    configuration.journal.file_size_bytes = 4_096
    page_bytes = 5 << 20
    configuration.broker.address_settings.append(AddressSetting("#", {"page_size_bytes": page_bytes}))
    reserve = disk_reserve(tmp_path, configuration)
    assert reserve.fill()
    assert all((tmp_path / name).stat().st_size > page_bytes for name in NAMES)
    assert reserve.take(tmp_path / "page", page_bytes, b"head")
