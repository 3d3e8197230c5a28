"""Where a node is, and how it is connected: a URL of the command line, or an address of the topology."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from atalanta.client.options import ClientOptions, parse_url
from atalanta.wire.uri import UriError

# What the console decides itself: a connection goes to the place it is for, and ends when that is away.
OWN_OPTIONS: Final = (
    "reconnectAttempts", "failoverAttempts", "initialConnectAttempts", "stay", "zone", "callTimeout",
    "largeMessagesFolder", "autoCreateQueues", "autoCreateAddresses", "autoCreateDestinations",
)  # fmt: skip


@dataclass(frozen=True)
class NodePlace:
    """A place with its URL. `named`: it is on the command line, so the operator's password may go there."""

    at: str  # host:port, for people and as a key
    url: str
    named: bool
    # TLS that proves who the node is: then every node of the topology may have the password.
    verifies: bool = False

    def elsewhere(self, at: str) -> NodePlace:
        """Returns the place of another node, with the options of this one."""
        _, mark, options = self.url.partition("?")
        return NodePlace(at, f"tcp://{at}{mark}{options}", named=False, verifies=self.verifies)

    def with_option(self, name: str, value: str) -> str:
        """Returns the URL with one more option."""
        return f"{self.url}&{name}={quote(value, safe='')}"


def place_of(node: str) -> NodePlace:
    """Returns the place of `host`, `host:port` or the URL of one node. UriError for anything else."""
    url = node if "://" in node else f"tcp://{node}"
    options = parse_url(url)
    if len(options.servers) != 1 or options.finder is not None:
        raise UriError(f"'{node}' is not one node: name each by itself, the others are found by their topology")
    if options.user is not None or options.password is not None:
        raise UriError(f"'{node}': user and password are asked for by the page of the log-in, leave them out here")
    server = options.servers[0]
    at = str(server).removeprefix("tcp://")
    _, _, query = url.partition("?")
    own = OWN_OPTIONS
    kept = [part for part in query.replace(";", "&").split("&") if part and part.split("=")[0] not in own]
    # Who looks at a queue that was deleted meanwhile must not create it again.
    kept += ["autoCreateQueues=false", "autoCreateAddresses=false"]
    return NodePlace(at, f"tcp://{at}?{'&'.join(kept)}", named=True, verifies=_verifies(options))


def _verifies(options: ClientOptions) -> bool:
    """Returns whether TLS proves that a host is one of the operator's, by a trust store of their own."""
    tls = options.tls
    if tls is None or not tls.enabled or tls.trust_all or tls.sni_host:
        return False
    return tls.verify_host is not False and bool(tls.trust_store_path)
