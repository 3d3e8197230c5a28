"""A core bridge: its state, and the connection to its target (BridgeImpl, Artemis 2.44).

The queue keeps the messages that were not answered for, however long the target is not reachable. A bridge whose
attempts are used up stops, and can be started again. A bridge whose queue does not exist waits for the queue;
Artemis does not deploy such a bridge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.core_bridges.link import CoreBridgeLink
from atalanta.cluster.core_bridges.message_copies import MessageCopies
from atalanta.cluster.core_bridges.target_memory import TargetMemory
from atalanta.cluster.core_bridges.targets import CoreBridgeTargets, is_valid_endpoint
from atalanta.cluster.discovery.discovery import DiscoveryListener
from atalanta.cluster.links.forward_frame import node_id_bytes
from atalanta.cluster.links.retry import Attempts
from atalanta.kernel.registry.queues import parse_filter

if TYPE_CHECKING:
    from atalanta.cluster.core_bridges.bridges import CoreBridges
    from atalanta.cluster.core_bridges.config import CoreBridgeConfig
    from atalanta.kernel.queue.reference import Reference
    from atalanta.wire.core.transport import TransportConfiguration

STARTED: Final = "started"
STOPPING: Final = "stopping"  # waits for answers
STOPPED: Final = "stopped"
ENDS_OF_PROBLEMS: Final = ("core_bridge_connected", "core_bridge_started")
TARGET: Final = "target"  # the only key of its attempts


class CoreBridge(DiscoveryListener):
    """A core bridge. `sent` and `acknowledged` are messagesPendingAcknowledgement and messagesAcknowledged."""

    def __init__(self, bridges: CoreBridges, config: CoreBridgeConfig, name: str, number: int) -> None:
        self.bridges = bridges
        self.broker = bridges.broker
        self.host = bridges.host
        self.config: CoreBridgeConfig = config
        self.name: str = name
        self.prefix = f"bridges.{number}."
        settings = bridges.settings
        self.copies = MessageCopies(
            config,
            settings.own.get(config.name),
            settings.transforms.get(config.name),
            node_id_bytes(self.broker.node_id),
        )
        self.selector = parse_filter(config.filter_text)
        self.targets = CoreBridgeTargets(config, settings)
        self.memory = TargetMemory(self.broker.values, self.broker.trace, self.targets, name)
        self.memory.recall()
        self.attempts = Attempts(config)
        self.state: str = STOPPED
        self.link: CoreBridgeLink | None = None
        self.dialing: bool = False
        self.nowhere: bool = False  # the discovery group has no node yet
        self.gone: bool = False  # destroyed
        self.sent: int = 0
        self.acknowledged: int = 0
        self.problem: str = ""  # the last reason why it did not forward
        self.acknowledged_before: int = 0  # when the problem came

    # -- start and stop -------------------------------------------------------------------------
    def start(self, now: int) -> None:
        """Starts the bridge, unless it is started."""
        if self.state == STARTED:
            return
        self.broker.timers.cancel(self.prefix + "pending")
        self.state = STARTED
        self.attempts.forget(TARGET)
        self.bridges.notify(now, "BRIDGE_STARTED", self)
        self.tell("core_bridge_started", f"from queue {self.config.queue_name}")
        if self.config.discovery_group is not None:
            self.bridges.discovery.listen(now, self.config.discovery_group, self, f"bridge {self.name}")
        if self.link is None:
            self.connect(now)
        else:
            self.link.counted = False
            self.link.close("the bridge was stopped and started")

    def stop(self, now: int) -> None:
        """Stops sending; messages under way may be answered within pending-ack-timeout (BridgeImpl.StopRunnable)."""
        if self.state != STARTED:
            return
        link = self.link
        if link is None:
            self._stopped(now)
            return
        self._unlisten()
        self.state = STOPPING
        if link.connected:
            link.outgoing.pause()
        if link.settled():
            link.stop(now)
        else:
            timeout_ns = self.config.pending_ack_timeout_ms * 1_000_000
            self.broker.timers.set(self.prefix + "pending", now + timeout_ns)

    def _unlisten(self) -> None:
        if self.config.discovery_group is not None:
            self.bridges.discovery.unlisten(self.config.discovery_group, self)
            self.targets.discovered.clear()

    def _stopped(self, now: int) -> None:
        if self.state == STARTED:
            self._unlisten()
        self.state = STOPPED
        self.broker.timers.cancel(self.prefix + "pending")
        self.broker.timers.cancel(self.prefix + "retry")
        self.bridges.notify(now, "BRIDGE_STOPPED", self)
        self.tell("core_bridge_stopped", "its queue keeps what comes")

    def destroy(self, now: int) -> None:
        """Stops the bridge for good."""
        self.gone = True
        self.memory.forget()
        self.stop(now)

    def finished(self) -> bool:
        """Returns True if the bridge is destroyed and its link is closed."""
        return self.gone and self.link is None and not self.dialing

    # -- connection -----------------------------------------------------------------------------
    def connect(self, now: int) -> None:
        if self.state != STARTED or self.dialing or self.link is not None or self.bridges.stopping:
            return
        if self.config.queue_name not in self.broker.queues:
            self.tell("core_bridge_queue_missing", f"waits for queue {self.config.queue_name}")
            return
        target = self.targets.next()
        self.nowhere = target is None
        if target is None:
            return  # continues when the discovery group finds a node
        self.dialing = True
        transport = target.transport
        key = self.prefix + "dial"
        links = self.bridges.links
        if target.connector:
            links.dial_secure(
                key, transport.host, transport.port, target.connector, target.timeout_ms
            )
        else:
            links.dial_within(key, transport.host, transport.port, target.timeout_ms)

    def on_dialed(self, now: int, conn: int) -> CoreBridgeLink | None:
        self.dialing = False
        queue = self.broker.queues.get(self.config.queue_name)
        if self.state != STARTED or self.bridges.stopping or self.link is not None or queue is None:
            return None
        self.link = CoreBridgeLink(self, conn, now, queue, self.selector)
        self.link.open(now)
        return self.link

    def on_dial_failed(self, now: int, why: str) -> None:
        self.dialing = False
        if self.state == STARTED and TARGET not in self.attempts.failed:
            self.tell("core_bridge_connect_failed", why)  # logged once; the bridge continues to try
        self._retry(now)

    def on_connected(self, now: int) -> None:
        self.attempts.succeeded(TARGET)
        self.targets.connected()
        self.memory.connected()
        self.tell("core_bridge_connected", self.place())

    def on_link_lost(self, now: int, link: CoreBridgeLink, why: str) -> None:
        self.link = None
        if self.state == STOPPING:
            self._stopped(now)
            self.bridges.link_gone(self)
        elif self.state == STARTED and not self.bridges.stopping:
            self.tell("core_bridge_lost", why)
            if link.counted:
                self._retry(now, link.refused)
            else:
                self._retry_after(now, self.config.retry_interval_ms)

    def _retry(self, now: int, refused: bool = False) -> None:
        if self.state != STARTED or self.bridges.stopping:
            return
        pause_ms = self.attempts.next_pause_ms(TARGET, refused)
        if pause_ms < 0:
            self.tell("core_bridge_gave_up", "its attempts are used up: start it again")
            self._stopped(now)
        else:
            self._retry_after(now, pause_ms)

    def _retry_after(self, now: int, pause_ms: int) -> None:
        self.broker.timers.set(self.prefix + "retry", now + pause_ms * 1_000_000)

    def on_timer(self, now: int, key: str) -> None:
        if key == self.prefix + "retry":
            self.connect(now)
        elif key == self.prefix + "pending" and self.link is not None:
            left = len(self.link.outgoing.unanswered)
            self.tell("core_bridge_lost", f"{left} messages unanswered after pending-ack-timeout")
            self.link.stop(now)

    # -- discovery ------------------------------------------------------------------------------
    def discovered(self, now: int, node_id: str, connector: TransportConfiguration) -> None:
        if is_valid_endpoint(connector):
            self.targets.discovered[node_id] = connector
            if self.nowhere:
                self.connect(now)

    def undiscovered(self, now: int, node_id: str) -> None:
        self.targets.discovered.pop(node_id, None)

    # -- queue ----------------------------------------------------------------------------------
    def queue_removed(self, now: int) -> None:
        if self.link is not None:
            self.link.close("its queue was deleted")

    def settle(self, now: int) -> None:
        """Finishes answered messages, once per batch of inputs. A stopping bridge ends with the last answer."""
        link = self.link
        if link is None:
            return
        link.begin()
        link.outgoing.settle(now)
        if self.state == STOPPING and link.settled() and not link.leaving:
            link.stop(now)

    # -- log ------------------------------------------------------------------------------------
    def place(self) -> str:
        current = self.targets.current
        return "nowhere" if current is None else current.place

    def failure_reason(self) -> str:
        """Returns why it does not forward, "" while it does, or when it was stopped in good order."""
        forwards = self.link is not None and self.link.connected and self.acknowledged > self.acknowledged_before
        return "" if forwards else self.problem

    def tell(self, event: str, why: str) -> None:
        if event in ENDS_OF_PROBLEMS:
            self.problem = ""
        elif event != "core_bridge_stopped" and (event != "core_bridge_gave_up" or not self.problem):
            self.problem = why
            self.acknowledged_before = self.acknowledged
        self.broker.trace.event(event, {"bridge": self.name, "to": self.place(), "why": why})

    def report_transformer_failed(self, reference: Reference, error: Exception) -> None:
        self.broker.trace.event(
            "core_bridge_transformer_failed",
            {
                "bridge": self.name,
                "message": int(reference.message.id),
                "why": f"{type(error).__name__}: {error}",
            },
        )
