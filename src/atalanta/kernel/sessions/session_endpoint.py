"""The calls of the kernel to a session of a protocol."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from atalanta.kernel.queue.consumer import DeliveryEndpoint


@mypyc_attr(allow_interpreted_subclasses=True)
class SessionEndpoint(DeliveryEndpoint):
    """A session of a protocol: it gets answers and deliveries, and its client's senders are controlled."""

    def hold_input(self) -> None:
        """Stops the processing of the client's requests, because one of them waits."""
        raise NotImplementedError

    def release_input(self) -> None:
        """Ends one `hold_input`: the request that waited is processed or refused."""
        raise NotImplementedError

    def ended_by_operator(self, now: int) -> None:
        """Ends the session for an operator: rolls its transaction back and closes its consumers."""
        raise NotImplementedError
