"""Distribution of clients over the cluster members, as known to one member (an addition to Artemis)."""

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
    """The cluster's side of client balancing; the cluster provides a subclass."""

    def describe(self, now: int, exactly: bool, asking: int) -> dict[str, object]:
        """Returns the answer of `client_balance`. `exactly` drops the tolerance, for a rebalance by an operator.

        The figures concern the cluster connection of the acceptor of connection `asking`, which is not counted.
        """
        raise NotImplementedError

    def ask(self, now: int, asking: int) -> None:
        """Redirects the surplus clients of that cluster connection now, whatever the settings are."""
        raise NotImplementedError


def balance_of(management: Management) -> Balance:
    if management.balance is None:
        raise BrokerError(
            ILLEGAL_STATE, "this node has no cluster-connection: it cannot redirect clients"
        )
    return management.balance


def client_balance(call: Call) -> object:
    """Returns JSON: this node, `members` and their clients, planned `moves`, why it `waits`, why clients `stay`."""
    return encode_json(balance_of(call.management).describe(call.now, False, asking(call)))


def asking(call: Call) -> int:
    """Returns the connection of the caller, which is not a client to be balanced."""
    return -1 if call.session is None else call.session.client.connection


def rebalance(call: Call, given: Parameters) -> object:
    """(dryRun): returns the answer of `client_balance` without tolerance, and redirects the surplus unless `dryRun`."""
    balance = balance_of(call.management)
    described = balance.describe(call.now, True, asking(call))
    if not flag_of(given, 0):
        balance.ask(call.now, asking(call))
    return encode_json(described)


BALANCE_OPERATIONS: Final[Operations] = {"rebalance": [("b", rebalance)]}
