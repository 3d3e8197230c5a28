"""A cluster connection as management sees it; the cluster provides the subclass."""

from __future__ import annotations

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class ListedClusterConnection:
    """The interface of one cluster connection for management."""

    def attribute(self, name: str) -> object:
        """Returns the value of an attribute under Artemis' name, one of ClusterConnectionControl.ATTRIBUTES."""
        raise NotImplementedError

    def metrics_of(self, node_id: str) -> dict[str, object] | None:
        """Returns the metrics of the bridge to one member, None if there is no such bridge."""
        raise NotImplementedError

    def give_up(self, now: int, node_id: str) -> int:
        """Gives up a lost member: messages that may have arrived there are sent to others. Returns their number.

        Returns -1 if the member is not away.
        """
        raise NotImplementedError

    def links(self, now: int) -> list[dict[str, object]]:
        """Returns one row per member.

        Keys: nodeID, address, state, awaySince (ms), waiting, mayHaveArrived, forwarded, confirmed, queues,
        consumers.
        """
        raise NotImplementedError
