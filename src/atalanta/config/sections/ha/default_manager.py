"""The manager of a pair whose files name none: one voter beside the primary, in its guard.

Two nodes without a third machine: whatever ends a process, or the backup's host, the pair goes on. When the primary's
host is lost, an operator decides. So the two never serve both.
"""

from __future__ import annotations

import socket
from typing import Final

from atalanta.config.configuration import Configuration
from atalanta.ha.manager_config import GuardVoter
from atalanta.ha.policy import PRIMARY

# Both members know the primary's connector: its voter listens at the port that is so much higher, or lower.
PORT_STEP: Final = 1000
PORT_MAX: Final = 65_535
WILDCARDS: Final = ("0.0.0.0", "::")


def default_manager(configuration: Configuration) -> GuardVoter | None:
    """Returns the manager of a node that names exactly one other; None for any other one.

    A colocated node may name more: it has one backup.
    """
    connection = configuration.group_connection()
    if connection is None:
        return None
    own = configuration.connectors.get(connection.connector)
    others = [
        configuration.connectors[name]
        for name in connection.static_connectors
        if name != connection.connector and name in configuration.connectors
    ]
    others = [each for each in others if own is None or (each.host, each.port) != (own.host, own.port)]
    if own is None or (len(others) != 1 and configuration.ha.colocation is None):
        return None
    broker = configuration.broker
    password = f"{broker.cluster_user}:{broker.cluster_password}"
    if configuration.ha.role != PRIMARY:
        return GuardVoter(voter_of(others[0].host, others[0].port), password=password)
    hosts = [acceptor.host for acceptor in configuration.acceptors if acceptor.port == own.port and acceptor.host]
    listens = f"{hosts[0] if hosts else WILDCARDS[0]}:{_port_of(own.port)}"
    return GuardVoter(voter_of(own.host, own.port), voter=listens, password=password)


def voter_of(host: str, port: int) -> str:
    """Returns host:port of the voter of the primary that listens at `host` and `port`."""
    host = socket.gethostname() if host in WILDCARDS else host
    return f"[{host}]:{_port_of(port)}" if ":" in host else f"{host}:{_port_of(port)}"


def _port_of(port: int) -> int:
    return port + PORT_STEP if port + PORT_STEP <= PORT_MAX else port - PORT_STEP
