"""Calls to nodes that wait while a node is away."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

from atalanta.spark.errors import NodeTimeout, NodeUnavailable
from atalanta.spark.gateway.gateway import Connector, Gateway
from atalanta.spark.options import LoginOptions

RETRY_S: Final = 0.2
Result = TypeVar("Result")

log = logging.getLogger("atalanta.spark")


class NodeCalls:
    """Connections to nodes, made when they are needed; the context manager closes them."""

    def __init__(self, login: LoginOptions, connect: Connector) -> None:
        self.login = login
        self.connect = connect
        self.gateways: dict[str, Gateway] = {}

    def call(self, server: str, function: Callable[[Gateway], Result]) -> Result:
        """Calls `function` with the node's gateway, and again while the node is away; NodeTimeout after `nodeTimeout`.

        So a call must be repeatable.
        """
        login = self.login
        deadline = time.monotonic() + login.node_timeout_s
        while True:
            try:
                return function(self.gateway(server))
            except NodeUnavailable as error:
                self._drop(server)
                if time.monotonic() >= deadline:
                    raise NodeTimeout(
                        f"server {server} did not answer for {login.node_timeout_s:g} s (nodeTimeout): {error}"
                    ) from error
                log.warning("server %s: %s; trying again", server, error)
                time.sleep(RETRY_S)

    def gateway(self, server: str) -> Gateway:
        """Returns the connection to a server. Raises NodeUnavailable at once if it is away."""
        gateway = self.gateways.get(server)
        if gateway is None:
            gateway = self.connect(server, self.login.quick_credentials())
            self.gateways[server] = gateway
        return gateway

    def _drop(self, server: str) -> None:
        gateway = self.gateways.pop(server, None)
        if gateway is not None:
            gateway.close()

    def __enter__(self) -> NodeCalls:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for server in list(self.gateways):
            self._drop(server)
