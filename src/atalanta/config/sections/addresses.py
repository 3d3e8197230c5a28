"""Sections of broker.xml about addresses: `<addresses>`, the old `<queues>`, `<address-settings>`,
`<security-settings>`."""

from __future__ import annotations

from typing import Any

from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report, nearest
from atalanta.config.xml.reader import Handler, XmlReader, into, into_mapping
from atalanta.config.xml.tree import XmlElement
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.wildcard import verify_match
from atalanta.kernel.security.security import OLD_PERMISSIONS, PERMISSIONS, SecurityRule
from atalanta.kernel.settings.broker_config import AddressConfig, AddressSetting, QueueConfig
from atalanta.kernel.settings.repository import AddressSettings
from atalanta.message.selector.selector import FilterError, parse_optional


class AddressSections:
    def __init__(self, configuration: Configuration, report: Report) -> None:
        self.broker = configuration.broker
        self.configuration = configuration
        self.report = report
        self.reader = XmlReader(report)
        self.queues: dict[str, QueueConfig] = {}
        self.queue_nodes: list[tuple[XmlElement, str]] = []
        self.addresses: dict[str, AddressConfig] = {}
        self.role_mappings: dict[str, list[str]] = {}
        self.matches: list[tuple[XmlElement, str]] = []

    def handlers(self) -> dict[str, Handler]:
        return {
            "addresses": self._addresses,
            "queues": self._old_queues,
            "address-settings": self._address_settings,
            "security-settings": self._security_settings,
        }

    def finish(self) -> None:
        """Completes the settings with the wildcard characters and other options that may be anywhere in the file."""
        self.broker.addresses = list(self.addresses.values())
        prefix = f"{self.broker.internal_naming_prefix}sf."
        for node, name in self.queue_nodes:
            if name.startswith(prefix):
                text = f"queue '{name}': names that begin with {prefix} are those of store-and-forward queues"
                self.report.problem(node.file, node.line, text, "choose another name")
        for node, match in self.matches:
            markers = self.broker.literal_match_markers
            if markers and match[:1] == markers[0] and match[-1:] == markers[-1]:
                continue
            try:
                verify_match(match, self.broker.wildcard)
            except ValueError as error:
                self.report.problem(node.file, node.line, str(error))
        markers = self.broker.literal_match_markers
        if not markers:
            self.broker.literal_match_markers = None
        elif len(markers) != 2:
            self.report.problem(
                str(self.configuration.path), 0, "literal-match-markers are two characters"
            )

    # addresses and queues

    def _addresses(self, section: XmlElement) -> None:
        self.reader.read(section, [], {"address": self._address})

    def _address(self, node: XmlElement) -> None:
        name = node.attributes.get("name", "")
        if not name:
            self.report.problem(node.file, node.line, "an <address> needs a name")
            return
        # An address given twice has the queues of both elements, as in Artemis.
        address = self.addresses.setdefault(name, AddressConfig(name))

        def anycast(child: XmlElement) -> None:
            address.anycast = True
            self._queues(child, address, ANYCAST)

        def multicast(child: XmlElement) -> None:
            address.multicast = True
            self._queues(child, address, MULTICAST)

        self.reader.read(
            node, [], {"anycast": anycast, "multicast": multicast}, attributes=("name",)
        )
        if not address.anycast and not address.multicast:
            self.report.problem(
                node.file,
                node.line,
                f"address '{name}' has no routing type",
                "add <anycast/> or <multicast/>",
            )

    def _queues(self, section: XmlElement, address: AddressConfig, routing_type: int) -> None:
        def queue(child: XmlElement) -> None:
            config = QueueConfig(routing_type=routing_type)
            if self._queue(child, config):
                config.address = address.name
                address.add(config)

        self.reader.read(section, [], {"queue": queue})

    def _queue(self, node: XmlElement, config: QueueConfig) -> bool:
        self.reader.read(
            node, [into(config)], {"filter": lambda child: self._filter(child, config)}
        )
        if not config.name:
            self.report.problem(node.file, node.line, "a <queue> needs a name")
            return False
        if config.name in self.queues:
            first = next(known for known, name in self.queue_nodes if name == config.name)
            self.report.repeated(node.file, node.line, f"queue {config.name}", f"that of line {first.line} counts")
            return False
        self.queues[config.name] = config
        self.queue_nodes.append((node, config.name))
        return True

    def _filter(self, node: XmlElement, config: QueueConfig) -> None:
        self.reader.read(node, [], attributes=("string",))
        text = node.attributes.get("string")
        if text is None:
            self.report.problem(node.file, node.line, "a <filter> needs the attribute 'string'")
            return
        try:
            parse_optional(text)
        except FilterError as error:
            self.report.problem(node.file, node.line, f"filter: {error}")
            return
        config.filter_text = text if text.strip() else None

    def _old_queues(self, section: XmlElement) -> None:
        """Reads `<queues>` of Artemis 1: each queue names its address.

        In Artemis 1 such queues were anycast and multicast alike. Now they are multicast, Artemis' default
        routing type.
        """

        def queue(child: XmlElement) -> None:
            config = QueueConfig(routing_type=MULTICAST)
            if not self._queue(child, config):
                return
            config.address = config.address or config.name
            address = self.addresses.setdefault(config.address, AddressConfig(config.address))
            address.add(config)

        self.reader.read(section, [], {"queue": queue})

    # address settings

    def _address_settings(self, section: XmlElement) -> None:
        self.reader.read(section, [], {"address-setting": self._address_setting})

    def _address_setting(self, node: XmlElement) -> None:
        match = self._match(node, "address-setting")
        values: dict[str, Any] = {}
        self.reader.read(node, [into_mapping(AddressSettings, values)], attributes=("match",))
        for name in ("dead_letter_address", "expiry_address"):
            if values.get(name) == "":
                values[name] = None  # an empty element removes the value of a wider match
        if match is not None:
            self.broker.address_settings.append(AddressSetting(match, values))

    def _match(self, node: XmlElement, kind: str) -> str | None:
        """Returns the match of a setting; None if it has none, or if one before it counts (AMQ222301)."""
        match = node.attributes.get("match", "")
        if not match:
            self.report.problem(node.file, node.line, f"an <{node.name}> needs a match")
            return None
        for known, name in self.matches:
            if name == match and known.name == kind:
                self.report.repeated(node.file, node.line, f"{kind} {match}", f"that of line {known.line} counts")
                return None
        self.matches.append((node, match))
        return match

    # security settings

    def _security_settings(self, section: XmlElement) -> None:
        for mapping in section.all("role-mapping"):
            self._role_mapping(mapping)
        self.reader.read(
            section,
            [],
            {"security-setting": self._security_setting, "role-mapping": lambda node: None},
            {
                "security-setting-plugin": "a Java class: nobody gets the permissions that it reads, as those of a"
                " directory; write them as <security-setting> elements"
            },
        )

    def _role_mapping(self, node: XmlElement) -> None:
        """Reads a role mapping: users with role `from` have the permissions of the roles `to`.

        Source: Artemis' FileConfigurationParser.parseSecurityRoleMapping, meant for long names out of
        directories.
        """
        self.reader.read(node, [], attributes=("from", "to"))
        source = node.attributes.get("from", "").strip()
        if not source or not node.attributes.get("to", "").strip():
            self.report.problem(node.file, node.line, "a <role-mapping> needs 'from' and 'to'")
            return
        for role in _roles(node.attributes["to"]):
            self.role_mappings.setdefault(role, []).append(source)

    def _security_setting(self, node: XmlElement) -> None:
        match = self._match_of_rule(node)
        permissions: dict[str, tuple[str, ...]] = {}

        def permission(child: XmlElement) -> None:
            self.reader.read(child, [], attributes=("type", "roles"))
            kind = child.attributes.get("type", "")
            current = OLD_PERMISSIONS.get(kind, kind)
            if current not in PERMISSIONS:
                self.report.problem(
                    child.file,
                    child.line,
                    f"unknown permission '{kind}'",
                    nearest(kind, [*PERMISSIONS, *OLD_PERMISSIONS]),
                )
                return
            roles: list[str] = []
            for role in _roles(child.attributes.get("roles", "")):
                roles.append(role)
                if role not in self.role_mappings:
                    place = (child.file, child.line)
                    self.configuration.positions.setdefault(("role", role), place)
                roles.extend(self.role_mappings.get(role, []))
            permissions[current] = permissions.get(current, ()) + tuple(roles)

        self.reader.read(node, [], {"permission": permission}, attributes=("match",))
        if match is not None:
            self.broker.security_rules.append(SecurityRule(match, permissions))

    def _match_of_rule(self, node: XmlElement) -> str | None:
        return self._match(node, "security-setting")


def _roles(text: str) -> list[str]:
    return [role.strip() for role in text.split(",") if role.strip()]
