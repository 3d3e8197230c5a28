"""The backups that a process hosts, as they are kept for its next start. No process is started here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from atalanta.app.colocation.hosted_backups import FILE_NAME, HostedBackups
from atalanta.app.startup_error import StartupError
from atalanta.cluster.connection.backup_call import REQUEST, BackupCall
from atalanta.cluster.connection.colocation_seat import HostingMember
from atalanta.config.broker_xml import read_broker_xml
from tests.app.colocated import Colocated

NODE = "d7315da5-e7b2-11f1-8330-9bd59ca859a0"
OTHER = "e7315da5-e7b2-11f1-8330-9bd59ca859a0"


class Kept(HostedBackups):
    """Starts nothing."""

    def _run(self, hosted: object) -> None:
        return None


def kept(folder: Path, form: str = "replication") -> Kept:
    configuration = read_broker_xml(folder / "a" / "etc" / "broker.xml", {})
    configuration.journal_folder.mkdir(parents=True, exist_ok=True)
    assert configuration.ha.colocation is not None and configuration.ha.form == form
    return Kept(configuration, configuration.ha.colocation, guarded=True)


def test_a_restart_knows_what_it_hosts_and_who_hosts_it(tmp_path: Path) -> None:
    nodes = Colocated(tmp_path, "replication")
    call = BackupCall(REQUEST, NODE, "replication", "", "b", 1)
    first = kept(tmp_path)
    assert first.host(call) == ("127.0.0.1", nodes.ports[0] + nodes.offset)
    assert first.host(replace(call, node_id=OTHER)) == ("127.0.0.1", nodes.ports[0] + 2 * nodes.offset)
    first.remember([HostingMember("h", "b", 7)])
    first.release(NODE)
    again = kept(tmp_path)
    assert again.hosted() == [OTHER] and again.hosts() == [HostingMember("h", "b", 7)]
    assert again.host(call)[1] == nodes.ports[0] + nodes.offset  # the free number
    assert again.host(replace(call, node_id=OTHER))[1] == nodes.ports[0] + 2 * nodes.offset


def test_a_node_id_that_is_none_and_a_folder_that_is_not_seen_are_refused(tmp_path: Path) -> None:
    Colocated(tmp_path, "shared-store")
    seat = kept(tmp_path, "shared-store")
    folder = tmp_path / "mounted"
    call = BackupCall(REQUEST, NODE, "shared-store", "", "b", 1, str(folder), "p", "l")
    with pytest.raises(ValueError, match="badly formed"):
        seat.host(replace(call, node_id="../../etc"))
    with pytest.raises(ValueError, match="mount it at the same path"):
        seat.host(call)
    folder.mkdir()
    (folder / "node-id").write_text(OTHER)
    with pytest.raises(ValueError, match="not the primary's folder there"):
        seat.host(call)
    (folder / "node-id").write_text(NODE)
    seat.host(call)
    assert seat.hosted() == [NODE]


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    Colocated(tmp_path, "replication")
    kept(tmp_path)
    (tmp_path / "a" / "data" / "journal" / FILE_NAME).write_text("{")
    with pytest.raises(StartupError) as error:
        kept(tmp_path)
    assert "colocated.json cannot be read" in error.value.lines[0]
