"""Checks of who may hear of the demand of a node: that right makes a user one of a bridge of a network.

Any OpenWire client can introduce itself as the bridge of a broker. With the right on the advisories the message ids
that it brings count for all bridges (kernel/registry/duplicate_spaces.py), and it brings temporary destinations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.config.checks.findings import WARNING, CheckedNode, Findings
from atalanta.config.checks.networks import leads_to, user_of
from atalanta.kernel.security.security import CONSUME, MANAGE, Identity, Security

if TYPE_CHECKING:
    from atalanta.cluster.networks.config import NetworkConnectorConfig

DEMAND: Final = "ActiveMQ.Advisory.Consumer"
ADVISORIES: Final = "ActiveMQ.Advisory"
SHOWN_MAX: Final = 5  # users
RIGHT: Final = (
    "leave consume (activemq.xml: read) on ActiveMQ.Advisory.> to the users of bridges: clients need it for nothing of"
    " their own"
)


def check_advisories(nodes: list[CheckedNode], findings: Findings) -> None:
    """Warns, once for a file, if users who are none of bridges may come in as bridges."""
    for node in nodes:
        security = node.security
        if security is None or not security.enabled or not _takes_bridges(node):
            continue
        connectors = [each for other in nodes if other is not node for each in _connectors_to(node, other)]
        bridges = {user_of(each) for each in connectors}
        others = [name for name in _plain_users(node, security) if name not in bridges]
        if not connectors and (len(others) < 2 or not _in_network(node, security)):
            continue  # one user alone may be that of the bridges
        if others:
            shown = ", ".join(f"'{name}'" for name in others[:SHOWN_MAX])
            more = f" and {len(others) - SHOWN_MAX} more" if len(others) > SHOWN_MAX else ""
            text = (
                f"users {shown}{more} may consume {DEMAND}: each can come in as a bridge of a network, bring message"
                " ids that count for all bridges, and temporary destinations"
            )
            findings.about(WARNING, node, text, RIGHT)


def _takes_bridges(node: CheckedNode) -> bool:
    return any(each.auto_start and each.serves("OPENWIRE") for each in node.configuration.acceptors)


def _connectors_to(node: CheckedNode, other: CheckedNode) -> list[NetworkConnectorConfig]:
    """Returns the network connectors of the other file that lead to the node."""
    return [
        connector
        for connector in other.configuration.networks.connectors
        if leads_to([target for bridge in connector.way.bridges for target in bridge], node)
    ]


def _in_network(node: CheckedNode, security: Security) -> bool:
    """Returns True for a file that is part of a network, or gives the right by an entry of its own.

    In other files, as those with all rights on `#`, nothing says that there are bridges.
    """
    rule = security.rule(DEMAND)
    return bool(node.configuration.networks.connectors) or (rule is not None and rule.match.startswith(ADVISORIES))


def _plain_users(node: CheckedNode, security: Security) -> list[str]:
    """Returns the users who have the right, but do not manage the node: those could do anything in any case."""
    identities = [user.identity for user in security.users.values()]
    guest = None if security.chain is None else security.chain.guest
    if guest is not None and guest.user not in security.users:
        identities.append(Identity(guest.user, (guest.role,), False))
    management = node.configuration.broker.management_address
    return [
        each.user
        for each in identities
        if security.allowed(each, CONSUME, DEMAND) and not security.allowed(each, MANAGE, management)
    ]
