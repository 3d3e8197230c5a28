"""`<grouping-handler>`: the node that decides to which queue of the cluster a message group belongs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.kernel.option import OptionGroup, option

LOCAL: Final = "LOCAL"
REMOTE: Final = "REMOTE"
TYPES: Final = {LOCAL: LOCAL, REMOTE: REMOTE}


@dataclass(eq=False, repr=False)
class GroupingHandlerConfig(OptionGroup):
    """The handler of a node. One node of a cluster has type LOCAL, all others REMOTE."""

    name: str = option("", "name", "any", attribute=True)
    type: str = option(
        "", "type", "LOCAL decides and keeps what it decided, REMOTE asks the LOCAL one", choices=TYPES
    )
    address: str = option(
        "", "address", "address of the handlers' messages: must be covered by the cluster-connection's address"
    )
    timeout_ms: int = option(
        5_000,
        "timeout",
        "longest wait for a decision, then the send is refused; also for a pinned queue to be seen",
        unit="ms",
        minimum=1,
    )
    group_timeout_ms: int = option(
        -1,
        "group-timeout",
        "a group without messages for that long may go elsewhere, -1 never; on REMOTE nodes at most"
        " that of the LOCAL one",
        unit="ms",
        minimum=-1,
    )
    reaper_period_ms: int = option(
        30_000,
        "reaper-period",
        "period of the LOCAL handler's scan for such groups",
        unit="ms",
        minimum=1,
    )
