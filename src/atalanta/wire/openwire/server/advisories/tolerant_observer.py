"""The observer that hears of the changes of the kernel for the advisories, and bears their exceptions.

The kernel has changed when its observers hear of it, so an exception would end the node, and a refusal would answer a
command that was done. What cannot be told is left out: watchers are told of other things, and nothing else hears of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.sessions.clients import ClientObserver

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.bindings import RemoteBinding
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.sessions.session_consumer import SessionConsumer
    from atalanta.wire.openwire.server.advisories.watchers import Watchers


class TolerantObserver(ClientObserver):
    """An observer whose exceptions are reported, and cost an advisory. It passes on all that advisories tell of."""

    def __init__(self, watchers: Watchers, inner: ClientObserver) -> None:
        self.watchers = watchers
        self.inner = inner

    def _leave_out(self, error: Exception) -> None:
        self.watchers.leave_out(f"advisories by {self.inner.__class__.__name__}", error)

    def on_consumer_added(self, now: int, consumer: QueueConsumer) -> None:
        try:
            self.inner.on_consumer_added(now, consumer)
        except Exception as error:
            self._leave_out(error)

    def on_consumer_removed(self, now: int, consumer: QueueConsumer) -> None:
        try:
            self.inner.on_consumer_removed(now, consumer)
        except Exception as error:
            self._leave_out(error)

    def on_queue_added(self, now: int, queue: Queue) -> None:
        try:
            self.inner.on_queue_added(now, queue)
        except Exception as error:
            self._leave_out(error)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        try:
            self.inner.on_queue_removed(now, queue)
        except Exception as error:
            self._leave_out(error)

    def on_address_added(self, now: int, address: Address) -> None:
        try:
            self.inner.on_address_added(now, address)
        except Exception as error:
            self._leave_out(error)

    def on_address_removed(self, now: int, address: Address) -> None:
        try:
            self.inner.on_address_removed(now, address)
        except Exception as error:
            self._leave_out(error)

    def on_remote_consumers(self, now: int, remote: RemoteBinding) -> None:
        try:
            self.inner.on_remote_consumers(now, remote)
        except Exception as error:
            self._leave_out(error)

    def on_expired(self, now: int, reference: Reference) -> None:
        try:
            self.inner.on_expired(now, reference)
        except Exception as error:
            self._leave_out(error)

    def on_consumer_slow(self, now: int, consumer: SessionConsumer) -> None:
        try:
            self.inner.on_consumer_slow(now, consumer)
        except Exception as error:
            self._leave_out(error)

    def on_session_created(self, now: int, session: Session) -> None:
        try:
            self.inner.on_session_created(now, session)
        except Exception as error:
            self._leave_out(error)

    def on_connection_destroyed(self, now: int, client: Client) -> None:
        try:
            self.inner.on_connection_destroyed(now, client)
        except Exception as error:
            self._leave_out(error)
