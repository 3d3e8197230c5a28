"""The acceptors and the TLS contexts of acceptors and connectors."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from atalanta.config.configuration import Configuration
from atalanta.runtime.net.acceptor import Listen
from atalanta.tls.context import ClientTls, client_tls, server_context
from atalanta.tls.errors import TlsError
from atalanta.wire.endpoint import TLS_FIELDS, AcceptorConfig, read_tls
from atalanta.wire.uri import UriError

if TYPE_CHECKING:
    from atalanta.cluster.networks.config import NetworkConnectorConfig, NetworkTarget

# Options of Classic's addresses that say whether the certificate must name the host.
HOST_CHECKS: Final = ("socket.verifyHostName", "transport.verifyHostName")


def listens(configuration: Configuration) -> list[Listen]:
    """Returns the acceptors; those with `auto_start` open at start. TlsError names acceptor and parameter."""
    return [
        Listen(
            acceptor.name,
            acceptor.host,
            acceptor.port,
            connections_max=acceptor.connections_allowed,
            backlog=acceptor.backlog or Listen.backlog,
            send_buffer_bytes=acceptor.tcp_send_buffer_bytes,
            receive_buffer_bytes=acceptor.tcp_receive_buffer_bytes,
            no_delay=acceptor.tcp_no_delay,
            tls=acceptor_tls(configuration, acceptor),
            handshake_timeout_s=acceptor.handshake_timeout_s,
            core=acceptor.serves("CORE"),
            auto_start=acceptor.auto_start,
        )
        for acceptor in configuration.acceptors
    ]


def acceptor_tls(configuration: Configuration, acceptor: AcceptorConfig) -> ssl.SSLContext | None:
    """Returns the TLS context; None without `sslEnabled`."""
    if acceptor.tls is None:
        return None
    try:
        return server_context(acceptor.tls, configuration.store_folders)
    except TlsError as error:
        raise TlsError(f"{configuration.path}: acceptor '{acceptor.name}': {error}") from error


def secure_connectors(configuration: Configuration) -> dict[str, ClientTls]:
    """Returns the connectors with `sslEnabled`, by name. TlsError names connector and parameter.

    If no other element dials an unusable connector, it is left out: it may only be announced. A bridge created
    by management uses the others.
    """
    made: dict[str, ClientTls] = {}
    dials = configuration.cluster_connections or configuration.bridges or configuration.routers
    for name, connector in configuration.connectors.items():
        if connector.tls is not None:
            try:
                made[name] = client_tls(connector.tls, configuration.store_folders)
            except TlsError as error:
                if not dials:
                    continue
                raise TlsError(f"{configuration.path}: connector '{name}': {error}") from error
    if configuration.networks.connectors:
        made.update(_network_tls(configuration))
    return made


def _network_tls(configuration: Configuration) -> dict[str, ClientTls]:
    """Returns the settings of the network connectors that may dial over TLS, by the names that their bridges use."""
    from atalanta.cluster.networks.config import (  # Most nodes have no networks.
        NetworkTarget,
        is_secure,
        tls_name,
    )

    made: dict[str, ClientTls] = {}
    for network in configuration.networks.connectors:
        targets = [target for bridge in network.way.bridges for target in bridge]
        if network.way.group:
            targets.append(NetworkTarget("ssl", "", 0))  # brokers that will be heard
        for target in targets:
            if is_secure(target.scheme):
                made[tls_name(network, target)] = _target_tls(configuration, network, target)
    return made


def _target_tls(configuration: Configuration, network: NetworkConnectorConfig, target: NetworkTarget) -> ClientTls:
    """Returns the settings of the broker's <sslContext>, with what the address says."""
    params = dict(configuration.networks.tls)
    for name, text in target.params:
        if name in HOST_CHECKS:
            params["verifyHost"] = text
        elif name in TLS_FIELDS:
            params[name] = text
    try:
        tls = read_tls({**params, "sslEnabled": "true"})
        assert tls is not None
        return client_tls(tls, configuration.store_folders)
    except (TlsError, UriError) as error:
        raise TlsError(f"{configuration.path}: network connector '{network.name}': {error}") from error
