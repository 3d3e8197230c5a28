"""The control of senders in protocols without credits: what waits until an address has room.

A message whose client waits for an answer is set aside: only its answer waits. For another one the input is stopped,
since nothing else slows its sender down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.kernel.memory.sender_credits import SenderCredits
from atalanta.kernel.sessions.session_endpoint import SessionEndpoint
from atalanta.wire.waiting_requests import WaitingRequests

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

    def set_aside(self, lane: str, request: WaitingRequest) -> None:
        """Lets a request wait while the input goes on. What follows in its lane has to wait behind it."""
        self.waiting.add(lane, request)
        self.count_waiting()

    def count_waiting(self) -> None:
        """Counts what waits for the client's user. Above the share of a user the client is cut off."""
        connection = self._input
        connection.count_unfinished()
        shares = connection.host.unfinished
        if not shares.may_wait(connection):
            self.cut_off(shares.refusal(connection))

    def go_on(self, now: int) -> None:
        """Processes what has room. Then the request that stopped the input may go on, if it was only behind that."""
        if self.waiting.ready:
            self.waiting.go_on(now)
            self._go_on_with_input()

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
