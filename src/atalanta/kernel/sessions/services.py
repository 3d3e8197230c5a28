"""The parts of a broker that its sessions use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from atalanta.kernel.memory.full_address import FullAddresses
from atalanta.kernel.sessions.auto_create import AutoCreation
from atalanta.kernel.sessions.fan_out import FanOut
from atalanta.kernel.sessions.request_wait import UnfinishedRequests
from atalanta.kernel.sessions.session_queues import SessionQueues
from atalanta.kernel.sessions.transaction_sends import TransactionSends
from atalanta.kernel.transactions.commit import Commits

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeBodies
    from atalanta.kernel.memory.memory import Memory
    from atalanta.kernel.observer import Observer
    from atalanta.kernel.publish.expiry import Expiry
    from atalanta.kernel.publish.publisher import Publisher
    from atalanta.kernel.publish.redelivery import Redelivery
    from atalanta.kernel.publish.scale_down_target import ScaleDownTarget
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.registry.retroactive_addresses import RetroactiveAddresses
    from atalanta.kernel.security.permissions import Permissions
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.clients import Clients
    from atalanta.kernel.sessions.ingress_headers import IngressHeaders
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.kernel.transactions.xa import Branches
    from atalanta.message.message import Message


class SessionServices:
    """The parts that sessions use, built once per broker.

    `dispatch` delivers a queue's messages at once. `request_handlers` answer messages to their address, by that
    address: management registers itself. `request_prefixes` do so for all addresses with a beginning.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clients: Clients,
        permissions: Permissions,
        publisher: Publisher,
        redelivery: Redelivery,
        expiry: Expiry,
        scale_down_target: ScaleDownTarget,
        queue_registry: QueueRegistry,
        retroactive: RetroactiveAddresses,
        memory: Memory,
        ingress_headers: IngressHeaders,
        branches: Branches,
        observers: list[Observer],
        dispatch: Callable[[int, Queue], int],
    ) -> None:
        self.config = config
        self.clients = clients
        self.permissions = permissions
        self.security = permissions.security
        self.publisher = publisher
        self.store = publisher.store
        self.trace = publisher.trace
        self.dispatches = publisher.store.dispatches
        self.command = publisher.store.command
        self.failures = publisher.store.failures
        self.large: LargeBodies = publisher.store.large
        self.redelivery = redelivery
        self.dead_letters = redelivery.dead_letters
        self.mover = redelivery.mover
        self.expiry = expiry
        self.scale_down_target = scale_down_target
        self.queue_registry = queue_registry
        self.memory = memory
        self.ingress_headers = ingress_headers
        self.branches = branches
        self.commits = Commits(publisher)
        self.unfinished = UnfinishedRequests(branches.timers)
        self.fan_out = FanOut()
        self.queues = SessionQueues(queue_registry, permissions, config)
        self.auto_creation = AutoCreation(self.queues, retroactive)
        self.full_addresses = FullAddresses(
            queue_registry.addresses, memory, publisher.trace, publisher.duplicates
        )
        self.transaction_sends = TransactionSends(
            self.full_addresses,
            publisher.duplicates.caches,
            branches,
            clients.held_bytes,
            publisher.trace,
        )
        self.observers = observers
        self.dispatch = dispatch
        self.request_handlers: dict[str, Callable[[int, Message, Session], None]] = {}
        self.request_prefixes: dict[str, Callable[[int, Message, Session], None]] = {}

    def request_handler(self, address: str) -> Callable[[int, Message, Session], None] | None:
        """Returns what answers messages to an address; None for an ordinary address."""
        found = self.request_handlers.get(address)
        if found is None:
            for prefix, handler in self.request_prefixes.items():
                if address.startswith(prefix):
                    return handler
        return found

    def close_failed(self, now: int, client: Client, command: str, error: Exception) -> None:
        """Closes the connection of a command that has waited, and failed by a mistake of ours before it changed
        anything."""
        why = self.failures.report(now, client.protocol, command, client.remote, error)
        self.clients.close(client.connection, why)
