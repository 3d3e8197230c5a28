"""`<scale-down>` of `<primary-only>` (older: `<live-only>`): the target of a node's messages when the node stops."""

from __future__ import annotations

from dataclasses import dataclass, field

from atalanta.kernel.option import option


@dataclass
class ScaleDownConfig:
    """Settings of `<scale-down>`.

    Without `connectors`, `discovery_group` and `group_name`, any member of the cluster is a target. Artemis then
    uses the first in-VM connector, which only a colocated backup has.
    """

    enabled: bool = option(
        True, "enabled", "false: the node only takes over the messages of others of its group"
    )
    group_name: str | None = option(
        None, "group-name", "announced to the others; only a member of the same group is the target"
    )
    commit_interval: int = option(
        -1,
        "commit-interval",
        "messages that may be under way, sent and not yet finished here; -1 as many as the window takes",
        unit="count",
        minimum=-1,
    )
    cluster_name: str | None = None  # scale-down-clustername of 1.4: a cluster-connection
    discovery_group: str | None = None
    connectors: list[str] = field(default_factory=list)  # names, in the order in which they are tried
