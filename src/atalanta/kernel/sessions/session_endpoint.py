"""The calls of the kernel to a session of a protocol."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from atalanta.kernel.queue.consumer import DeliveryEndpoint


@mypyc_attr(allow_interpreted_subclasses=True)
class SessionEndpoint(DeliveryEndpoint):
    """A session of a protocol: it gets answers and deliveries, and its client's senders are controlled."""

    def ended_by_operator(self, now: int) -> None:
        """Ends the session for an operator: rolls its transaction back and closes its consumers."""
        raise NotImplementedError
