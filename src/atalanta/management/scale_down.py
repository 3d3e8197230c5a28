"""How management asks a node to leave its cluster; the cluster's side is cluster/scale_down/scale_down.py."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError


@mypyc_attr(allow_interpreted_subclasses=True)
class Departure:
    """This base class is a node that has nowhere to go."""

    def ask(self, now: int, connector: str | None, asker: int) -> None:
        """Give everything to the node that `connector` names (None: as configured), then end.

        `asker` is the connection that wants to see how it goes. BrokerError if that is not possible.
        """
        raise BrokerError(
            ILLEGAL_STATE, "this broker has no cluster-connection: nobody can take its messages"
        )

    def progress(self) -> dict[str, object]:
        """`phase`, `target`, `moved`, `left`, `queues` (name -> messages left), `why`."""
        return {"phase": "none"}
