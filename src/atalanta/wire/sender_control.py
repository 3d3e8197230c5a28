"""The control of senders in protocols without credits: the input of a client is held until its address has room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.kernel.memory.sender_credits import SenderCredits
from atalanta.kernel.sessions.session_endpoint import SessionEndpoint

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session
    from atalanta.wire.login import LoginConnection


@mypyc_attr(allow_interpreted_subclasses=True)
class SenderControl(SessionEndpoint):
    """The session of a client that knows no credits. Its messages ask with `may_send`."""

    def __init__(self, connection: LoginConnection) -> None:
        self._input = connection
        self._kernel: Session | None = None
        self.sender_credits: SenderCredits = SenderCredits()

    def attach(self, kernel: Session) -> None:
        """Takes the kernel's session, before the first request."""
        self._kernel = kernel

    @property
    def kernel(self) -> Session:
        assert self._kernel is not None
        return self._kernel

    def may_send(self, address: str, size: int) -> bool:
        """Returns True if the address has room for the client's next message; else input is held until it has."""
        memory = self.kernel.services.memory
        return self.sender_credits.take(address, size, memory.refusing > 0, self.kernel.request_credits)

    def credits(self, address: str, amount: int) -> None:
        self.sender_credits.grant(address, amount)

    def refuse_credits(self, address: str, amount: int) -> None:
        """Lets the message go on: it is refused by name."""
        self.unblocked(address)

    def blocked(self, address: str) -> None:
        self.sender_credits.block(address)
        self.hold_input()

    def unblocked(self, address: str) -> None:
        if self.sender_credits.unblock(address):
            self.release_input()

    def hold_input(self) -> None:
        self._input.hold_input()

    def release_input(self) -> None:
        self._input.release_input()
