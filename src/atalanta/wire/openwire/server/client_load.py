"""How many failover clients a broker of a network has: Atalanta nodes tell each other over their bridges.

It is a ConnectionControl, which earlier versions ignore. A Classic broker tells nothing and is told nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.commands.connections import ConnectionControl

if TYPE_CHECKING:
    from atalanta.wire.openwire.options import WireFormatOptions

PROVIDER: Final = "Atalanta"
LOAD: Final = "atalanta:clients="
DIGITS_MAX: Final = 9


def hears_of_load(theirs: WireFormatOptions | None) -> bool:
    """Returns whether the other side of a connection is an Atalanta node."""
    return theirs is not None and theirs.provider_name == PROVIDER


def load_command(clients: int) -> ConnectionControl:
    """Returns the command that tells how many failover clients this node has."""
    return ConnectionControl(connected_brokers=f"{LOAD}{clients}")


def load_in(command: ConnectionControl) -> int | None:
    """Returns how many failover clients the other broker tells that it has; None if it tells something else."""
    text = command.connected_brokers or ""
    digits = text.removeprefix(LOAD)
    if digits == text or len(digits) > DIGITS_MAX or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits)
