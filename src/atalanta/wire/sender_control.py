"""The control of senders in protocols without credits: what waits until an address has room.

A message whose client waits for an answer is set aside: only its answer waits. For another one the input is stopped,
since nothing else slows its sender down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ADDRESS_FULL, BrokerError
from atalanta.kernel.memory.sender_credits import SenderCredits
from atalanta.kernel.sessions.session_endpoint import SessionEndpoint
from atalanta.wire.waiting_requests import WaitingRequests, full_text

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session
    from atalanta.wire.login import LoginConnection
    from atalanta.wire.waiting_requests import WaitingRequest


@mypyc_attr(allow_interpreted_subclasses=True)
class SenderControl(SessionEndpoint):
    """The session of a client that knows no credits. Its messages ask with `may_send`."""

    def __init__(self, connection: LoginConnection) -> None:
        self._input = connection
        self._kernel: Session | None = None
        self.sender_credits: SenderCredits = SenderCredits()
        self.waiting: WaitingRequests = WaitingRequests()
        self._stopped: bool = False
        # The message that stopped the input: where and since when (ns) it waits, and whether that is too long.
        self.stopper: object | None = None
        self.stopped_at: str = ""
        self.stopped_since: int = 0
        self.stopped_too_long: bool = False
        self.patient: bool = False  # its messages wait for ever
        self.overdue_at: dict[str, int] = {}  # address -> how long it lets its senders wait (ns)

    def attach(self, kernel: Session) -> None:
        """Takes the kernel's session, before the first request."""
        self._kernel = kernel

    @property
    def kernel(self) -> Session:
        assert self._kernel is not None
        return self._kernel

    def may_send(self, address: str, size: int) -> bool:
        """Returns True if the address has room for the client's message; else it must wait."""
        memory = self.kernel.services.memory
        return self.sender_credits.take(address, size, memory.refusing > 0, self.kernel.request_credits)

    def stop_input(self) -> None:
        """Stops the input until something that waits goes on: the request that is processed is given again then."""
        if not self._stopped:
            self._stopped = True
            self.hold_input()

    def stop_for_room(self, now: int, address: str, message: object) -> None:
        """Stops the input for a message that waits at an address; "": behind others. BrokerError if it has waited for
        too long.
        """
        if message is not self.stopper:
            self.stopper, self.stopped_since, self.stopped_too_long = message, now, False
        elif self.stopped_too_long:
            raise BrokerError(ADDRESS_FULL, full_text(self.stopped_at))
        self.stopped_at = address
        self._limit_wait(address, self.stopped_since)
        self.stop_input()

    def end_stop(self) -> None:
        """Forgets the message that stopped the input: it is processed."""
        self.stopper = None

    def set_aside(self, now: int, lane: str, request: WaitingRequest) -> None:
        """Lets a request wait while the input goes on. What follows in its lane has to wait behind it."""
        request.begin(now)
        self.waiting.add(lane, request)
        self._limit_wait(request.address, now)
        self.count_waiting()

    def _limit_wait(self, address: str, since: int) -> None:
        """Asks the kernel to say when a message has waited at the address as long as it may."""
        if address and not self.patient:
            self.kernel.request_credits(address, 0, since)

    def count_waiting(self) -> None:
        """Counts what waits for the client's user. Above the share of a user the client is cut off."""
        connection = self._input
        connection.count_unfinished()
        shares = connection.host.unfinished
        if not shares.may_wait(connection):
            self.cut_off(shares.refusal(connection))

    def go_on(self, now: int) -> None:
        """Processes what has room, and refuses what has waited for too long. Then the request that stopped the input
        may go on, if it was only behind that.

        While the kernel's session has a request to end, nothing goes on: `release_input` follows.
        """
        if self.waiting.ready and not self.kernel.waits():
            self.waiting.go_on(now, self.kernel)
            self._limit_waits()
            self._go_on_with_input()
        while self.overdue_at and not self.kernel.waits():
            address, wait_ns = self.overdue_at.popitem()
            self._refuse_overdue(now, address, wait_ns)

    def _refuse_overdue(self, now: int, address: str, wait_ns: int) -> None:
        self.waiting.refuse_overdue(now, address, wait_ns, self.kernel)
        if self.kernel.waits():
            self.overdue_at[address] = wait_ns
        if self.stopped_at == address and self.stopped_since + wait_ns <= now:
            self.stopped_too_long = True
        self._limit_waits()
        self._go_on_with_input()

    def _limit_waits(self) -> None:
        """Limits the waits of what waits at an address now: it has waited behind others before."""
        for address in self.waiting.addresses:
            self._limit_wait(address, self.waiting.waits_since(address))

    def overdue(self, address: str, amount: int, wait_ns: int) -> bool:
        """Requests that the input goes on later: what has waited for too long is refused then."""
        self.overdue_at[address] = wait_ns
        self._input.resume_later()
        return False

    def credits(self, address: str, amount: int) -> None:
        self.sender_credits.grant(address, amount)

    def refuse_credits(self, address: str, amount: int) -> None:
        """Lets the message go on: it is refused by name."""
        self.unblocked(address)

    def blocked(self, address: str) -> None:
        self.sender_credits.block(address)

    def unblocked(self, address: str) -> None:
        if not self.sender_credits.unblock(address):
            return
        if self.waiting.room_at(address):
            self._input.resume_later()
        self._go_on_with_input()

    def _go_on_with_input(self) -> None:
        """Lets the request that stopped the input be tried again, behind what was set aside before it."""
        if self._stopped:
            self._stopped = False
            self.release_input()

    def hold_input(self) -> None:
        self._input.hold_input()

    def release_input(self) -> None:
        self._input.release_input()
        if self.waiting.ready or self.overdue_at:
            self._input.resume_later()  # though something else may hold the input
