"""`atalanta check` of a node whose shared store has epochs: it looks into the newest one that is complete."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from atalanta.cli.instance import check
from atalanta.cli.instance.check import port_taken
from atalanta.runtime.ha.epoch_folders import COMPLETE_NAME
from atalanta.runtime.ha.epoch_names import epoch_name
from atalanta.runtime.ha.holder_lock import HolderLock
from tests.cli.instance.check_rig import call, told, write

POLICY = "<ha-policy><shared-store><primary/></shared-store></ha-policy>"
SETTINGS = """<core><address-settings><address-setting match="{match}"><max-delivery-attempts>3</max-delivery-attempts>
</address-setting></address-settings></core>"""


def epoch(folder: Path, number: int, complete: bool = True) -> Path:
    """Makes the folder of an epoch, with a setting that bears its number."""
    made = folder / "a" / "data" / "journal" / "epochs" / epoch_name(number)
    made.mkdir(parents=True)
    (made / "management-settings.xml").write_text(SETTINGS.format(match=f"of-epoch-{number}"))
    if complete:
        (made / COMPLETE_NAME).touch()
    return made


def test_stored_settings_are_those_of_the_newest_complete_epoch(tmp_path: Path) -> None:
    path = write(tmp_path, "a", more=POLICY)
    for number, complete in ((1, True), (2, True), (3, False)):
        epoch(tmp_path, number, complete)
    said = "\n".join(told(call(path), "info"))
    assert "'of-epoch-2' was made by management" in said
    assert "of-epoch-1" not in said and "of-epoch-3" not in said


def test_the_ports_of_a_pair_that_serves_are_not_reported_as_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "port_taken", port_taken)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        path = write(tmp_path, "a", more=POLICY, host="127.0.0.1", listen="127.0.0.1", port=port)
        lock = HolderLock(epoch(tmp_path, 1))
        assert not any("another process has port" in each for each in told(call(path), "warning"))
        lock.close()
        assert any("another process has port" in each for each in told(call(path), "warning"))
