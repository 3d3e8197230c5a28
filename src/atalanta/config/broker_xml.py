"""The reader of Artemis' `broker.xml`.

All problems are reported together, with file and line. Elements that Artemis knows and this version does not
support are collected for one list at start; none is ignored silently. Sections about clustering are read in
config/sections/cluster.py. Addresses, settings and permissions are read in config/sections/addresses.py.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from os.path import dirname, realpath
from pathlib import Path
from typing import Final

from atalanta.config.acceptors import SERVED_PROTOCOLS, parse_acceptor
from atalanta.config.checks.cluster_connections import link_warnings
from atalanta.config.configuration import WILDCARD_HOSTS, Configuration, instance_folder
from atalanta.config.native.toml_file import own_file, read_own_file, ways_alone
from atalanta.config.problems import ClosedAcceptor, Report, nearest
from atalanta.config.sections import known_elements
from atalanta.config.sections.addresses import AddressSections
from atalanta.config.sections.bridges import CoreBridgeSection
from atalanta.config.sections.cluster import ClusterSections
from atalanta.config.sections.connection_routers import RouterSection
from atalanta.config.sections.diverts import DivertSection
from atalanta.config.sections.grouping import GroupingSection
from atalanta.config.sections.ha.ha_policy import HaSection
from atalanta.config.sections.jms import addresses_of
from atalanta.config.sections.network_check import check_network
from atalanta.config.sections.plugins import PluginSection
from atalanta.config.sections.resource_limits import LimitSection
from atalanta.config.users.password_masks import PasswordMasks
from atalanta.config.version_1.name_warnings import version_1_warnings
from atalanta.config.xml.reader import BadValue, XmlReader, boolean, into
from atalanta.config.xml.tree import TreeReader, XmlElement, is_classic, is_wildfly
from atalanta.ha.policy import SHARED_STORE
from atalanta.kernel.security.security import DEFAULT_CLUSTER_USER
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.unseen_options import IN_PROCESS
from atalanta.wire.endpoint import (
    AcceptorConfig,
    EndpointConfig,
    UnservedUri,
    parse_connector,
)
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.uri import UriError, repeated_params

ROOT: Final = "configuration"
IN_VM: Final = ("vm://", "in-vm://")
LOCK_COORDINATOR: Final = "lock-coordinator"
DATABASE: Final = "store"
NO_COMMON_DATABASE: Final = (
    "the pair of <shared-store> has no database in common, <store> is not used: it is a pair only if both nodes reach"
    " the journal-directory {}"
)
UNSERVED_WAYS: Final = "remove the parameter here and in the URLs of the clients; the others of this file are open"
LOCK_WHY: Final = (
    "it names a lock-coordinator, so that only one node has it open. There are no such locks here, neither for nodes of"
    " ours nor shared with a real Artemis: it stays closed"
)
LOCK_WAYS: Final = (
    "make the nodes a pair with one store, or a replicated group, by <ha-policy>: then only the active one has its"
    " acceptors open"
)


def read_broker_xml(
    path: Path,
    values: Mapping[str, str] | None = None,
    from_command_line: bool = False,
    alone: bool = False,
    contents: Mapping[Path, bytes] | None = None,
) -> Configuration:
    """Reads the configuration in `path`.

    `values` replace `${name}` (system properties, environment); `artemis.instance` and `artemis.instance.etc`
    are known too. ConfigError has all problems. `from_command_line`: the file may be a pipe, "-" is stdin. `alone`:
    there are no other brokers, whatever the file says. `contents`: files that are read as if they had these bytes.
    """
    report = Report()
    configuration = Configuration(path, instance_folder(path))
    known = {
        "artemis.instance": str(configuration.instance),
        "artemis.instance.etc": dirname(realpath(path)),
        **(values or {}),
    }
    configuration.values = known
    reader = TreeReader(report, known, from_command_line, contents)
    root = reader.read(path)
    configuration.files.extend(reader.files)
    if root is not None and is_wildfly(root):
        from atalanta.config.wildfly.reader import broker_tree  # takes 4 ms of a start

        made = broker_tree(root, report)
        root = None if made is None else made.configuration
        configuration.stacks = {} if made is None else made.stacks
    elif root is not None and is_classic(root):
        root = classic_configuration(root, configuration, known, report)
    elif root is not None:
        configuration.warnings.extend(version_1_warnings(root))
    xml = BrokerXml(configuration, report, known)
    if root is not None:
        xml.read(root)
    own = own_file(path)
    positions, networks = configuration.positions, configuration.networks.connectors
    configuration.own = read_own_file(own, report, configuration.ha, positions, networks, (contents or {}).get(own))
    xml.ha.finish_own()
    xml.bridges.finish_own()
    xml.cluster.finish_own()
    configuration.files.append(own)
    configuration.told_alone = alone
    no_others = alone or configuration.own.alone
    report.settle_others(no_others, ways_alone(path))
    xml.settle_locked(no_others)
    configuration.unsupported = list(report.unsupported)
    configuration.warnings.extend(report.warnings)
    if configuration.ha.form == SHARED_STORE and any(each.name == DATABASE for each in configuration.unsupported):
        configuration.warnings.append(NO_COMMON_DATABASE.format(configuration.journal_folder))
    report.check()
    return configuration


def classic_configuration(
    root: XmlElement, configuration: Configuration, values: Mapping[str, str], report: Report
) -> XmlElement | None:
    """Returns the tree of ActiveMQ Classic's activemq.xml; its users and networks go into `configuration`."""
    from atalanta.config.activemq.reader import classic_broker  # Few nodes have such a file.

    found = classic_broker(root, configuration.path, values, report)
    if found is None:
        return None
    configuration.classic = True
    configuration.take_classic(found.base, found.logins, found.networks)
    configuration.delete_messages_at_start = found.deletes_messages
    configuration.shared_data_owner = found.owner
    return found.configuration


