"""A queue's usage, for auto-deletion and transient subscriptions."""

from __future__ import annotations


class Usage:
    """Times of the queue's creation and its last consumer's close (ns), and the connections that use the queue.

    `swept`: one scan found the queue unused; the next scan deletes it (address-queue-scan-period).
    """

    def __init__(self) -> None:
        self.created_at: int = 0
        self.consumer_left_at: int = 0  # 0: no consumer has closed yet
        self.was_used: bool = False
        self.swept: bool = False
        self.clients: int = 0  # connections that asked for a transient queue

    def create(self, now: int) -> None:
        """Records the time at which the queue was created."""
        self.created_at = now

    def restore(self, now: int) -> None:
        """Records that the queue was found in the journal: it counts as used, and its times start again."""
        self.was_used = True
        self.created_at = now
        self.consumer_left_at = now

    def add_consumer(self) -> None:
        """Records that the queue got a consumer."""
        self.was_used = True
        self.swept = False

    def remove_consumer(self, now: int) -> None:
        """Records that a consumer closed."""
        self.consumer_left_at = now

    def add_client(self) -> None:
        """Counts a connection that uses a transient queue."""
        self.clients += 1

    def remove_client(self) -> None:
        """Counts out a connection that uses a transient queue."""
        self.clients -= 1

    def sweep(self, unused: bool) -> bool:
        """Records what a scan found; returns true when the scan before found the queue unused as well."""
        before = self.swept
        self.swept = unused
        return unused and before
