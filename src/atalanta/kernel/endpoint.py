"""What a consumer's or a sender's protocol must offer to the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.reference import Reference


# A token that wants no answer: the client did not ask for one.
SILENT: Final = -(1 << 62)


@mypyc_attr(allow_interpreted_subclasses=True)
class Endpoint:
    """One protocol session (or bridge) as the kernel sees it. Calls are made inside a node input; none may block.

    `token` is whatever the protocol gave with a request (CORE: the correlation id).
    """

    def deliver(self, consumer: Consumer, reference: Reference) -> int:
        """Put the message on the wire; returns its cost in credits (bytes)."""
        raise NotImplementedError

    def forced(self, consumer: Consumer, sequence: int) -> None:
        """Answer to a forced delivery: everything deliverable went out before."""
        raise NotImplementedError

    def done(self, token: int) -> None:
        """The request is carried out and, where it had to be, durable."""
        raise NotImplementedError

    def failed(self, token: int, error: BrokerError) -> None:
        """The request was refused after it had been accepted."""
        raise NotImplementedError

    def consumer_gone(self, consumer: Consumer, why: str) -> None:
        """The queue was deleted under the consumer."""
        raise NotImplementedError

    def ended_by_operator(self, now: int) -> None:
        """An operator ends the session: transaction rolled back, consumers gone."""
        raise NotImplementedError

    def credits(self, address: str, amount: int) -> None:
        """Producer credits, in bytes."""
        raise NotImplementedError

    def refuse_credits(self, address: str, amount: int) -> None:
        """The address is full and fails its senders; the credits may follow later all the same."""
        raise NotImplementedError
