"""The calls of the kernel to a protocol that name no queue: answers to requests, control of senders.

Endpoints inherit from each other in one line: compiled classes have one native base, and traits cannot be extended by
interpreted classes. `Reply`, `SenderEndpoint`, `DeliveryEndpoint` (kernel/queue/consumer.py) and `SessionEndpoint`
(kernel/sessions/session_endpoint.py). Calls are made inside a node input; none may block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError


# The token of a request whose client asked for no answer.
SILENT: Final = -(1 << 62)
# What became of a message that is confirmed, and is in no queue by this send.
DROPPED: Final = 1  # its address is full and drops messages
UNROUTED: Final = 2  # no queue takes it, where a sender may expect one
REPEATED: Final = 3  # the broker has it already


@mypyc_attr(allow_interpreted_subclasses=True)
class Reply:
    """The answer to a request. `token` is the value that the protocol gave with it (CORE: the correlation id)."""

    def done(self, token: int) -> None:
        """Confirms that the request is executed and, if it has to be, durable."""
        raise NotImplementedError

    def failed(self, token: int, error: BrokerError) -> None:
        """Reports that the request was refused after it had been accepted."""
        raise NotImplementedError

    def takes_notices(self) -> bool:
        """Returns whether the client has asked for `notice`. Its transactions fail with a message that gets one."""
        return False

    def notice(self, token: int, outcome: int) -> None:
        """Tells what became of a message (DROPPED …), before `done(token)` confirms it."""
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class SenderEndpoint(Reply):
    """The control of a client's senders.

    A protocol with producer credits implements `credits` and `refuse_credits`. One without asks for them in the name of
    its client, and stops reading between `blocked` and `unblocked`.
    """

    def credits(self, address: str, amount: int) -> None:
        """Grants producer credits, in bytes."""
        raise NotImplementedError

    def refuse_credits(self, address: str, amount: int) -> None:
        """Refuses credits: the address is full and fails its senders. They may follow later all the same."""
        raise NotImplementedError

    def overdue(self, address: str, amount: int, wait_ns: int) -> bool:
        """Reports that a request has waited for `wait_ns`, as long as its address lets it. Returns True if it has
        ended: it is refused.
        """
        self.refuse_credits(address, amount)
        return True

    def cut_off(self, why: str) -> None:
        """Reports a sender that ignores that it gets no credits: its connection closes after the answer."""
        raise NotImplementedError

    def blocked(self, address: str) -> None:
        """Reports that a request for credits of the address has to wait."""
        return None

    def unblocked(self, address: str) -> None:
        """Reports that the request that `blocked` named is granted; `credits` follows."""
        return None
