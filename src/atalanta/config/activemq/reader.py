"""Conversion of an activemq.xml to the tree of an equal broker.xml, its users and its networks.

Every element of the tree has file and line of the activemq.xml. So problems that broker_xml.py finds name the line the
user wrote. Nothing in the file names a class that is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os.path import realpath
from pathlib import Path
from typing import Final

from atalanta.cluster.networks.settings import NetworkSettings
from atalanta.config.activemq import tables
from atalanta.config.activemq.beans import Beans
from atalanta.config.activemq.destinations import CONSUMER_WILDCARDS, Destinations
from atalanta.config.activemq.elements import NO_BEANS, Core, Elements, only
from atalanta.config.activemq.networks import NetworkConnectors
from atalanta.config.activemq.plugins import Plugins
from atalanta.config.activemq.policies import SEND_TIMEOUT, Policies
from atalanta.config.activemq.properties import Properties, base_folder, replace_expressions
from atalanta.config.activemq.references import NamedElements, is_classic_element
from atalanta.config.activemq.stores import StoreFolder, Stores, store_folder
from atalanta.config.activemq.transports import TransportConnectors
from atalanta.config.problems import Report
from atalanta.config.users.logins import LoginSource
from atalanta.config.xml.tree import XmlElement, below, made
from atalanta.ha.policy import PRIMARY, SHARED_STORE

DATA: Final = "activemq-data"  # Classic's default
PLACEHOLDERS: Final = "PropertyPlaceholderConfigurer"
DELETE_ALL: Final = "deleteAllMessagesOnStartup"
AT_ONCE_MS: Final = "1"
MASTER: Final = "masterConnector"
MASTER_CLASS: Final = "MasterConnector"
MASTER_URI: Final = "masterConnectorURI"
VIRTUAL_DEMAND: Final = ("useVirtualDestSubs", "useVirtualDestSubsOnCreation")
NETWORK_URIS: Final = "networkConnectorURIs"
FOLDERS: Final = {
    "journal-directory": "journal",
    "paging-directory": "paging",
    "large-messages-directory": "large-messages",
}


@dataclass
class ClassicBroker:
    """A converted broker. `base` is the folder of relative paths; `logins` is None without authentication.

    `deletes_messages`: each start begins without the messages of earlier ones. `owner`: see Configuration.
    """

    configuration: XmlElement
    base: Path
    logins: LoginSource | None = None
    networks: NetworkSettings = field(default_factory=NetworkSettings)
    deletes_messages: bool = False
    owner: str = ""


def classic_broker(root: XmlElement, path: Path, values: Mapping[str, str], report: Report) -> ClassicBroker | None:
    """Returns the broker of an activemq.xml; None, and a problem, without exactly one `<broker>`."""
    elements = Elements(report)
    brokers = [root] if root.name == "broker" else list(root.all("broker"))
    if len(brokers) != 1:
        lines = ", ".join(str(each.line) for each in brokers)
        hint = f"lines {lines}: start each from a file of its own" if brokers else ""
        text = f"the file holds {len(brokers)} brokers (<broker>), not one"
        report.problem(root.file, brokers[1].line if brokers else root.line, text, hint)
        return None
    properties = Properties(path, values)
    references = NamedElements(root, elements)
    references.place(brokers[0])
    for child in root.children if root is not brokers[0] else []:
        if is_placeholders(child):
            read_placeholders(child, properties, elements)
        elif child is not brokers[0] and child.attributes.get("id") not in references.used:
            outside(child, elements)
    replace_expressions(brokers[0], properties, report)
    return BrokerReader(elements, path, brokers[0], root, properties).read()


def is_placeholders(node: XmlElement) -> bool:
    """Returns whether an element of Spring names the files with the values of expressions."""
    return PLACEHOLDERS in node.attributes.get("class", "") or node.name == "property-placeholder"


def read_placeholders(node: XmlElement, properties: Properties, elements: Elements) -> None:
    """Reads the property files of a placeholder bean. One that cannot be read is a warning: the expressions that need
    it are errors, unless the environment has their values."""
    texts = [node.attributes.get("location", "")]
    for each in below(node):
        if each.name == "property" and each.attributes.get("name") in ("location", "locations"):
            texts.append(each.attributes.get("value", ""))
            texts.extend(inner.text for inner in below(each) if inner.name == "value")
    for location in [part for text in texts for part in text.split(",") if part.strip()]:
        try:
            properties.read_file(location)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            elements.finding(node, f"property file {location.strip()}", f"not read: {why}", True)


def outside(node: XmlElement, elements: Elements) -> None:
    """Reports an element of Spring beside the broker."""
    if node.name == "import":
        what = node.attributes.get("resource", "")
        why = tables.OUTSIDE_LOST["jetty" if "jetty" in what else "import"]
        elements.finding(node, f"import {what}", why, True)
        return
    what = node.attributes.get("class") or node.attributes.get("id", "")
    name = f"{node.name} {what}".strip()
    if is_classic_element(node):
        elements.finding(node, name, tables.OUTSIDE_LOST.get(node.name) or tables.OUTSIDE_LOST["unused"], True)
        return
    for part in tables.OUTSIDE_SILENT:
        if part in node.attributes.get("class", ""):
            elements.finding(node, name, tables.OUTSIDE_SILENT[part])
            return
    why = tables.OUTSIDE_LOST.get(node.name) or tables.OUTSIDE_LOST["bean"]
    elements.finding(node, name, why, True)


class BrokerReader:
    """Converts `<broker>`. The readers of its sections are attributes; they finish when all of it was read."""

    def __init__(
        self, elements: Elements, path: Path, root: XmlElement, file: XmlElement, values: Mapping[str, str]
    ) -> None:
        """`file` is the root of the whole file, `values` the texts of its expressions."""
        self.elements = elements
        self.path = path
        self.broker = root
        self.core = Core(root)
        self.transports = TransportConnectors(elements, self.core)
        self.policies = Policies(elements, self.core, root)
        self.destinations = Destinations(elements, self.core)
        folder = Path(realpath(path)).parent
        self.plugins = Plugins(elements, self.core, self.policies, self.transports, folder)
        self.networks = NetworkConnectors(elements)
        self.beans = Beans(file, values)
        self.stores = Stores(elements, self.core, self.beans, base_folder(path))

    def read(self) -> ClassicBroker:
        """Returns the broker."""
        broker, core = self.broker, self.core
        silent, lost, fixed = tables.BROKER_SILENT, tables.BROKER_LOST, tables.BROKER_FIXED
        values = self.elements.values(broker, tables.BROKER, silent, lost, fixed)
        name = values.get("brokerName", "localhost")
        core.put(broker, "name", name)
        core.node.children.append(self._wildcards())
        self.stores.persistent = self.elements.true(broker, values, "persistent", True)
        self._find_others(values)
        if self.elements.true(broker, values, "populateJMSXUserID"):
            core.put(broker, "populate-validated-user", "true")
        purge = self.elements.whole(broker, values, "schedulePeriodForDestinationPurge", 0)
        if purge > 0:
            core.put(broker, "address-queue-scan-period", str(purge))
        scan = self.elements.whole(broker, values, "schedulePeriodForDiskUsageCheck", 0)
        if scan > 0:
            core.put(broker, "disk-scan-period", str(scan))
        if not self.elements.true(broker, values, "advisorySupport", True):
            self.transports.options_for_openwire["supportAdvisory"] = "false"
        for option in VIRTUAL_DEMAND:
            if self.elements.true(broker, values, option):
                self.transports.options_for_openwire[option] = "true"
        if self.elements.true(broker, values, "schedulerSupport"):
            self.transports.schedules = True
        self._children()
        self.elements.finish()
        core.put(broker, "persistence-enabled", "true" if self.stores.persistent else "false")
        base = base_folder(self.path)
        data = StoreFolder(self.stores.folder)
        if not self.stores.folder:
            data = store_folder(base, values.get("dataDirectory") or values.get("dataDirectoryFile", DATA), name)
            if data.left:
                why = f"it is named for this broker, but {data.path} is served; move that one away to serve this one"
                self.elements.finding(broker, f"the journal in {data.left}", why, True)
        for option, folder in FOLDERS.items():
            core.put(broker, option, f"{data.path}/{folder}")
        if self.stores.persistent:
            self._pair()
        forms = self.destinations.virtual_topics
        if not self.elements.true(broker, values, "useVirtualTopics", True):
            forms = []
        self.transports.options_for_openwire[CONSUMER_WILDCARDS] = ",".join(forms)
        self._finish()
        configuration = made(broker, "configuration")
        configuration.children.append(core.node)
        connectors = self.networks.connectors
        if self.policies.replay is not None:
            replays, delay_ms = self.policies.replay
            connectors = [
                replace(each, replay_when_no_consumers=replays, replay_delay_ms=delay_ms) for each in connectors
            ]
        networks = NetworkSettings(connectors, self.transports.discovery_uris, self.transports.tls)
        deletes = self.elements.true(broker, values, DELETE_ALL)
        return ClassicBroker(configuration, base, self.plugins.logins, networks, deletes, data.owner)

    def _pair(self) -> None:
        """Makes the broker one of equals with everybody who has its folder."""
        policy, form, role = (made(self.broker, name) for name in ("ha-policy", SHARED_STORE, PRIMARY))
        role.children.append(made(self.broker, "failover-on-shutdown", "true"))
        form.children.append(role)
        policy.children.append(form)
        self.core.node.children.append(policy)
        if self.stores.fails_if_locked:
            self.core.put(self.broker, "journal-lock-acquisition-timeout", AT_ONCE_MS)

    def _finish(self) -> None:
        self.transports.finish()
        self.policies.finish()
        if self.policies.counts_deliveries:
            self.core.put(self.broker, "persist-delivery-count-before-delivery", "true")
        if self.policies.expiry_period is not None:
            self.core.put(self.broker, "message-expiry-scan-period", self.policies.expiry_period)
        self.plugins.authorization.finish(self.broker, self.plugins.logins)

    def _wildcards(self) -> XmlElement:
        """Returns the wildcards of Classic, so that patterns and clients keep their `>`."""
        wildcards = made(self.broker, "wildcard-addresses")
        wildcards.children.append(made(self.broker, "any-words", ">"))
        return wildcards

    def _children(self) -> None:
        self.elements.children(
            self.broker,
            {
                "transportConnectors": self.transports.read,
                "sslContext": self.transports.ssl_context,
                "networkConnectors": self.networks.read,
                "persistenceAdapter": self.stores.read,
                "persistenceFactory": self.stores.factory,
                "services": self._services,
                "systemUsage": self._usage,
                "destinationPolicy": self.policies.read,
                "destinations": self.destinations.read,
                "destinationInterceptors": self.destinations.interceptors,
                "plugins": self.plugins.read,
            },
            tables.BROKER_CHILDREN_SILENT,
            tables.BROKER_CHILDREN_LOST,
        )

    # -- other brokers ------------------------------------------------------------------------------
    def _find_others(self, values: Mapping[str, str]) -> None:
        """Reports the attributes of the older pairs, and of networks, that say that there are other brokers."""
        broker = self.broker
        for name in tables.PURE_PAIR:
            if self.elements.true(broker, values, name):
                self.elements.others(broker, f"broker {name}", tables.REMOVED, tables.WAYS_OF_PAIR)
            elif name in values:
                self.elements.finding(broker, f"broker {name}", tables.REMOVED, True)
        if values.get(MASTER_URI):
            self.elements.others(broker, f"broker {MASTER_URI}", tables.REMOVED, tables.WAYS_OF_PAIR)
        if values.get(NETWORK_URIS):
            self.elements.others(broker, f"broker {NETWORK_URIS}", "no connector is made", tables.WAYS_OF_NETWORK)

    def _services(self, section: XmlElement) -> None:
        """Reads past the services; one of them is the slave of an older pair."""
        masters = []
        for child in section.children:
            classes = self.beans.classes(self.beans.meant(child))
            if child.name == MASTER or any(MASTER_CLASS in each for each in classes):
                masters.append(child)
        for child in masters:
            self.elements.others(child, child.name, tables.REMOVED, tables.WAYS_OF_PAIR)
        if len(masters) < len(section.children) or not masters:
            self.elements.finding(section, section.name, NO_BEANS, True)

    # -- limits -------------------------------------------------------------------------------------
    def _usage(self, section: XmlElement) -> None:
        node = only(section)
        if node is None or node.name != "systemUsage":
            self.elements.problem(section, "<systemUsage> holds one <systemUsage>")
            return
        self.elements.values(node, ("sendFailIfNoSpace", SEND_TIMEOUT), tables.SYSTEM_USAGE_SILENT)
        self.elements.children(
            node, {"memoryUsage": self._memory, "storeUsage": self._disk}, {}, tables.SYSTEM_USAGE_CHILDREN_LOST
        )

    def _memory(self, section: XmlElement) -> None:
        node = only(section) or section
        values = self.elements.values(node, ("limit",), tables.USAGE_SILENT, tables.USAGE_LOST)
        size = self.elements.size(node, values, "limit")
        if size is not None:
            self.core.put(node, "global-max-size", str(size))

    def _disk(self, section: XmlElement) -> None:
        node = only(section) or section
        values = self.elements.values(node, ("limit", "percentLimit"), tables.USAGE_SILENT, tables.USAGE_LOST)
        if "percentLimit" in values:
            self.core.put(node, "max-disk-usage", values["percentLimit"])
        elif "limit" in values:
            self.elements.finding(node, "storeUsage limit", tables.DISK_BYTES, True)
