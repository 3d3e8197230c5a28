"""Checks of network connectors: which permissions the user of a bridge lacks at the broker that it leads to.

The end that accepts a bridge gives it the rights of the user who logs in there.
"""

from __future__ import annotations

from typing import Final

from atalanta.cluster.networks.config import NetworkConnectorConfig, NetworkTarget
from atalanta.config.checks.findings import INFORMATION, WARNING, CheckedNode, Findings
from atalanta.config.checks.reachability import WILDCARD_HOSTS, same_host
from atalanta.kernel.security.security import (
    CONSUME,
    CREATE_ADDRESS,
    CREATE_DURABLE_QUEUE,
    CREATE_NON_DURABLE_QUEUE,
    DELETE_DURABLE_QUEUE,
    DELETE_NON_DURABLE_QUEUE,
    SEND,
    Security,
    SecurityRule,
)

RIGHTS: Final = "the bridge has the rights of its user there, and no others"
ADVISORIES: Final = "ActiveMQ.Advisory.Consumer.Queue"
# With `duplex` messages come back: permission -> what the bridge does not do without it.
OF_DUPLEX: Final = {
    CONSUME: "no message comes from there",
    CREATE_ADDRESS: "destinations that it does not have are no demand",
    CREATE_DURABLE_QUEUE: "durable subscriptions, and queues that it does not have, are no demand",
    DELETE_DURABLE_QUEUE: "a durable subscription that ends here keeps its messages there",
    CREATE_NON_DURABLE_QUEUE: "subscribers of topics are no demand",
    DELETE_NON_DURABLE_QUEUE: "temporary destinations stay there until the bridge ends",
}


def check_networks(nodes: list[CheckedNode], findings: Findings) -> None:
    for node in nodes:
        for connector in node.configuration.networks.connectors:
            targets = [target for bridge in connector.way.bridges for target in bridge]
            others = [other for other in nodes if other is not node and leads_to(targets, other)]
            for other in others:
                _check_user(node, connector, other, findings)
            if targets and not others:
                _tell_needs(node, connector, findings)


def leads_to(targets: list[NetworkTarget], other: CheckedNode) -> bool:
    """Returns True if one of the targets is an acceptor of the node."""
    for acceptor in other.configuration.acceptors:
        for target in targets:
            anywhere = acceptor.host in WILDCARD_HOSTS
            if target.port == acceptor.port and (anywhere or same_host(target.host, acceptor.host)):
                return True
    return False


def needs(connector: NetworkConnectorConfig) -> list[str]:
    """Returns the permissions that the user of the bridge needs at the other broker."""
    return [SEND, *OF_DUPLEX] if connector.duplex else [SEND]


def user_of(connector: NetworkConnectorConfig) -> str:
    """Returns the user as whom the bridge logs in at the other broker."""
    return connector.remote_user_name or connector.user_name


def _check_user(node: CheckedNode, connector: NetworkConnectorConfig, other: CheckedNode, findings: Findings) -> None:
    """Warns of permissions that the user has on no address of the other broker."""
    security = other.security
    user = None if security is None else security.users.get(user_of(connector))
    if security is None or not security.enabled or user is None:
        return
    lacks = {
        permission: OF_DUPLEX.get(permission, "its messages are refused")
        for permission in needs(connector)
        if not any(_grants(rule, permission, user.roles) for rule in _rules(security, permission))
    }
    path = other.configuration.path
    for permission, what in lacks.items():
        text = f"user '{user.name}' has the permission {permission} on no address of {path}: {what}"
        findings.about(WARNING, node, f"networkConnector '{connector.name}': {text}", RIGHTS)
    if not connector.static_bridge and not security.allowed(user.identity, CONSUME, ADVISORIES):
        text = f"user '{user.name}' may not {CONSUME} ActiveMQ.Advisory.# of {path}: it hears of no consumer there"
        findings.about(WARNING, node, f"networkConnector '{connector.name}': {text}", RIGHTS)


def _rules(security: Security, permission: str) -> list[SecurityRule]:
    """Returns the rules that can grant it. That of temporary destinations counts for their end alone."""
    found = [*security.exact.values(), *[rule for _, rule in security.wild]]
    if permission == DELETE_NON_DURABLE_QUEUE or not security.uuid_namespace:
        return found
    return [rule for rule in found if not rule.match.startswith(security.uuid_namespace)]


def _grants(rule: SecurityRule, permission: str, roles: tuple[str, ...]) -> bool:
    granted = rule.permissions.get(permission, ())
    return any(role in granted for role in roles)


def _tell_needs(node: CheckedNode, connector: NetworkConnectorConfig, findings: Findings) -> None:
    needed = f"{', '.join(needs(connector))} on what it serves"
    if not connector.static_bridge:
        needed += f", and {CONSUME} on ActiveMQ.Advisory.#"
    text = f"networkConnector '{connector.name}': user '{user_of(connector)}' needs at the other broker {needed}"
    findings.about(INFORMATION, node, text)
