"""The managers as the files of a node configure them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from atalanta.ha.manager_config import (
    EtcdManagerConfig,
    FileManagerConfig,
    ManagerConfig,
    QuorumManagerConfig,
    ZooKeeperManagerConfig,
)
from atalanta.ha.register import CompareAndSet
from atalanta.ha.voter import Outcome
from atalanta.runtime.ha.managers import (
    etcd_manager,
    file_manager,
    quorum_manager,
    zookeeper_manager,
)
from atalanta.runtime.ha.managers.configured_manager import ManagerRefused, configured_manager
from tests.runtime.ha.managers.manager_contract import register


def test_groups_of_one_folder_do_not_meet(tmp_path: Path) -> None:
    async def play() -> list[int]:
        found = []
        for name in ("west", "east"):
            manager = configured_manager(FileManagerConfig("locks"), name, tmp_path)
            assert await manager.read() is None
            answer = await manager.compare_and_set(CompareAndSet(0, register(1)))
            assert answer.outcome is Outcome.DONE
            found.append(answer.version)
        return found

    (tmp_path / "locks").mkdir()
    assert asyncio.run(play()) == [1, 1]
    assert sorted(each.name for each in (tmp_path / "locks").iterdir()) == ["east", "west"]


def test_every_kind_has_its_options(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("right\nsecond line\n")
    etcd = configured_manager(
        EtcdManagerConfig("http://a:2379, http://b:2379", "shop", "broker", "secret"), "id", tmp_path
    )
    assert isinstance(etcd, etcd_manager.EtcdManager)
    assert [each.hostname for each in etcd.endpoints] == ["a", "b"]
    assert (etcd.key, etcd.user, etcd.password) == (etcd_manager._encoded(b"shop/id"), "broker", "right")
    zookeeper = configured_manager(
        ZooKeeperManagerConfig("a:2181,b:2181", "/shop", connection_ms=1500), "id", tmp_path
    )
    assert isinstance(zookeeper, zookeeper_manager.ZooKeeperManager)
    assert (zookeeper.hosts, zookeeper.path, zookeeper.timeout_s) == ("a:2181,b:2181", "/shop/id", 1.5)
    quorum = configured_manager(QuorumManagerConfig("a:7,[::1]:8,c:9", "secret"), "id", tmp_path)
    assert isinstance(quorum, quorum_manager.QuorumManager)
    assert [link.name for link in quorum._links] == ["a:7", "::1:8", "c:9"]
    plain = configured_manager(FileManagerConfig("/srv/locks"), "id", tmp_path)
    assert isinstance(plain, file_manager.FileManager)
    assert plain.folder == Path("/srv/locks/id")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (FileManagerConfig("plain"), "locks-folder: .*plain is not a folder"),
        (EtcdManagerConfig("a:2379"), "endpoints: endpoints of etcd are URLs such as"),
        (EtcdManagerConfig("http://a", None, "broker", "missing"), "password-file .*missing"),
        (EtcdManagerConfig("http://a", None, "broker", "plain"), "password-file .*its first line is empty"),
        (EtcdManagerConfig("https://a", ca_file="missing"), "ca-file"),
        (QuorumManagerConfig("a:7,b"), "voters: b is not host:port"),
        (QuorumManagerConfig("a:7,a:7"), "voters: a quorum needs voters, each once"),
    ],
)
def test_mistakes_name_the_key(tmp_path: Path, config: ManagerConfig, says: str) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(ManagerRefused, match=says):
        configured_manager(config, "id", tmp_path)
