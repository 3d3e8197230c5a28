"""The scale-down requested by management; cluster/scale_down/scale_down.py has the cluster's side."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError


@mypyc_attr(allow_interpreted_subclasses=True)
class ScaleDownRequests:
    """The scale-down of a node; this base class is a node without a cluster-connection."""

    def ask(self, now: int, connector: str | None, connection: int) -> None:
        """Moves every message to the node of `connector` (None: as configured), then ends the node.

        The caller's `connection` follows the progress. Raises BrokerError if the scale-down is not possible.
        """
        raise BrokerError(
            ILLEGAL_STATE, "this broker has no cluster-connection: no other node can take its messages"
        )

    def progress(self) -> dict[str, object]:
        """Returns `phase`, `target`, `moved`, `left`, `queues` (name -> messages left), `why`."""
        return {"phase": "none"}
