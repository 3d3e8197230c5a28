"""Checks across the sections of one configuration, and across the configurations of several nodes."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.config.checks.colocation import hosts_of
    from atalanta.config.checks.findings import ERROR, INFORMATION, WARNING, Finding
    from atalanta.config.checks.reachability import WILDCARD_HOSTS, host_of, same_host
    from atalanta.config.checks.replicated_groups.group import groups_of
    from atalanta.config.checks.replicated_groups.losses import NOT_DURABLE, folder_loss, loss_of
    from atalanta.config.checks.replicated_groups.manager import GroupManager
    from atalanta.config.checks.shared_store import SharedStorePair, pairs_of
else:
    __getattr__ = face(__name__)

__all__ = [
    "ERROR", "INFORMATION", "NOT_DURABLE", "WARNING", "WILDCARD_HOSTS", "Finding", "GroupManager",
    "SharedStorePair", "folder_loss", "groups_of", "host_of", "hosts_of", "loss_of", "pairs_of",
    "same_host",
]
