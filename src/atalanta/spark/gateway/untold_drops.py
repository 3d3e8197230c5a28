"""Messages that a full address drops: our nodes refuse their branch, Artemis confirms them and tells nobody.

So the sink asks Artemis for the address-full-policy before it sends.
"""

from __future__ import annotations

import json
import logging
from typing import Final

from atalanta import client
from atalanta.client import blocking
from atalanta.spark.errors import GatewayError

LOG_VIEW_ADDRESS: Final = "$.atalanta.logview"  # at our nodes only
DROP: Final = "DROP"
GONE: Final = (client.ConnectionLost, client.Closed)

log = logging.getLogger("atalanta.spark")
_unchecked: dict[tuple[str, str], bool] = {}  # what this process has logged: a connection lives for one task


class UntoldDrops:
    """The addresses of one broker that may drop messages without a word."""

    def __init__(self, server: str, connection: blocking.Connection) -> None:
        self.server = server
        self.connection = connection
        self._checked: dict[str, bool] = {}
        self._told: bool | None = None
        self._management: blocking.Management | None = None

    def check(self, address: str) -> None:
        """Checks an address once. Raises GatewayError if its policy is DROP and the broker tells nobody."""
        if address in self._checked:
            return
        if self._told is None:
            self._told = self.connection.query_address(LOG_VIEW_ADDRESS).exists
        if not self._told and self._policy(address) == DROP:
            raise GatewayError(
                f"{self.server}: address {address} has the address-full-policy DROP, and this broker confirms messages "
                "that it drops: rows would be lost without an error. Set the policy FAIL, BLOCK or PAGE"
            )
        self._checked[address] = True

    def _policy(self, address: str) -> object:
        """Returns the address-full-policy. None: it is not set (PAGE), or the broker does not say, which is logged."""
        if self._management is None:
            self._management = self.connection.management()
        try:
            settings = json.loads(str(self._management.call("broker", "getAddressSettingsAsJSON", address)))
            return settings.get("addressFullMessagePolicy")
        except GONE:
            raise
        except (client.ClientError, ValueError, AttributeError) as error:
            if (self.server, address) not in _unchecked:
                _unchecked[self.server, address] = True
                log.warning(
                    "server %s: the address-full-policy of address %s cannot be read: %r. If it is DROP, rows that find"
                    " the address full are lost without an error. With the permission manage it is checked",
                    self.server, address, error,
                )  # fmt: skip
            return None
