"""All checks of nodes that are read together, or of a single one."""

from __future__ import annotations

from atalanta.config.checks.advisories import check_advisories
from atalanta.config.checks.bridges import check_bridges
from atalanta.config.checks.cluster import check_cluster
from atalanta.config.checks.colocation import check_colocation
from atalanta.config.checks.endpoints import check_endpoints
from atalanta.config.checks.findings import CheckedNode, Findings
from atalanta.config.checks.grouping import check_grouping
from atalanta.config.checks.networks import check_networks
from atalanta.config.checks.replicated_groups.check import check_replicated_groups
from atalanta.config.checks.routers import check_routers
from atalanta.config.checks.scale_down import check_scale_down
from atalanta.config.checks.shared_store import check_shared_store, without_passive
from atalanta.config.checks.zones import check_zones


def check_nodes(nodes: list[CheckedNode], findings: Findings) -> None:
    """Adds what the nodes have of each other, and of themselves."""
    check_endpoints(nodes, findings)
    check_cluster(nodes, findings)
    check_zones(nodes, findings)
    check_shared_store(nodes, findings)
    check_colocation(nodes, findings)
    check_replicated_groups(nodes, findings)
    serving = without_passive(nodes)
    check_grouping(serving, findings)
    check_scale_down(serving, findings)
    check_bridges(nodes, findings)
    check_networks(nodes, findings)
    check_advisories(nodes, findings)
    check_routers(nodes, findings)
