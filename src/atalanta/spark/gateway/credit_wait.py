"""The wait for an address that grants no credits, because it is full or the node's disk is."""

from __future__ import annotations

import logging
from typing import Final

from atalanta.spark.errors import GatewayError

FIRST_LINE_S: Final = 1.0
LINE_EACH_S: Final = 10.0

log = logging.getLogger("atalanta.spark")


class CreditWait:
    """The `on_blocked` of a branch: it logs that a message waits, and raises GatewayError after `timeout_s`."""

    def __init__(self, server: str, timeout_s: float) -> None:
        self.server = server
        self.timeout_s = timeout_s
        self._next_line_s = FIRST_LINE_S

    def __call__(self, address: str, seconds: float) -> None:
        if seconds >= self.timeout_s:
            raise GatewayError(
                f"{self.server}: address {address} has taken no message for {self.timeout_s:g} s (blockTimeout): it is "
                "full and its address-full-policy is BLOCK, or the node is full (global-max-size, max-disk-usage). "
                "Let its consumers go on, raise its limits, set the policy PAGE, or raise blockTimeout"
            )
        if seconds < FIRST_LINE_S:
            self._next_line_s = FIRST_LINE_S
        if seconds >= self._next_line_s:
            self._next_line_s = seconds + LINE_EACH_S
            log.warning(
                "server %s: the write waits for address %s, which is full (policy BLOCK) or whose node is: for %.0f s, "
                "at most %g s (blockTimeout)", self.server, address, seconds, self.timeout_s,
            )  # fmt: skip
