"""The distribution of clients over the cluster members, as known to one member (an addition to Artemis)."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientBalance:
    """The cluster's side of client balancing; this base class is a node without a cluster-connection."""

    def describe(self, now: int, exactly: bool, connection: int) -> dict[str, object]:
        """Returns the answer of `getClientBalance`. `exactly` drops the tolerance, for a rebalance by an operator.

        The figures concern the cluster connection of the acceptor of the caller's `connection`, which is not counted.
        """
        raise BrokerError(
            ILLEGAL_STATE, "this node has no cluster-connection: it cannot redirect clients"
        )

    def ask(self, now: int, connection: int) -> None:
        """Redirects the surplus clients of that cluster connection now, whatever the settings are."""
        raise NotImplementedError
