"""Paused queues and addresses, temporary or persistent (QueueControl.pause(persist)).

`Queue.paused` combines the pause of the queue and that of its address. A persistent pause is a VALUE record under
`pause.queue.NAME` or `pause.address.NAME`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.observer import Observer

if TYPE_CHECKING:
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.queue.delivery.dispatch_list import DispatchList
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address

QUEUE_KEY: Final = "pause.queue."
ADDRESS_KEY: Final = "pause.address."


class Pauses(Observer):
    """The names of paused queues and addresses, each with a flag for a persistent pause."""

    def __init__(self, values: NamedValues, dispatches: DispatchList) -> None:
        self.values = values
        self.dispatches = dispatches
        self.queues: dict[str, bool] = {}
        self.addresses: dict[str, bool] = {}

    def restore(self, queues: dict[str, Queue], addresses: dict[str, Address]) -> None:
        """Restores the persistent pauses of these queues and addresses. Pauses of deleted ones are removed."""
        for key in self.values.keys("pause."):
            if key.startswith(QUEUE_KEY):
                queue = queues.get(key[len(QUEUE_KEY) :])
                if queue is None:
                    self._store(key, False)
                else:
                    self.queues[queue.name] = True
                    self._settle(queue)
            elif key.startswith(ADDRESS_KEY):
                address = addresses.get(key[len(ADDRESS_KEY) :])
                if address is None:
                    self._store(key, False)
                else:
                    self.addresses[address.name] = True
                    self._settle_all(address)

    def pause_queue(self, queue: Queue, persist: bool) -> None:
        """Pauses a queue. A non-durable queue cannot be paused persistently, since it does not survive a restart."""
        self.values.command.begin_change()
        kept = persist and queue.durable
        if kept != self.queues.get(queue.name, False):
            self._store(QUEUE_KEY + queue.name, kept)
        self.queues[queue.name] = kept
        self._settle(queue)

    def resume_queue(self, queue: Queue) -> None:
        self.values.command.begin_change()
        if self.queues.pop(queue.name, False):
            self._store(QUEUE_KEY + queue.name, False)
        self._settle(queue)

    def pause_address(self, address: Address, persist: bool) -> None:
        self.values.command.begin_change()
        kept = persist and address.lsn > 0
        if kept != self.addresses.get(address.name, False):
            self._store(ADDRESS_KEY + address.name, kept)
        self.addresses[address.name] = kept
        self._settle_all(address)

    def resume_address(self, address: Address) -> None:
        self.values.command.begin_change()
        if self.addresses.pop(address.name, False):
            self._store(ADDRESS_KEY + address.name, False)
        self._settle_all(address)

    def _settle_all(self, address: Address) -> None:
        for queue in address.queues():
            self._settle(queue)

    def _settle(self, queue: Queue) -> None:
        if queue.name in self.queues or queue.spec.address in self.addresses:
            queue.pause()
        else:
            queue.resume()
            self.dispatches.mark_dirty(queue)

    def _store(self, key: str, kept: bool) -> None:
        if kept:
            self.values.set(key, b"\1")
        else:
            self.values.forget(key)

    # -- Observer -------------------------------------------------------------------------------
    def on_queue_added(self, now: int, queue: Queue) -> None:
        if self.addresses and queue.spec.address in self.addresses:
            queue.pause()

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        """Removes the pause of a deleted queue. A queue that is bound again calls this too, but is not deleted."""
        if queue.deleted and self.queues.pop(queue.name, False):
            self._store(QUEUE_KEY + queue.name, False)
