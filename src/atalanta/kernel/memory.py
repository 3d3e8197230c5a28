"""Producer credits and the memory limit behind them.

A producer asks for credits (bytes) before it sends. While the messages of the node take more than the limit
(global-max-size) no credits are given: the request waits, in order, until consumers have made room.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Endpoint


class CreditRequest:
    def __init__(self, endpoint: Endpoint, address: str, amount: int) -> None:
        self.endpoint = endpoint
        self.address = address
        self.amount = amount


class Memory:
    """`used_bytes` counts each message once per queue, as queues are charged for what they hold."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes: int = 0
        self.waiting: deque[CreditRequest] = deque()

    def full(self) -> bool:
        return self.limit_bytes >= 0 and self.used_bytes >= self.limit_bytes

    def request(self, endpoint: Endpoint, address: str, amount: int) -> None:
        if self.full() or self.waiting:
            self.waiting.append(CreditRequest(endpoint, address, amount))
        else:
            endpoint.credits(address, amount)

    def grant_waiting(self) -> int:
        """Give credits again as far as there is room; returns how many requests were answered."""
        granted = 0
        while self.waiting and not self.full():
            request = self.waiting.popleft()
            request.endpoint.credits(request.address, request.amount)
            granted += 1
        return granted

    def forget(self, endpoint: Endpoint) -> None:
        """The endpoint is gone: its requests are void."""
        if self.waiting:
            self.waiting = deque(kept for kept in self.waiting if kept.endpoint is not endpoint)
