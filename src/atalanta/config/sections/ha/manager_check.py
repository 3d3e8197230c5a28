"""Faults in the values of a manager that can be seen without asking it: addresses, and files that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from atalanta.ha.manager_config import (
    EtcdManagerConfig,
    FileManagerConfig,
    ManagerConfig,
    QuorumManagerConfig,
    ZooKeeperManagerConfig,
)
from atalanta.message.encoding.digits import all_digits

FILES: Final = ("password-file", "ca-file", "certificate-file", "key-file")
HOST_PORT: Final = "host:port, such as 127.0.0.1:5791"
HERE: Final = "correct the name, which is relative to the folder of the instance, unless it is of another host"
Fault = tuple[str, str]  # what is wrong, with its key, and the remedy


def address_faults(config: ManagerConfig) -> list[Fault]:
    """Returns what is wrong with the addresses of the manager's servers."""
    if isinstance(config, QuorumManagerConfig):
        return _faults_of("voters", config.voters)
    if isinstance(config, EtcdManagerConfig):
        wrong = [each for each in _listed(config.endpoints) if not each.startswith(("http://", "https://"))]
        return [(f"endpoints: {each} is not a URL", "http://host:port or https://host:port") for each in wrong]
    if isinstance(config, ZooKeeperManagerConfig):
        # The node below which everything lies may follow the servers, and a port may be left out.
        servers = _listed(config.connect_string.partition("/")[0])
        with_port = [each if ":" in each else f"{each}:2181" for each in servers]
        return _faults_of("connect-string", ",".join(with_port))
    return []


def missing_files(config: ManagerConfig, instance: Path) -> list[Fault]:
    """Returns the files and folders of the manager that are not there. Relative names are below `instance`."""
    faults = []
    if isinstance(config, FileManagerConfig) and config.folder and not (instance / config.folder).is_dir():
        text = f"locks-folder: there is no folder {instance / config.folder}"
        faults.append((text, "make it, where all members of the group see it"))
    for key in FILES:
        name = getattr(config, key.replace("-", "_"), None)
        if name is not None and not (instance / name).is_file():
            faults.append((f"{key}: there is no file {instance / name}", HERE))
    return faults


def _faults_of(key: str, text: str) -> list[Fault]:
    """Returns the faults of a list of host:port, each of which is given once."""
    faults = []
    seen: list[str] = []
    for each in _listed(text):
        host, separator, port = each.rpartition(":")
        if not separator or not host or not all_digits(port, 5) or not 0 < int(port) < 65_536:
            faults.append((f"{key}: {each} is not host:port", HOST_PORT))
        elif each in seen:
            faults.append((f"{key}: {each} is given twice", "name each server once"))
        seen.append(each)
    return faults


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
