"""How the clients are spread over the members, asked of one of them (nothing that a real Artemis has)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.request.call import Call, Operations, Parameters, flag_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.management.management import Management


@mypyc_attr(allow_interpreted_subclasses=True)
class Balance:
    """Given by the cluster."""

    def describe(self, now: int, exactly: bool, asking: int) -> dict[str, object]:
        """What `client_balance` answers; `exactly`: without a tolerance, as an operator wants it.

        It is about the cluster connection of the acceptor of the connection `asking`, which does not count itself.
        """
        raise NotImplementedError

    def ask(self, now: int, asking: int) -> None:
        """Send the surplus of the cluster connection away now (as above), whatever the settings say."""
        raise NotImplementedError


def balance_of(management: Management) -> Balance:
    if management.balance is None:
        raise BrokerError(
            ILLEGAL_STATE, "this node is in no cluster: it cannot send clients anywhere"
        )
    return management.balance


def client_balance(call: Call) -> object:
    """JSON: this node, `members` and their clients, the `moves` it wants, why it `waits`, why clients `stay`."""
    return encode_json(balance_of(call.management).describe(call.now, False, asking(call)))


def asking(call: Call) -> int:
    """The connection that asks: it is no client to be balanced."""
    return -1 if call.session is None else call.session.client.connection


def rebalance(call: Call, given: Parameters) -> object:
    """(dryRun): the same, with all that is above the mean; it is sent away unless `dryRun`."""
    balance = balance_of(call.management)
    described = balance.describe(call.now, True, asking(call))
    if not flag_of(given, 0):
        balance.ask(call.now, asking(call))
    return encode_json(described)


BALANCE_OPERATIONS: Final[Operations] = {"rebalance": [("b", rebalance)]}
