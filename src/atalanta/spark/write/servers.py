"""The choice of servers for partitions and decisions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Final

from atalanta.spark.errors import GatewayError
from atalanta.spark.gateway.gateway import GatewayMember

DECISIONS_PARTITION: Final = -1  # the "partition" of a query's decisions


def server_for(servers: Sequence[str], query: str, partition: int) -> str:
    """Returns the server of a partition: the same for the same query, as long as `servers` does not change.

    So every driver of a query finds its decisions at one node, whatever it knows of pairs.
    """
    ordered = sorted(servers)
    digest = hashlib.sha256(f"{query}/{partition}".encode()).digest()
    return ordered[int.from_bytes(digest[:8], "big") % len(ordered)]


def further_servers(servers: Sequence[str], topologies: Iterable[Sequence[GatewayMember]]) -> list[str]:
    """Returns the servers of all members that `servers` does not name, sorted."""
    members = {member.server for topology in topologies for member in topology}
    return sorted(members - set(servers))


def pairs_of(text: str) -> list[list[str]]:
    """Returns the servers of each node with several, as a decision names them. GatewayError like branches_of."""
    try:
        return [[str(server) for server in pair] for pair in json.loads(text).get("nodes", [])]
    except (ValueError, TypeError, AttributeError) as error:
        raise GatewayError(f"a message in the queue of decisions is no decision: {text!r:.200}") from error
