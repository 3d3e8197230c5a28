"""The TLS settings of network connectors: those of the broker's <sslContext>, with what the addresses of a uri say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.networks.config import is_secure, tls_name
from atalanta.tls.context import ClientTls, client_tls
from atalanta.tls.errors import TlsError
from atalanta.wire.core.config import TLS_FIELDS, read_tls
from atalanta.wire.uri import UriError

if TYPE_CHECKING:
    from atalanta.cluster.networks.config import NetworkConnectorConfig
    from atalanta.config.configuration import Configuration

# Options of Classic that say whether the certificate must name the host.
HOST_CHECKS: Final = ("socket.verifyHostName", "transport.verifyHostName")


def network_tls(configuration: Configuration) -> dict[str, ClientTls]:
    """Returns the settings of the connectors that may dial over TLS, by `tls_name`. TlsError names the connector."""
    made: dict[str, ClientTls] = {}
    for network in configuration.networks.connectors:
        targets = [target for bridge in network.way.bridges for target in bridge]
        if network.way.group or any(is_secure(target.scheme) for target in targets):
            made[tls_name(network)] = _settings(configuration, network)
    return made


def _settings(configuration: Configuration, network: NetworkConnectorConfig) -> ClientTls:
    params = dict(configuration.networks.tls)
    for bridge in network.way.bridges:
        for target in bridge:
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
