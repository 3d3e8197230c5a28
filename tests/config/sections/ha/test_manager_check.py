"""Faults in the values of a manager that are told before the node starts, and by `atalanta check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.sections.ha.manager_check import address_faults, missing_files
from atalanta.ha.manager_config import (
    EtcdManagerConfig,
    FileManagerConfig,
    ManagerConfig,
    QuorumManagerConfig,
    ZooKeeperManagerConfig,
)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (QuorumManagerConfig(voters="a:1, [::1]:2, c:65535"), []),
        (QuorumManagerConfig(voters="a:1,b"), ["voters: b is not host:port"]),
        (QuorumManagerConfig(voters="a:x"), ["voters: a:x is not host:port"]),
        (QuorumManagerConfig(voters="a:70000"), ["voters: a:70000 is not host:port"]),
        (QuorumManagerConfig(voters="a:1,b:1,a:1"), ["voters: a:1 is given twice"]),
        (EtcdManagerConfig(endpoints="http://a:1,https://b:1"), []),
        (EtcdManagerConfig(endpoints="http://a:1,b:1"), ["endpoints: b:1 is not a URL"]),
        (ZooKeeperManagerConfig(connect_string="a,b:1/below/this"), []),
        (ZooKeeperManagerConfig(connect_string="a:one"), ["connect-string: a:one is not host:port"]),
    ],
)
def test_wrong_addresses(config: ManagerConfig, told: list[str]) -> None:
    assert [text for text, _ in address_faults(config)] == told


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("secret")
    assert not missing_files(QuorumManagerConfig(voters="a:1", password_file="there"), tmp_path)
    ((text, _),) = missing_files(EtcdManagerConfig(endpoints="http://a:1", password_file="away"), tmp_path)
    assert text == f"password-file: there is no file {tmp_path / 'away'}"
    ((text, _),) = missing_files(FileManagerConfig(folder="locks"), tmp_path)
    assert text == f"locks-folder: there is no folder {tmp_path / 'locks'}"
    (tmp_path / "locks").mkdir()
    assert not missing_files(FileManagerConfig(folder="locks"), tmp_path)
