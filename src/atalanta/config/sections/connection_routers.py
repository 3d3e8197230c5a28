"""The section `<connection-routers>` of broker.xml."""

from __future__ import annotations

import re

from atalanta.cluster.config import ClusterSettings
from atalanta.cluster.connection_routers.config import (
    POLICIES,
    CacheConfig,
    PoolConfig,
    RouterConfig,
    RoutersConfig,
)
from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report, nearest
from atalanta.config.sections.references import (
    CLUSTER_CONNECTION,
    CONNECTOR,
    DISCOVERY_GROUP,
    References,
)
from atalanta.config.xml.reader import Handler, XmlReader, into
from atalanta.config.xml.tree import XmlElement
from atalanta.message.encoding.digits import all_digits

NUMBER_MAX = 1 << 31
DIGITS_MAX = 10


class RouterSection:
    """Reads the routers into `configuration.routers`; `finish` resolves the names they refer to."""

    def __init__(self, configuration: Configuration, report: Report) -> None:
        self.configuration = configuration
        self.report = report
        self.reader = XmlReader(report)
        self.references = References(configuration, report, self.reader)

    def handlers(self) -> dict[str, Handler]:
        return {"connection-routers": self._routers, "connection-router": self._router}

    def finish(self, core: XmlElement) -> None:
        """Checks that every referenced name is defined, also those in acceptors."""
        self.references.check()
        configuration = self.configuration
        routers = [each.name for each in configuration.routers]
        for acceptor in configuration.acceptors:
            if acceptor.router is not None and acceptor.router not in routers:
                self._problem(
                    core,
                    f"acceptor '{acceptor.name}': there is no connection-router '{acceptor.router}'",
                    nearest(acceptor.router, routers),
                )

    def _problem(self, node: XmlElement, text: str, hint: str = "") -> None:
        self.report.problem(node.file, node.line, text, hint)

    def _routers(self, section: XmlElement) -> None:
        self.reader.read(section, [], {"connection-router": self._router})

    def _router(self, node: XmlElement) -> None:
        config = RouterConfig()

        def policy(child: XmlElement) -> None:
            self._policy(child, config)

        def pool(child: XmlElement) -> None:
            config.pool = self._pool(child)

        def cache(child: XmlElement) -> None:
            config.cache = CacheConfig()
            self.reader.read(child, [into(config.cache)])

        def transformer(child: XmlElement) -> None:
            self._problem(
                child, "a key-transformer is a Java class", "the policy CONSISTENT_HASH_MODULO is one"
            )

        handlers: dict[str, Handler] = {
            "policy": policy, "pool": pool, "cache": cache, "key-transformer": transformer,
        }  # fmt: skip
        self.reader.read(node, [into(config)], handlers)
        for text in (config.key_filter, config.local_target_filter):
            try:
                re.compile(text or "")
            except (re.error, RecursionError, OverflowError) as error:
                self._problem(node, f"'{text}' is not a regular expression: {error}")
        if not config.name:
            self._problem(node, "a <connection-router> needs a name")
        elif config.name in [each.name for each in self.configuration.routers]:
            self._problem(node, f"connection-router '{config.name}' is given twice")
        else:
            self.configuration.positions["connection-router", config.name] = (node.file, node.line)
            self.configuration.routers.append(config)

    def _policy(self, node: XmlElement, config: RouterConfig) -> None:
        given: dict[str, str] = {}

        def property_of(child: XmlElement) -> None:
            self.reader.read(child, [], attributes=("key", "value"))
            given[child.attributes.get("key", "")] = child.attributes.get("value", "")

        self.reader.read(node, [], {"property": property_of}, attributes=("name",))
        name = node.attributes.get("name", "")
        if name not in POLICIES:
            self._problem(node, f"there is no policy '{name}'", nearest(name, list(POLICIES)))
            return
        config.policy = name
        known, needed = POLICIES[name]
        for key, text in given.items():
            if key != known:
                self._problem(node, f"policy {name} has no property '{key}'", known)
            elif not all_digits(text, DIGITS_MAX) or int(text) >= NUMBER_MAX:
                self._problem(node, f"property {key} of policy {name}: '{text}' is not a number")
            else:
                config.policy_number = int(text)
        if needed and config.policy_number < 1:
            self._problem(node, f"policy {name} needs its property {known}, at least 1")

    def _pool(self, node: XmlElement) -> PoolConfig:
        config = PoolConfig()

        def discovery(child: XmlElement) -> None:
            self.reader.read(child, [], attributes=("discovery-group-name",))
            config.discovery_group = child.attributes.get("discovery-group-name", "")
            self.references.add(child, DISCOVERY_GROUP, config.discovery_group)

        def connector(child: XmlElement) -> None:
            config.static_connectors.append(child.text)
            self.references.add(child, CONNECTOR, child.text)

        def static(child: XmlElement) -> None:
            self.reader.read(child, [], {"connector-ref": connector})

        handlers: dict[str, Handler] = {"discovery-group-ref": discovery, "static-connectors": static}
        self.reader.read(node, [into(config)], handlers)
        if config.cluster_connection is not None:
            self.references.add(node, CLUSTER_CONNECTION, config.cluster_connection)
        sources = [
            config.cluster_connection is not None,
            config.discovery_group is not None,
            bool(config.static_connectors),
        ]
        if sum(sources) != 1:
            self._problem(
                node,
                "a <pool> has either a cluster-connection, a discovery-group-ref or static-connectors",
            )
        return config


def routers_config(configuration: Configuration) -> RoutersConfig | None:
    """Returns the configuration of the node's routers; None if no acceptor names a router."""
    if not any(each.router is not None for each in configuration.acceptors):
        return None
    settings = configuration.cluster_settings() or ClusterSettings(
        [],
        configuration.connectors,
        configuration.broadcast_groups,
        configuration.discovery_groups,
        configuration.broker.cluster_user,
        configuration.broker.cluster_password,
        configuration.broker.internal_naming_prefix,
    )
    return RoutersConfig(configuration.routers, settings, configuration.own.cluster_plain_password)
