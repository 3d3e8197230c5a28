"""The core bridges of a node: those of its configuration, and those that management created and the journal keeps.

A bridge with `concurrency` 3 is three bridges, NAME-0 to NAME-2 (ClusterManager.deployBridge). A bridge with an
error in its configuration is logged, and the node continues without it, as Artemis does.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from atalanta.cluster.core_bridges.bridge import CoreBridge
from atalanta.cluster.core_bridges.config import CoreBridgeConfig, CoreBridgeSettings
from atalanta.cluster.core_bridges.definition import check_transformer, config_of, definition_of
from atalanta.cluster.core_bridges.management import BridgeControl
from atalanta.cluster.core_bridges.target_memory import KEY_PREFIX as FOLLOWED
from atalanta.cluster.links.forward_frame import node_id_bytes
from atalanta.cluster.part import Part
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.observer import Observer
from atalanta.kernel.registry.queues import parse_filter
from atalanta.wire.connection import TransportConnection

if TYPE_CHECKING:
    from atalanta.cluster.discovery.discovery import Discovery
    from atalanta.kernel.broker.notifications import Notifications
    from atalanta.kernel.ports import Links
    from atalanta.kernel.queue.queue import Queue
    from atalanta.management.resources.registry import ResourceRegistry
    from atalanta.wire.endpoint import ConnectorConfig
    from atalanta.wire.server import WireServer

KEY_PREFIX: Final = "bridge."  # prefix of values in the journal
BRIDGED: Final = "bridged."  # likewise: queues whose messages a bridge may have sent


class CoreBridges(Part):
    """Creates and destroys the core bridges.

    `by_name` holds the single bridges, `configs` their configurations by the configured name.
    """

    def __init__(
        self,
        settings: CoreBridgeSettings,
        notifications: Notifications,
        resources: ResourceRegistry,
        host: WireServer,
        links: Links,
        discovery: Discovery,
    ) -> None:
        self.settings = settings
        self.broker = host.broker
        self.notifications = notifications
        self.host = host
        self.links = links
        self.discovery = discovery
        self.stopping: bool = False
        self.next_number: int = 1
        self.configs: dict[str, CoreBridgeConfig] = {}
        self.by_name: dict[str, CoreBridge] = {}
        self.by_number: dict[str, CoreBridge] = {}  # includes bridges that are ending
        control = BridgeControl(self)
        resources.register_control("bridge", control)
        resources.extend_broker(control.broker_attributes, control.broker_operations)
        resources.register_metrics(control.metrics)

    # -- start and stop -------------------------------------------------------------------------
    def start(self, now: int) -> None:
        """Deploys the configured bridges, and the stored ones whose names are not configured."""
        self.broker.observers.append(BridgeQueueWatch(self))
        for config in self.settings.bridges:
            self._deploy(now, config)
        values = self.broker.values
        for key in values.keys(KEY_PREFIX):
            if key[len(KEY_PREFIX) :] not in self.configs:
                self._deploy_stored(now, key)
        for key in values.keys(FOLLOWED):
            if key[len(FOLLOWED) :] not in self.by_name:
                values.forget(key)  # of a deleted bridge

    def name_queues(self) -> None:
        """Registers the queues of these bridges, so that moved messages keep their ids.

        A node that only continues a scale-down does so as well. Bridges that are no longer configured are included,
        as long as messages that they sent may be left.
        """
        node_bytes = node_id_bytes(self.broker.node_id)
        origins = self.broker.origins
        for config in self.settings.bridges:
            origins.bridge(config.queue_name, node_bytes)
        values = self.broker.values
        for key in values.keys(KEY_PREFIX):
            try:
                stored = config_of(json.loads(values.get(key) or b""))
            except (ValueError, BrokerError):
                continue  # logged when the bridge is created
            origins.bridge(stored.queue_name, node_bytes)
        for key in values.keys(BRIDGED):
            name = key[len(BRIDGED) :]
            if name in origins.bridged:
                continue
            queue = self.broker.queues.get(name)
            if queue is not None and queue.message_count > 0:
                origins.bridge(name, node_bytes)
            else:
                values.forget(key)

    def _deploy_stored(self, now: int, key: str) -> None:
        try:
            config = config_of(json.loads(self.broker.values.get(key) or b""))
        except (ValueError, BrokerError) as error:
            self._report_refused(key[len(KEY_PREFIX) :], str(error))
            return
        self._deploy(now, config)

    def _deploy(self, now: int, config: CoreBridgeConfig) -> None:
        try:
            self.create(now, config)
        except BrokerError as error:
            self._report_refused(config.name, error.text)

    def _report_refused(self, name: str, why: str) -> None:
        self.broker.trace.event("core_bridge_not_made", {"bridge": name, "why": why})

    def stop(self, now: int) -> None:
        self.stopping = True

    def flush(self, now: int) -> None:
        for bridge in self.by_number.values():
            bridge.settle(now)

    # -- create and destroy ---------------------------------------------------------------------
    def create(self, now: int, config: CoreBridgeConfig) -> None:
        """Creates and starts a bridge. Raises BrokerError if the configuration is invalid."""
        self._check(config)
        self.configs[config.name] = config
        self.broker.origins.bridge(config.queue_name, node_id_bytes(self.broker.node_id))
        if not self.broker.values.has(BRIDGED + config.queue_name):
            self.broker.values.set(BRIDGED + config.queue_name, b"")
        for index in range(config.concurrency):
            name = config.name if config.concurrency == 1 else f"{config.name}-{index}"
            bridge = CoreBridge(self, config, name, self.next_number)
            self.by_name[name] = bridge
            self.by_number[str(self.next_number)] = bridge
            self.wants_turn = True
            self.next_number += 1
            bridge.start(now)

    def _check(self, config: CoreBridgeConfig) -> None:
        """Checks the configuration as ClusterManager.deployBridge does, except that the queue
        may be created later."""
        name = config.name
        if not name:
            raise BrokerError(ILLEGAL_STATE, "a bridge needs a name")
        if name in self.configs or name in self.by_name:
            raise BrokerError(ILLEGAL_STATE, f"a bridge {name} already exists")
        if not config.queue_name:
            raise BrokerError(ILLEGAL_STATE, f"bridge {name} needs a queue-name")
        parse_filter(config.filter_text)
        group = config.discovery_group
        if group is not None and group not in self.discovery.settings.discovery_groups:
            raise BrokerError(ILLEGAL_STATE, f"there is no discovery-group {group}")
        if group is None and not config.static_connectors:
            raise BrokerError(ILLEGAL_STATE, f"bridge {name} needs connectors")
        for connector in config.static_connectors:
            if connector not in self.settings.connectors:
                raise BrokerError(ILLEGAL_STATE, f"there is no connector {connector}")
        if name not in self.settings.transforms:
            check_transformer(config.transformer_class)

    def store(self, config: CoreBridgeConfig) -> None:
        """Stores a bridge that management created, so that it exists after a restart."""
        self.broker.values.set(
            KEY_PREFIX + config.name, json.dumps(definition_of(config)).encode()
        )

    def destroy(self, now: int, name: str) -> None:
        """Destroys the bridges of a configured name. A bridge of the configuration file exists again after a
        restart."""
        if name not in self.configs:
            raise BrokerError(ILLEGAL_STATE, f"there is no bridge {name}")
        config = self.configs.pop(name)
        self.broker.values.forget(KEY_PREFIX + name)
        for called, bridge in list(self.by_name.items()):
            if bridge.config is config:
                del self.by_name[called]
                bridge.destroy(now)
                self._forget(bridge)

    def _forget(self, bridge: CoreBridge) -> None:
        if bridge.finished():
            number = bridge.prefix.split(".")[1]
            self.by_number.pop(number, None)
            self.wants_turn = bool(self.by_number)

    def reload(self, now: int, settings: CoreBridgeSettings) -> None:
        """Deploys new and changed bridges, and ends removed ones. Bridges that management created stay; a bridge whose
        connector has changed connects anew.

        Follows ActiveMQServerImpl.deployReloadableConfigFromConfiguration.
        """
        before = self.settings
        self.settings = settings
        wanted = {config.name: config for config in settings.bridges}
        for name, config in list(self.configs.items()):
            fresh = wanted.get(name)
            stored = self.broker.values.has(KEY_PREFIX + name)
            moved = self._moved(config, before.connectors, stored)
            same = fresh == config and before.own.get(name) == settings.own.get(name) and not moved
            if fresh is not None:
                if not same:
                    self.destroy(now, name)
            elif not stored:
                self.destroy(now, name)
            elif moved:
                self.destroy(now, name)
                self._deploy(now, config)
                self.store(config)
        for config in settings.bridges:
            if config.name not in self.configs:
                self._deploy(now, config)

    def _moved(self, config: CoreBridgeConfig, before: dict[str, ConnectorConfig], stored: bool) -> bool:
        """Returns whether a connector of a bridge has changed. One that is gone from the file stays for a bridge that
        management has created."""
        moved = False
        for name in config.static_connectors:
            known, fresh = before.get(name), self.settings.connectors.get(name)
            if fresh is None and known is not None and stored:
                self.settings.connectors = {**self.settings.connectors, name: known}
                how = f"destroy the bridge {config.name}, or write the connector again: it is gone at the next start"
                self.broker.trace.event(
                    "connector_kept", {"connector": name, "users": f"bridge {config.name}", "what_to_do": how}
                )
            else:
                moved = moved or known != fresh
        return moved

    # -- inputs ---------------------------------------------------------------------------------
    def of_key(self, key: str) -> CoreBridge | None:
        return self.by_number.get(key.split(".")[1])

    def on_dialed(self, now: int, conn: int, key: str) -> TransportConnection | None:
        bridge = self.of_key(key)
        if bridge is None:
            return None
        link = bridge.on_dialed(now, conn)
        self._forget(bridge)
        return link

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        bridge = self.of_key(key)
        if bridge is not None:
            bridge.on_dial_failed(now, why)
            self._forget(bridge)

    def on_timer(self, now: int, key: str) -> None:
        bridge = self.of_key(key)
        if bridge is not None:
            bridge.on_timer(now, key)

    def link_gone(self, bridge: CoreBridge) -> None:
        self._forget(bridge)

    def of_queue(self, name: str) -> list[CoreBridge]:
        return [each for each in self.by_name.values() if each.config.queue_name == name]

    def notify(self, now: int, kind: str, bridge: CoreBridge) -> None:
        """Publishes BRIDGE_STARTED or BRIDGE_STOPPED."""
        self.notifications.publish(now, kind, {"name": bridge.name})


class BridgeQueueWatch(Observer):
    """Connects and stops bridges when their queues are added and removed."""

    def __init__(self, bridges: CoreBridges) -> None:
        self.bridges = bridges

    def on_queue_added(self, now: int, queue: Queue) -> None:
        for bridge in self.bridges.of_queue(queue.name):
            bridge.connect(now)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        for bridge in self.bridges.of_queue(queue.name):
            bridge.queue_removed(now)
