"""The calls of the kernel to a protocol: answers to requests, deliveries to consumers, control of senders.

The three classes inherit from each other in one line: compiled classes have one native base, and traits cannot be
extended by interpreted classes. Calls are made inside a node input; none may block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.reference import Reference


# The token of a request whose client asked for no answer.
SILENT: Final = -(1 << 62)


@mypyc_attr(allow_interpreted_subclasses=True)
class Reply:
    """The answer to a request. `token` is the value that the protocol gave with it (CORE: the correlation id)."""

    def done(self, token: int) -> None:
        """Confirms that the request is executed and, if it has to be, durable."""
        raise NotImplementedError

    def failed(self, token: int, error: BrokerError) -> None:
        """Reports that the request was refused after it had been accepted."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class DeliveryEndpoint(Reply):
    """The receiver of a consumer's messages: a session of a protocol, or a bridge."""

    def deliver(self, consumer: Consumer, reference: Reference) -> int:
        """Writes the message; returns its cost in credits (CORE: bytes)."""
        raise NotImplementedError

    def drained(self, consumer: Consumer, token: int) -> None:
        """Reports that every message that could be delivered was delivered: the answer to `Session.drain`."""
        raise NotImplementedError

    def consumer_gone(self, consumer: Consumer, why: str) -> None:
        """Reports that the queue of the consumer was deleted."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class SessionEndpoint(DeliveryEndpoint):
    """A session of a protocol: it also controls the senders of its client.

    A protocol with producer credits implements `credits` and `refuse_credits`. One without asks for them in the name of
    its client, and stops reading between `blocked` and `unblocked`.
    """

    def credits(self, address: str, amount: int) -> None:
        """Grants producer credits, in bytes."""
        raise NotImplementedError

    def refuse_credits(self, address: str, amount: int) -> None:
        """Refuses credits: the address is full and fails its senders. They may follow later all the same."""
        raise NotImplementedError

    def blocked(self, address: str) -> None:
        """Reports that a request for credits of the address has to wait."""
        return None

    def unblocked(self, address: str) -> None:
        """Reports that the request that `blocked` named is granted; `credits` follows."""
        return None

    def hold_input(self) -> None:
        """Stops the processing of the client's requests, because one of them waits."""
        raise NotImplementedError

    def release_input(self) -> None:
        """Ends one `hold_input`: the request that waited is processed or refused."""
        raise NotImplementedError

    def ended_by_operator(self, now: int) -> None:
        """Ends the session for an operator: rolls its transaction back and closes its consumers."""
        raise NotImplementedError
