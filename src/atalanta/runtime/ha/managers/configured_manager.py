"""The manager of a replicated group, as the files of a node configure it."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Final

from atalanta.ha import manager_config
from atalanta.runtime.ha.managers.etcd_manager import EtcdManager
from atalanta.runtime.ha.managers.file_manager import FileManager
from atalanta.runtime.ha.managers.manager import Manager
from atalanta.runtime.ha.managers.quorum_manager import QuorumManager
from atalanta.runtime.ha.managers.zookeeper_manager import ZooKeeperManager, ZooKeeperTls

NAMESPACE: Final = "atalanta"
LIFE_SIZE: Final = 8


class ManagerRefused(Exception):
    """A manager that cannot be used as it is configured. The text has the key and the remedy."""


def configured_manager(config: manager_config.ManagerConfig, name: str, folder: Path) -> Manager:
    """Returns the manager of the register `name`. Relative paths are below `folder`. Raises ManagerRefused."""
    if isinstance(config, manager_config.FileManagerConfig):
        place = folder / config.folder
        if place.exists() and not place.is_dir():
            raise ManagerRefused(f"locks-folder: {place} is not a folder")
        return FileManager(place, name)
    if isinstance(config, manager_config.EtcdManagerConfig):
        return _etcd(config, name, folder)
    if isinstance(config, manager_config.ZooKeeperManagerConfig):
        return _zookeeper(config, name, folder)
    if isinstance(config, manager_config.QuorumManagerConfig):
        voters = [_voter(each) for each in _listed(config.voters)]
        password = voters_password(config, folder)
        try:
            return QuorumManager(voters, name, password, os.urandom(LIFE_SIZE))
        except ValueError as error:
            raise ManagerRefused(f"voters: {error}") from error
    raise AssertionError(f"a manager of another kind: {type(config).__name__}")


def _etcd(config: manager_config.EtcdManagerConfig, name: str, folder: Path) -> Manager:
    context = None
    if config.ca_file is not None or config.certificate_file is not None:
        authorities = None if config.ca_file is None else str(folder / config.ca_file)
        try:
            context = ssl.create_default_context(cafile=authorities)
            if config.certificate_file is not None:
                key = None if config.key_file is None else folder / config.key_file
                context.load_cert_chain(folder / config.certificate_file, key)
        except (OSError, ssl.SSLError) as error:
            raise ManagerRefused(f"ca-file, certificate-file, key-file: {error}") from error
    try:
        return EtcdManager(
            _listed(config.endpoints),
            f"{config.namespace or NAMESPACE}/{name}",
            config.user or "",
            password_of(config.password_file, folder),
            context,
        )
    except ValueError as error:
        raise ManagerRefused(f"endpoints: {error}") from error


def _zookeeper(config: manager_config.ZooKeeperManagerConfig, name: str, folder: Path) -> Manager:
    tls = None
    if config.ca_file is not None:
        certificate = "" if config.certificate_file is None else str(folder / config.certificate_file)
        key = "" if config.key_file is None else str(folder / config.key_file)
        tls = ZooKeeperTls(str(folder / config.ca_file), certificate, key)
    try:
        return ZooKeeperManager(
            config.connect_string,
            f"/{(config.namespace or NAMESPACE).strip('/')}/{name}",
            config.user or "",
            password_of(config.password_file, folder),
            tls,
            config.connection_ms / 1_000,
        )
    except ImportError as error:
        raise ManagerRefused("the manager zookeeper needs kazoo: pip install 'atalanta[zookeeper]'") from error


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _voter(text: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal():
        raise ManagerRefused(f"voters: {text} is not host:port, such as 127.0.0.1:5790")
    return host.strip("[]"), int(port)


def voters_password(config: manager_config.QuorumManagerConfig, folder: Path) -> str:
    """Returns the password of the voters, "" without one. ManagerRefused."""
    if isinstance(config, manager_config.GuardVoter):
        return config.password
    return password_of(config.password_file, folder)


def password_of(name: str | None, folder: Path) -> str:
    """Returns the password in the file `name` below `folder`, "" without a name. ManagerRefused."""
    if name is None:
        return ""
    path = folder / name
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ManagerRefused(f"password-file {path}: {error}") from error
    if not lines or not lines[0]:
        raise ManagerRefused(f"password-file {path}: its first line is empty")
    return lines[0]
