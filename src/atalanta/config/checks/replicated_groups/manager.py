"""The manager of a group as one file names it: its servers, their hosts, and how many of them it needs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from atalanta.config.checks.reachability import same_host
from atalanta.config.configuration import Configuration
from atalanta.ha.manager_config import (
    EtcdManagerConfig,
    FileManagerConfig,
    ManagerConfig,
    QuorumManagerConfig,
    ZooKeeperManagerConfig,
)

FILE, ETCD, ZOOKEEPER, QUORUM = "file", "etcd", "zookeeper", "quorum"


@dataclass(frozen=True)
class GroupManager:
    """The manager `kind`: `servers` as host:port, or the folder `place`. `namespace` parts groups on one server."""

    kind: str
    servers: tuple[str, ...] = ()
    place: str = ""
    namespace: str = ""

    @staticmethod
    def of(node: Configuration, config: ManagerConfig) -> GroupManager:
        """Returns the manager that `config`, of the files of `node`, describes."""
        if isinstance(config, FileManagerConfig):
            return GroupManager(FILE, place=os.path.realpath(node.instance / config.folder))
        if isinstance(config, EtcdManagerConfig):
            servers = tuple(each.partition("://")[2].strip("/") or each for each in _listed(config.endpoints))
            return GroupManager(ETCD, servers, namespace=config.namespace or "")
        if isinstance(config, ZooKeeperManagerConfig):
            servers = tuple(_listed(config.connect_string.partition("/")[0]))
            return GroupManager(ZOOKEEPER, servers, namespace=config.namespace or "")
        assert isinstance(config, QuorumManagerConfig)
        return GroupManager(QUORUM, tuple(_listed(config.voters)))

    def __str__(self) -> str:
        if self.kind == FILE:
            return f"the folder {self.place}"
        names = ", ".join(self.servers)
        if self.kind == QUORUM:
            return f"{'the voter' if len(self.servers) == 1 else 'a majority of the voters'} {names}"
        return f"{self.kind} at {names}"

    @property
    def word(self) -> str:
        """Returns the name of a server in findings."""
        return "voter" if self.kind == QUORUM else f"{self.kind} server"

    @property
    def needed(self) -> int:
        """The number of servers without which it does not answer."""
        return len(self.servers) // 2 + 1 if self.servers else 0

    def is_that_of(self, other: GroupManager) -> bool:
        """Returns whether both may be one manager. One of etcd or ZooKeeper is named by any of its servers."""
        if (self.kind, self.place, self.namespace) != (other.kind, other.place, other.namespace):
            return False
        if self.kind == QUORUM:
            return sorted(self.servers) == sorted(other.servers)
        return self.kind == FILE or any(each in other.servers for each in self.servers)

    def hosts(self) -> list[str]:
        """Returns the hosts of its servers, each once."""
        return list(dict.fromkeys(host_part(each) for each in self.servers))

    def servers_on(self, host: str) -> list[str]:
        """Returns its servers on `host`."""
        return [each for each in self.servers if same_host(host_part(each), host)]

    def lies_with(self, members: list[Configuration]) -> bool:
        """Returns whether its folder is inside the instance of one of `members`, on the disk of that one's host."""
        return any(Path(self.place).is_relative_to(os.path.realpath(each.instance)) for each in members if self.place)


def host_part(server: str) -> str:
    """Returns the host of host:port."""
    return server.rpartition(":")[0].strip("[]") or server


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
