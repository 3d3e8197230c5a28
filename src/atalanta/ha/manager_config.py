"""The managers that decide which node of a replicated group is active, as the files configure them.

A manager keeps one small value that changes by compare-and-set (register.py). Artemis calls them lock managers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.kernel.option import OptionGroup, option, unbuilt

_ASKED_AGAIN: Final = "a manager that does not answer is asked again, for ever"
_NO_SESSION: Final = "`lease_ms` of [ha] says when another node takes over for a lost one, and no session"
_USER: Final = "the name with which this node logs in"
_PASSWORD: Final = "the file whose first line is the user's password"
_AUTHORITIES: Final = "PEM file of the authorities that sign the servers' certificates"
_CERTIFICATE: Final = "PEM file of this node's certificate"
_KEY: Final = "PEM file of its key"


@dataclass(eq=False, repr=False)
class ManagerConfig(OptionGroup):
    """The base of the four kinds. The first option of each has no default: it must be given."""


@dataclass(eq=False, repr=False)
class FileManagerConfig(ManagerConfig):
    """A folder that all nodes of the group see; Artemis' FileBasedLockManager."""

    folder: str = option("", "locks-folder", "an existing folder, the same for all nodes of the group")


@dataclass(eq=False, repr=False)
class ZooKeeperManagerConfig(ManagerConfig):
    """An ensemble of ZooKeeper; Artemis' CuratorDistributedLockManager, with its properties."""

    connect_string: str = option("", "connect-string", "host:port of the servers, with commas")
    namespace: str | None = option(None, "namespace", "the node below which the groups' values lie")
    session_ms: int = unbuilt(
        18_000, "session-ms", _NO_SESSION, unit="ms", minimum=1
    )
    session_percent: int = unbuilt(
        33,
        "session-percent",
        _NO_SESSION,
        unit="percent",
        minimum=0,
        maximum=100,
    )
    connection_ms: int = option(
        8000, "connection-ms", "how long a connection, or an answer, may take", unit="ms", minimum=1
    )
    retries: int = unbuilt(1, "retries", _ASKED_AGAIN, unit="count", minimum=-1)
    retries_ms: int = unbuilt(1000, "retries-ms", _ASKED_AGAIN, unit="ms", minimum=1)
    user: str | None = option(None, "user", _USER)
    password_file: str | None = option(None, "password-file", _PASSWORD)
    ca_file: str | None = option(None, "ca-file", f"{_AUTHORITIES}; without it the connection has no TLS")
    certificate_file: str | None = option(None, "certificate-file", _CERTIFICATE)
    key_file: str | None = option(None, "key-file", _KEY)


@dataclass(eq=False, repr=False)
class EtcdManagerConfig(ManagerConfig):
    """A cluster of etcd, by its HTTP gateway."""

    endpoints: str = option("", "endpoints", "http://host:port of the members, with commas")
    namespace: str | None = option(None, "namespace", "the prefix of the groups' keys")
    user: str | None = option(None, "user", _USER)
    password_file: str | None = option(None, "password-file", _PASSWORD)
    ca_file: str | None = option(None, "ca-file", f"{_AUTHORITIES}, for https; without it those of the system")
    certificate_file: str | None = option(None, "certificate-file", _CERTIFICATE)
    key_file: str | None = option(None, "key-file", _KEY)


@dataclass(eq=False, repr=False)
class QuorumManagerConfig(ManagerConfig):
    """The built-in register: a majority of voters keeps the value."""

    voters: str = option(
        "", "voters", "host:port of all voters (`atalanta ha witness`), this node's own too, with commas"
    )
    password_file: str | None = option(None, "password-file", "the file of the voters' password, as they have it")
    voter: str | None = option(
        None, "voter", "host:port where the guard of this node listens as one of the voters; without it, it is none"
    )
    voter_folder: str = option(
        "data/voter", "voter-folder", "its folder, below the instance; `atalanta ha witness --new` makes it, once"
    )


@dataclass(eq=False, repr=False)
class GuardVoter(QuorumManagerConfig):
    """The manager of a pair whose files name none: the guard of the primary runs the only voter.

    `password` is made of that of the cluster. The voter's folder is made with that of the journal.
    """

    password: str = ""


def has_only_voter(manager: ManagerConfig | None) -> bool:
    """Returns whether the register of a group has one voter, in the guard of a member."""
    if not isinstance(manager, QuorumManagerConfig):
        return False
    return isinstance(manager, GuardVoter) or (manager.voter is not None and "," not in manager.voters)


MANAGERS: Final[dict[str, type[ManagerConfig]]] = {
    "file": FileManagerConfig,
    "etcd": EtcdManagerConfig,
    "zookeeper": ZooKeeperManagerConfig,
    "quorum": QuorumManagerConfig,
}

# The last part of Artemis' class names, today's and those until 2.40.
CLASSES: Final[dict[str, type[ManagerConfig]]] = {
    "CuratorDistributedLockManager": ZooKeeperManagerConfig,
    "CuratorDistributedPrimitiveManager": ZooKeeperManagerConfig,
    "FileBasedLockManager": FileManagerConfig,
    "FileBasedPrimitiveManager": FileManagerConfig,
}
DEFAULT_CLASS: Final = "CuratorDistributedLockManager"
