"""The receiver of what a broker sends to a bridge in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.encoding.structure import Command


@mypyc_attr(allow_interpreted_subclasses=True)
class LocalReceiver:
    """The receiver: a bridge, or the session of another broker's bridge."""

    def take(self, command: Command) -> None:
        """Takes a command of the broker. EncodeError: the message cannot go on, and is set aside."""
        raise NotImplementedError

    def left_out(self, queue: str, error: BrokerError) -> bool:
        """Reports a queue that a consumer with wildcards cannot have; returns False if the broker is to do so."""
        return False

    def temporary_taken(self, now: int, destination: ActiveMQDestination) -> None:
        """Ends the demand for a temporary destination that this bridge has brought: its creator has come here."""
        return None

    def local_ended(self, why: str) -> None:
        """Handles the end of the session: a queue was deleted, or an operator has closed it."""
        raise NotImplementedError

    def hold(self) -> None:
        """Stops the input that the bridge gives to the broker."""
        return None

    def release(self) -> None:
        """Lets the input go on."""
        return None