class BrokerXml:
    """Reads the XML tree of one file into `configuration`."""

    def __init__(
        self, configuration: Configuration, report: Report, values: Mapping[str, str]
    ) -> None:
        self.configuration = configuration
        self.report = report
        self.reader = XmlReader(report)
        self.masks = PasswordMasks(configuration, report, values)
        self.addresses = AddressSections(configuration, report)
        self.diverts = DivertSection(configuration, report)
        self.limits = LimitSection(configuration, report)
        self.plugins = PluginSection(configuration.broker.notifications, report)
        self.cluster = ClusterSections(configuration, report, values)
        self.grouping = GroupingSection(configuration, report)
        self.ha = HaSection(configuration, report)
        self.bridges = CoreBridgeSection(configuration, report)
        self.routers = RouterSection(configuration, report)
        self.locked: list[AcceptorConfig] = []  # acceptors that name a lock-coordinator

    def read(self, root: XmlElement) -> None:
        if root.name == "core":
            self._core(root)
            return
        if root.name != ROOT:
            self.report.problem(
                root.file,
                root.line,
                f"the root element is <{root.name}>, not <{ROOT}>",
                "Artemis' broker.xml is expected",
            )
            return
        cores = 0
        legacy = [addresses_of(each, self.report) for each in root.all("jms")]
        for child in root.children:
            if child.name == "core":
                cores += 1
                child.children.extend(legacy)
                self._core(child)
            elif child.name == "jms":
                continue  # see above
            else:
                self.report.problem(
                    child.file,
                    child.line,
                    f"unknown element <{child.name}> in <{ROOT}>",
                    nearest(child.name, ["core", "jms"]),
                )
        if cores != 1:
            self.report.problem(root.file, root.line, f"<{ROOT}> holds one <core>, not {cores}")

    def _core(self, core: XmlElement) -> None:
        broker = self.configuration.broker
        handlers = {
            "acceptors": self._acceptors,
            "connectors": self._connectors,
            "wildcard-addresses": self._wildcards,
            "wild-card-routing-enabled": self._wildcard_routing,
            "global-max-size": self._global_max_size,
            "store": self._store,
            **self.masks.handlers(),
            **self.addresses.handlers(),
            **self.diverts.handlers(),
            **self.limits.handlers(),
            **self.plugins.handlers(),
            **self.cluster.handlers(),
            **self.grouping.handlers(),
            **self.ha.handlers(),
            **self.bridges.handlers(),
            **self.routers.handlers(),
        }
        network = self.configuration.network_check
        targets = [into(broker), into(self.configuration.journal), into(network)]
        self.reader.read(
            core, targets, handlers, known_elements.CORE,
            fixed=known_elements.CORE_FIXED, lost=known_elements.CORE_LOST,
        )  # fmt: skip
        self.addresses.finish()
        self.cluster.finish()
        self.ha.finish(core)
        self.bridges.finish()
        self.routers.finish(core)
        self.masks.finish()
        check_network(core, network, self.report)
        self._take_virtual_topics()
        self._check_acceptors()
        self._warn()

    def _acceptors(self, section: XmlElement) -> None:
        for child in self._named(section, "acceptor"):
            text = self._transport(child)
            if text is None:
                continue
            if text.startswith(IN_VM):
                self._in_vm(child)
                continue
            try:
                acceptor = parse_acceptor(child.attributes["name"], text)
            except UnservedUri as unserved:
                closed = ClosedAcceptor(child.file, child.line, child.attributes["name"], str(unserved), UNSERVED_WAYS)
                self.configuration.closed_acceptors.append(closed)
                continue
            except UriError as error:
                self.report.problem(child.file, child.line, f"acceptor: {error}")
                continue
            others = [name for name in acceptor.protocols if name not in SERVED_PROTOCOLS]
            if not any(acceptor.serves(protocol) for protocol in SERVED_PROTOCOLS):
                self.report.without_effect(
                    child.file,
                    child.line,
                    f"acceptor {acceptor.name}",
                    f"not opened: {', '.join(others)} not supported yet",
                    lost=True,
                )
                continue
            self._list_unused(child, acceptor)
            self._list_repeated(child, text)
            if acceptor.options(OpenWireAcceptor).discovery_uri:
                self._published(child, acceptor)
            if others:
                self.report.without_effect(
                    child.file,
                    child.line,
                    f"acceptor {acceptor.name}: {', '.join(others)}",
                    "protocols that are not supported yet",
                    lost=True,
                )
            self.configuration.acceptors.append(acceptor)
            if LOCK_COORDINATOR in child.attributes:
                self.locked.append(acceptor)

    def settle_locked(self, alone: bool) -> None:
        """Closes the acceptors that name a lock-coordinator: a node that has the lock may have them open. A broker that
        is `alone` opens them."""
        configuration = self.configuration
        for acceptor in self.locked:
            file, line = configuration.position("acceptor", acceptor.name)
            if alone:
                what = f"acceptor {acceptor.name}: {LOCK_COORDINATOR}"
                why = "it is opened without the lock, as there are no other brokers"
                self.report.without_effect(file, line, what, why, True)
                continue
            configuration.acceptors.remove(acceptor)
            ways = f"{LOCK_WAYS}; if there are no others: {ways_alone(configuration.path)}"
            configuration.closed_acceptors.append(ClosedAcceptor(file, line, acceptor.name, LOCK_WHY, ways))

    def _published(self, node: XmlElement, acceptor: AcceptorConfig) -> None:
        """Checks what clients with `discovery:` are told of an acceptor."""
        # Most nodes have no need of it.
        from atalanta.wire.openwire.multicast_discovery import parse_group

        options = acceptor.options(OpenWireAcceptor)
        try:
            parse_group(options.discovery_uri)
        except UriError as error:
            self.report.problem(node.file, node.line, f"acceptor {acceptor.name}: discoveryUri: {error}")
        if acceptor.host in WILDCARD_HOSTS and not options.published_host:
            options.published_host = socket.gethostname()
            self.configuration.warnings.append(
                f"{node.file}:{node.line}: acceptor '{acceptor.name}' is published as {options.published_host}, the"
                " name of this machine: write publishedHost for another one"
            )

    def _connectors(self, section: XmlElement) -> None:
        for child in self._named(section, "connector"):
            text = self._transport(child)
            if text is None:
                continue
            if text.startswith(IN_VM):
                self._in_vm(child)
                self.configuration.in_vm_connectors.append(child.attributes["name"])
                continue
            try:
                connector = parse_connector(child.attributes["name"], text)
            except UriError as error:
                self.report.problem(child.file, child.line, f"connector: {error}")
                continue
            if connector.host in WILDCARD_HOSTS:
                self.configuration.warnings.append(
                    f"{child.file}:{child.line}: connector '{connector.name}': others cannot dial {connector.host}:"
                    f" the name of this machine, {socket.gethostname()}, is announced instead"
                )
            self._list_unused(child, connector)
            self._list_repeated(child, text)
            self.configuration.connectors[connector.name] = connector

    def _list_repeated(self, node: XmlElement, text: str) -> None:
        for name in repeated_params(text):
            what = f"{node.name} {node.attributes['name']}: {name}"
            self.report.repeated(node.file, node.line, what, "the last one counts")

    def _named(self, section: XmlElement, name: str) -> list[XmlElement]:
        """Returns the children called `name` that have a unique name of their own; the others are problems."""
        found: list[XmlElement] = []
        seen: set[str] = set()

        def take(child: XmlElement) -> None:
            own = child.attributes.get("name", "")
            if not own:
                self.report.problem(child.file, child.line, f"a <{name}> needs a name")
            elif own in seen and name == "connector":  # AMQ222017
                _, line = self.configuration.positions[name, own]
                self.report.repeated(child.file, child.line, f"{name} {own}", f"that of line {line} counts")
            elif own in seen:
                self.report.problem(child.file, child.line, f"{name} '{own}' is given twice")
            else:
                seen.add(own)
                found.append(child)
                self.configuration.positions[name, own] = (child.file, child.line)

        self.reader.read(section, [], {name: take})
        return found

    def _transport(self, node: XmlElement) -> str | None:
        """Returns the URI of an acceptor or connector; the old form with <factory-class> and <param> is converted."""
        known = ("name", LOCK_COORDINATOR) if node.name == "acceptor" else ("name",)
        for name in node.attributes:
            if name not in known:
                self.report.problem(
                    node.file, node.line, f"unknown attribute '{name}' of <{node.name}>"
                )
        if not node.children:
            if not node.text:
                self.report.problem(node.file, node.line, f"an empty <{node.name}>")
                return None
            return node.text
        params: dict[str, str] = {}
        factory = ""
        for child in node.children:
            if child.name == "factory-class":
                factory = child.text
            elif child.name == "param":
                params[child.attributes.get("key", "")] = child.attributes.get("value", "")
            else:
                self.reader.unknown(child, node, ["factory-class", "param"])
        if "InVM" in factory:
            return "vm://0"
        if factory and "Netty" not in factory:
            what = f"{node.name} {node.attributes.get('name', '')}: {factory}"
            why = "TCP with the protocols of this broker is taken instead: Java classes cannot be loaded"
            self.report.without_effect(node.file, node.line, what, why, True)
        host = params.pop("host", "localhost")
        port = params.pop("port", "61616")
        options = ";".join(f"{key}={value}" for key, value in params.items())
        return f"tcp://{host}:{port}" + (f"?{options}" if options else "")

    def _in_vm(self, node: XmlElement) -> None:
        self.report.without_effect(
            node.file,
            node.line,
            f"{node.name} {node.attributes['name']}",
            IN_PROCESS,
        )

    def _list_unused(self, node: XmlElement, endpoint: EndpointConfig) -> None:
        """Lists unused parameters: one line for all parameters with the same reason."""
        for unused, lost in ((endpoint.unused, False), (endpoint.named, True)):
            reasons: dict[str, list[str]] = {}
            for name, why in unused:
                reasons.setdefault(why, []).append(name)
            for why, parameters in reasons.items():
                what = f"{node.name} {node.attributes['name']}: {', '.join(parameters)}"
                self.report.without_effect(node.file, node.line, what, why, lost)

    def _take_virtual_topics(self) -> None:
        """Makes the virtual topics of the OpenWire acceptors those of the broker: its bridges need them, too."""
        served = [each for each in self.configuration.acceptors if each.serves("OPENWIRE")]
        texts = [each.options(OpenWireAcceptor).virtual_topic_forms for each in served]
        if texts:
            broker = self.configuration.broker
            broker.virtual_topic_forms = ",".join(dict.fromkeys(texts))
            broker.virtual_demand = any([each.options(OpenWireAcceptor).virtual_demand for each in served])
            broker.virtual_demand_of_queues = any(
                [each.options(OpenWireAcceptor).virtual_demand_of_queues for each in served]
            )

    def _check_acceptors(self) -> None:
        connections = {each.name for each in self.configuration.cluster_connections}
        for acceptor in self.configuration.acceptors:
            wanted = acceptor.cluster_connection
            if wanted is not None and wanted not in connections:
                file, line = self.configuration.position("acceptor", acceptor.name)
                self.report.problem(
                    file,
                    line,
                    f"acceptor '{acceptor.name}': there is no cluster-connection '{wanted}'",
                    nearest(wanted, sorted(connections)),
                )

    def _wildcards(self, node: XmlElement) -> None:
        wildcard = self.configuration.broker.wildcard
        self.reader.read(node, [into(wildcard)])
        for text in (wildcard.delimiter, wildcard.any_words, wildcard.single_word):
            if len(text) != 1:
                self.report.problem(
                    node.file, node.line, f"'{text}' in <{node.name}> is not one character"
                )

    def _wildcard_routing(self, node: XmlElement) -> None:
        """Reads the old form of `<wildcard-addresses><routing-enabled>`."""
        try:
            self.configuration.broker.wildcard.routing_enabled = boolean(node.text.strip())
        except BadValue as error:
            self.report.problem(node.file, node.line, f"{node.name}: {error}")

    def _global_max_size(self, node: XmlElement) -> None:
        """Reads global-max-size; -1 means absent. Then Artemis takes half of the heap, Atalanta its own default."""
        only = XmlElement("core", "", node.file, node.line, {}, "", [node])
        self.reader.read(only, [into(self.configuration.broker)])
        broker = self.configuration.broker
        if broker.global_max_size_bytes < 0:
            broker.global_max_size_bytes = BrokerConfig().global_max_size_bytes

    def _store(self, node: XmlElement) -> None:
        """Reads `<store>`: `<file-store/>` is what is here anyway, any other one is a database."""
        if any(child.name != known_elements.FILE_STORE for child in node.children):
            self.report.without_effect(node.file, node.line, node.name, known_elements.STORE_WHY, True)

    def _warn(self) -> None:
        configuration = self.configuration
        broker = configuration.broker
        if not broker.security_enabled:
            configuration.warnings.append(
                "security-enabled is false: every client may connect and has all permissions"
            )
        settings = configuration.cluster_settings()
        if settings is not None and settings.has_default_password:
            configuration.warnings.append(
                "the cluster-password is the default or empty, which everybody knows, and the cluster user may do"
                " everything: write the same <cluster-user> and <cluster-password> in the files of all members"
            )
        self._warn_of_cluster_user()
        configuration.warnings.extend(link_warnings(configuration))
        if not configuration.acceptors:
            configuration.warnings.append("there is no acceptor for CORE: no client can connect")

    def _warn_of_cluster_user(self) -> None:
        """Names credentials in the file that let in nobody: their password is no secret, and there is no cluster."""
        configuration = self.configuration
        node = self.masks.cluster_password
        named = node is not None or configuration.broker.cluster_user != DEFAULT_CLUSTER_USER
        if named and configuration.accepted_cluster_password is None:
            file, line = (str(configuration.path), 0) if node is None else (node.file, node.line)
            why = (
                "without a cluster-connection nobody can log in as the cluster user with the default password or an"
                " empty one: write another <cluster-password>, or remove it"
            )
            self.report.without_effect(file, line, "cluster-password", why, lost=True)

