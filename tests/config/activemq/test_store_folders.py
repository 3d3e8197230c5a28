"""Which folder has the messages of a broker of an activemq.xml."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.app.startup_error import StartupError
from atalanta.app.storage import open_storage
from atalanta.app.store.activation import open_store
from atalanta.config.configuration import Configuration
from atalanta.config.folder_owner import OWNER_NAME
from atalanta.runtime.process.exit_codes import FOLDER_TAKEN
from atalanta.store.segment import segment_name
from tests.config.activemq.classic_files import classic_file, read

KAHADB = "<persistenceAdapter><{} directory='shared/kahadb'/></persistenceAdapter>"


def broker(folder: Path, name: str, inside: str = "") -> Configuration:
    """The configuration of a broker whose data directory is `folder`/data, with a file of its own."""
    return read(classic_file(folder / name, inside, f"brokerName='{name}' dataDirectory='{folder / 'data'}'"))


def older_folder(folder: Path) -> None:
    """Makes the data directory of a broker of an earlier version."""
    journal = folder / "data" / "journal"
    store = f"<persistenceAdapter><kahaDB directory='{folder / 'data'}'/></persistenceAdapter>"
    open_storage(broker(folder, "any", store)).close()
    (journal / segment_name(1)).write_bytes(b"")


def test_a_broker_without_a_store_element_has_a_folder_of_its_name(tmp_path: Path) -> None:
    for name in ("north", "south"):
        configuration = broker(tmp_path, name)
        assert configuration.journal_folder == tmp_path / "data" / name / "KahaDB" / "journal"
        assert configuration.paging_folder == tmp_path / "data" / name / "KahaDB" / "paging"
        open_store(configuration)  # both are open at the same time
    assert broker(tmp_path, "a/../b").journal_folder == tmp_path / "data" / "a_.._b" / "KahaDB" / "journal"


@pytest.mark.parametrize("store", ["kahaDB", "mKahaDB", "levelDB", "amqPersistenceAdapter"])
def test_a_store_that_names_a_directory_has_it(tmp_path: Path, store: str) -> None:
    configuration = broker(tmp_path, "north", KAHADB.format(store))
    assert configuration.journal_folder == tmp_path / "north" / "shared" / "kahadb" / "journal"


def test_a_journal_of_an_earlier_version_stays_that_of_the_first_broker_that_starts(tmp_path: Path) -> None:
    older_folder(tmp_path)
    north, south = broker(tmp_path, "north"), broker(tmp_path, "south")
    old = tmp_path / "data" / "journal"
    assert north.journal_folder == south.journal_folder == old
    open_store(north)
    assert (old / OWNER_NAME).read_text() == "north\n"
    assert broker(tmp_path, "north").journal_folder == old
    assert broker(tmp_path, "south").journal_folder == tmp_path / "data" / "south" / "KahaDB" / "journal"
    with pytest.raises(StartupError, match="that of broker north just now: start this one again") as refused:
        open_store(south)  # read before the other one had claimed it
    assert refused.value.status == FOLDER_TAKEN
    open_store(broker(tmp_path, "south"))


def test_a_journal_that_is_left_is_named(tmp_path: Path) -> None:
    older_folder(tmp_path)
    open_store(broker(tmp_path, "south"))  # the wrong one was faster
    open_store(broker(tmp_path, "north"))
    (tmp_path / "data" / "journal" / OWNER_NAME).write_text("north\n")
    own = tmp_path / "data" / "north"
    north = broker(tmp_path, "north")
    assert north.journal_folder == own / "KahaDB" / "journal"
    (told,) = [each for each in north.unsupported if "is named for this broker" in each.why]
    assert told.lost and str(own) in told.why
    own.rename(tmp_path / "away")
    north = broker(tmp_path, "north")
    assert north.journal_folder == tmp_path / "data" / "journal"
    assert not [each for each in north.unsupported if "is named for this broker" in each.why]
