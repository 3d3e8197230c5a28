"""Sections of broker.xml about clustering: broadcast groups, discovery groups, cluster connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from atalanta.cluster.config import (
    ON_DEMAND,
    STRICT,
    BroadcastGroupConfig,
    ClusterConnectionConfig,
    DiscoveryConfig,
    DiscoveryGroupConfig,
)
from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report, nearest
from atalanta.config.sections.known_elements import JGROUPS, UDP
from atalanta.config.sections.references import CONNECTOR, DISCOVERY_GROUP, References
from atalanta.config.xml.reader import BadValue, Handler, XmlReader, boolean, convert, into
from atalanta.config.xml.tree import XmlElement
from atalanta.files.jgroups_stack import REMEDY, UNMET, StackError, parse_stack, read_stack
from atalanta.wire.endpoint import parse_connector
from atalanta.wire.jgroups.version import version_of
from atalanta.wire.jgroups_discovery import JgroupsStack
from atalanta.wire.uri import UriError, parse_params

# Parameter names of a cluster-connection URI are the setters of Artemis' ClusterConnectionConfiguration.
URI_NAMES: Final[dict[str, str]] = {
    "address": "address",
    "connectorName": "connector",
    "clientFailureCheckPeriod": "check_period_ms",
    "connectionTTL": "connection_ttl_ms",
    "retryInterval": "retry_interval_ms",
    "retryIntervalMultiplier": "retry_interval_multiplier",
    "maxRetryInterval": "max_retry_interval_ms",
    "initialConnectAttempts": "initial_connect_attempts",
    "reconnectAttempts": "reconnect_attempts",
    "callTimeout": "call_timeout_ms",
    "callFailoverTimeout": "call_failover_timeout_ms",
    "duplicateDetection": "use_duplicate_detection",
    "messageLoadBalancingType": "message_load_balancing",
    "maxHops": "max_hops",
    "confirmationWindowSize": "confirmation_window_bytes",
    "producerWindowSize": "producer_window_bytes",
    "minLargeMessageSize": "min_large_message_bytes",
    "clusterNotificationInterval": "notification_interval_ms",
    "clusterNotificationAttempts": "notification_attempts",
    "topologyScannerAttempts": "topology_scanner_attempts",
    "clientId": "client_id",
}
WILDFLY: Final = f"{UNMET}WildFly servers wrap what they announce"


class ClusterSections:
    def __init__(
        self, configuration: Configuration, report: Report, values: Mapping[str, str]
    ) -> None:
        self.configuration = configuration
        self.report = report
        self.values = values
        self.reader = XmlReader(report)
        self.references = References(configuration, report, self.reader)

    def handlers(self) -> dict[str, Handler]:
        return {
            "broadcast-groups": self._broadcast_groups,
            "discovery-groups": self._discovery_groups,
            "cluster-connections": self._cluster_connections,
        }

    def finish(self) -> None:
        self.references.check()

    def finish_own(self) -> None:
        """Completes the cluster connections after atalanta.toml was read."""
        names = [config.name for config in self.configuration.cluster_connections]
        for name in self.configuration.own.dns_by_cluster:
            if name not in names:
                hint = nearest(name, names) or "it has no effect"
                self.report.warnings.append(
                    f"atalanta.toml: dns-discovery: there is no cluster-connection '{name}' ({hint})"
                )

        own = self.configuration.own
        if own.jgroups_version is not None:
            self._name_version(version_of(own.jgroups_version))

    def _name_version(self, version: int) -> None:
        """Gives the stacks the version of JGroups for the first word."""
        stacks = [group.stack for group in self.configuration.broadcast_groups]
        stacks += [group.stack for group in self.configuration.discovery_groups.values()]
        named = [stack for stack in stacks if stack is not None]
        for stack in named:
            stack.version = version
        if not named:
            self.report.warnings.append("atalanta.toml: jgroups-version: no group has a jgroups-file: it has no effect")

    # groups

    def _broadcast_groups(self, section: XmlElement) -> None:
        def group(node: XmlElement) -> None:
            config = BroadcastGroupConfig()

            def connector(child: XmlElement) -> None:
                name = self.references.connector(child)
                if name:
                    config.connectors.append(name)

            self.reader.read(node, [into(config)], {"connector-ref": connector})
            if self._usable(
                node, config, [each.name for each in self.configuration.broadcast_groups]
            ):
                self.configuration.broadcast_groups.append(config)

        self.reader.read(section, [], {"broadcast-group": group})

    def _discovery_groups(self, section: XmlElement) -> None:
        def group(node: XmlElement) -> None:
            config = DiscoveryGroupConfig()
            self.reader.read(node, [into(config)])
            if self._usable(node, config, list(self.configuration.discovery_groups)):
                self.configuration.discovery_groups[config.name] = config

        self.reader.read(section, [], {"discovery-group": group})

    def _usable(
        self, node: XmlElement, config: DiscoveryConfig, taken: list[str]
    ) -> bool:
        if not config.name:
            self.report.problem(node.file, node.line, f"a <{node.name}> needs a name")
            return False
        if config.name in taken:
            self.report.problem(node.file, node.line, f"{node.name} '{config.name}' is given twice")
            return False
        self.configuration.positions[node.name, config.name] = (node.file, node.line)
        jgroups = [child for child in node.children if child.name in JGROUPS]
        udp = [child for child in node.children if child.name in UDP]
        if jgroups and udp:
            self.report.problem(
                jgroups[0].file,
                jgroups[0].line,
                f"{node.name} '{config.name}' has <{jgroups[0].name}> and <{udp[0].name}> (line {udp[0].line})",
                "a group uses UDP or JGroups, not both",
            )
            return False
        if jgroups:
            return self._read_stack(node, config)
        if not config.group_address or config.group_port < 1:
            self.report.problem(
                node.file,
                node.line,
                f"{node.name} '{config.name}' needs group-address and group-port",
                "or jgroups-file and jgroups-channel",
            )
            return False
        return True

    def _read_stack(self, node: XmlElement, config: DiscoveryConfig) -> bool:
        """Reads a JGroups stack file; the file is beside the broker.xml, as on Artemis' class path."""
        if not config.jgroups_file or not config.jgroups_channel:
            self.report.problem(
                node.file,
                node.line,
                f"{node.name} '{config.name}' needs both jgroups-file and jgroups-channel",
            )
            return False
        inside = self.configuration.stacks.get(config.jgroups_file)
        if inside is not None:
            return self._read_inside(node, config, config.jgroups_channel, inside)
        path = Path(node.file).parent / config.jgroups_file
        try:
            config.stack = read_stack(path, config.jgroups_channel, self.values)
        except StackError as error:
            self.report.problem(str(path), error.line, error.text)
            return False
        self._warn_unmet(str(path), config.stack.unmet_line, config.stack)
        if path not in self.configuration.files:
            self.configuration.files.append(path)
        return True

    def _warn_unmet(self, file: str, line: int, stack: JgroupsStack) -> None:
        """Warns, once for each file and reason, that real members are not found by a stack."""
        warning = f": {stack.unmet}. {REMEDY}"
        told = [each for each in self.report.warnings if each.startswith(f"{file}:") and each.endswith(warning)]
        if stack.unmet and not told:
            self.report.warnings.append(f"{file}:{line}{warning}")

    def _read_inside(
        self,
        node: XmlElement,
        config: DiscoveryConfig,
        channel: str,
        stack: str,
    ) -> bool:
        """Reads a stack of the jgroups subsystem in the same standalone.xml."""
        try:
            config.stack = parse_stack(stack.encode("utf-8"), channel, self.values)
        except StackError as error:
            self.report.problem(node.file, node.line, error.text)
            return False
        if not config.stack.unmet:
            config.stack.unmet = WILDFLY
        self._warn_unmet(node.file, node.line, config.stack)
        return True

    # cluster connections

    def _cluster_connections(self, section: XmlElement) -> None:
        handlers = {
            "cluster-connection": self._connection,
            "cluster-connection-uri": self._uri_element,
        }
        self.reader.read(section, [], handlers)

    def _connection(self, node: XmlElement) -> None:
        config = ClusterConnectionConfig()

        def connector(child: XmlElement) -> None:
            config.connector = self.references.connector(child)

        def static(child: XmlElement) -> None:
            self._static(child, config)

        def discovery(child: XmlElement) -> None:
            self._discovery_ref(child, config)

        handlers: dict[str, Handler] = {
            "connector-ref": connector,
            "static-connectors": static,
            "discovery-group-ref": discovery,
        }
        if "uri" in node.attributes:
            self._read_uri(node, node.attributes["uri"], config)
        self.reader.read(node, [into(config)], handlers, attributes=("uri",))
        given = any(child.name == "message-load-balancing" for child in node.children)
        if config.forward_when_no_consumers is not None and not given:
            config.message_load_balancing = self._old_load_balancing(config)
        if config.forward_when_no_consumers is not None and given:
            self._both_given(node, config)
        self._add(node, config)

    def _old_load_balancing(self, config: ClusterConnectionConfig) -> str:
        return STRICT if config.forward_when_no_consumers else ON_DEMAND

    def _both_given(self, node: XmlElement, config: ClusterConnectionConfig) -> None:
        """Warns of both load-balancing elements. In Artemis 2.44 (FileConfigurationParser) the older name decides,
        in its manual the newer one."""
        other = self._old_load_balancing(config)
        if config.message_load_balancing != other:
            self.report.warnings.append(
                f"{node.file}:{node.line}: cluster-connection '{config.name}': message-load-balancing"
                f" {config.message_load_balancing} counts here; a real Artemis takes forward-when-no-consumers,"
                f" which is {other}: keep one of them"
            )

    def _add(self, node: XmlElement, config: ClusterConnectionConfig) -> None:
        taken = [each.name for each in self.configuration.cluster_connections]
        if not config.name:
            self.report.problem(node.file, node.line, f"a <{node.name}> needs a name")
        elif config.name in taken:
            self.report.problem(
                node.file, node.line, f"cluster-connection '{config.name}' is given twice"
            )
        elif not config.connector:
            self.report.problem(
                node.file, node.line, f"cluster-connection '{config.name}' needs a connector-ref"
            )
        elif config.static and config.discovery_group is not None:
            self.report.problem(
                node.file,
                node.line,
                f"cluster-connection '{config.name}' has static connectors and a discovery group",
                "keep one of them",
            )
        else:
            self.configuration.positions["cluster-connection", config.name] = (node.file, node.line)
            self.configuration.cluster_connections.append(config)

    def _static(self, node: XmlElement, config: ClusterConnectionConfig) -> None:
        config.static = True

        def connector(child: XmlElement) -> None:
            name = self.references.connector(child)
            if name:
                config.static_connectors.append(name)

        self.reader.read(
            node, [], {"connector-ref": connector}, attributes=("allow-direct-connections-only",)
        )
        self._direct_only(node, node.attributes.get("allow-direct-connections-only", "false"), config)

    def _direct_only(self, node: XmlElement, text: str, config: ClusterConnectionConfig) -> None:
        try:
            config.allow_direct_connections_only = boolean(text)
        except BadValue as error:
            self.report.problem(node.file, node.line, f"allow-direct-connections-only: {error}")

    def _discovery_ref(self, node: XmlElement, config: ClusterConnectionConfig) -> None:
        config.discovery_group = self.references.discovery_group(node) or config.discovery_group

    # URI form

    def _uri_element(self, node: XmlElement) -> None:
        """Reads `<cluster-connection-uri name="x" address="static://(c1,tcp://host:1)?maxHops=1"/>` or
        `multicast://group?…`.

        Source: ClusterConnectionStaticSchema, ClusterConnectionMulticastSchema.
        """
        config = ClusterConnectionConfig(name=node.attributes.get("name", ""))
        self.reader.read(node, [], attributes=("name", "address"))
        self._read_uri(node, node.attributes.get("address", ""), config)
        self._add(node, config)

    def _read_uri(self, node: XmlElement, text: str, config: ClusterConnectionConfig) -> None:
        scheme, separator, rest = text.partition("://")
        end = rest.find(")") + 1 if rest.startswith("(") else 0
        rest, _, query = rest.partition("?") if not end else (rest[:end], "", rest[end:].lstrip("?"))
        if separator and scheme == "static":
            config.static = True
            for member in rest.strip("()").split(","):
                self._static_member(node, member.strip(), config)
        elif separator and scheme == "multicast" and rest:
            config.discovery_group = rest.rstrip("/")
            self.references.add(node, DISCOVERY_GROUP, config.discovery_group)
        else:
            self.report.problem(
                node.file,
                node.line,
                f"'{text}' is neither static://(connector,connector) nor multicast://discovery-group",
            )
            return
        try:
            params = parse_params(query)
        except UriError as error:
            self.report.problem(node.file, node.line, str(error))
            return
        self._uri_params(node, params, config)

    def _static_member(self, node: XmlElement, member: str, config: ClusterConnectionConfig) -> None:
        """Adds a static member: the name of a connector, or its URL `tcp://host:port?k=v` as Artemis allows here."""
        if not member:
            return
        if "://" not in member:
            self.references.add(node, CONNECTOR, member)
        elif member not in self.configuration.connectors:
            try:
                connector = parse_connector(member, member)
            except UriError as error:
                self.report.problem(node.file, node.line, f"'{member}': {error}")
                return
            self.configuration.connectors[member] = connector
        config.static_connectors.append(member)

    def _uri_params(
        self, node: XmlElement, params: dict[str, str], config: ClusterConnectionConfig
    ) -> None:
        described: dict[str, Any] = {entry.name: entry for entry in fields(config)}
        for name, text in params.items():
            if name == "name":
                config.name = config.name or text
            elif name == "allowDirectConnectionsOnly":
                self._direct_only(node, text, config)
            elif name in URI_NAMES:
                attribute = URI_NAMES[name]
                try:
                    setattr(config, attribute, convert(text, described[attribute].metadata))
                except BadValue as error:
                    self.report.problem(node.file, node.line, f"{name}: {error}")
            else:
                self.report.problem(
                    node.file, node.line, f"unknown parameter '{name}'", nearest(name, URI_NAMES)
                )
        if "connectorName" in params:
            self.references.add(node, CONNECTOR, config.connector)

