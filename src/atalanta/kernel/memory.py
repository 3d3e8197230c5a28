"""Producer credits and the memory limit behind them.

A sender asks for credits (bytes) before it sends. While the messages of the node take more than the limit
(global-max-size) no credits are given: the request waits, in order, until consumers have made room. For a peer's bridge
only what lies in clients' queues counts: were the messages that wait here for other nodes counted too, two nodes full
of messages for each other would wait for ever.
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
    """`used_bytes` counts each message once per queue, as queues are charged for what they hold.

    `forward_bytes` is the part of it in store-and-forward queues.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes: int = 0
        self.forward_bytes: int = 0
        self.waiting: deque[CreditRequest] = deque()
        self.peers_waiting: deque[CreditRequest] = deque()

    def add(self, size: int, to_forward: bool) -> None:
        """A message enters a queue (`size` negative: leaves it)."""
        self.used_bytes += size
        if to_forward:
            self.forward_bytes += size

    def full(self) -> bool:
        return self.limit_bytes >= 0 and self.used_bytes >= self.limit_bytes

    def full_for_peers(self) -> bool:
        return self.limit_bytes >= 0 and self.used_bytes - self.forward_bytes >= self.limit_bytes

    def request(self, endpoint: Endpoint, address: str, amount: int, peer: bool = False) -> None:
        full = self.full_for_peers() if peer else self.full()
        waiting = self.peers_waiting if peer else self.waiting
        if full or waiting:
            waiting.append(CreditRequest(endpoint, address, amount))
        else:
            endpoint.credits(address, amount)

    def grant_waiting(self) -> int:
        """Give credits again as far as there is room; returns how many requests were answered."""
        granted = 0
        while self.peers_waiting and not self.full_for_peers():
            self._grant(self.peers_waiting.popleft())
            granted += 1
        while self.waiting and not self.full():
            self._grant(self.waiting.popleft())
            granted += 1
        return granted

    def _grant(self, request: CreditRequest) -> None:
        request.endpoint.credits(request.address, request.amount)

    def forget(self, endpoint: Endpoint) -> None:
        """The endpoint is gone: its requests are void."""
        if self.waiting:
            self.waiting = deque(kept for kept in self.waiting if kept.endpoint is not endpoint)
        if self.peers_waiting:
            self.peers_waiting = deque(
                kept for kept in self.peers_waiting if kept.endpoint is not endpoint
            )
