"""The section `<bridges>` of broker.xml, and the bridge tables of atalanta.toml."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.core_bridges.config import CoreBridgeConfig
from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report, nearest
from atalanta.config.sections.message import read_filter, read_transformer
from atalanta.config.sections.references import References
from atalanta.config.xml.reader import Handler, XmlReader, into
from atalanta.config.xml.tree import XmlElement
from atalanta.kernel.routing.divert_config import ADD_HEADERS

WITHOUT_USER: Final = (
    "it has the default cluster user and password, which are public, and an Atalanta node without a cluster-connection"
    " refuses them: give it a <user> and <password> of its target"
)


class CoreBridgeSection:
    """Reads bridges into the configuration; a bridge that could never work is a problem."""

    def __init__(self, configuration: Configuration, report: Report) -> None:
        self.configuration = configuration
        self.report = report
        self.reader = XmlReader(report)
        self.references = References(configuration, report, self.reader)
        self.transformers: list[tuple[XmlElement, CoreBridgeConfig]] = []  # transformers with unknown classes

    def handlers(self) -> dict[str, Handler]:
        return {"bridges": self._section}

    def finish(self) -> None:
        self.references.check()

    def finish_own(self) -> None:
        """Completes the bridges after atalanta.toml was read: a Python function may replace a Java class."""
        own = self.configuration.own.bridges
        names = [config.name for config in self.configuration.bridges]
        for name in own:
            if name not in names:
                hint = nearest(name, names) or "it has no effect"
                self.report.warnings.append(
                    f"atalanta.toml: [bridges.{name}]: there is no bridge of that name ({hint})"
                )
        for config in self.configuration.bridges:
            if config.has_default_user:
                file, line = self.configuration.position("bridge", config.name)
                self.report.warnings.append(f"{file}:{line}: bridge '{config.name}': {WITHOUT_USER}")
        for node, config in self.transformers:
            named = own.get(config.name)
            if named is None or named.transformer is None:
                self.report.problem(
                    node.file,
                    node.line,
                    f"transformer '{config.transformer_class}' is not known: Java classes cannot be loaded",
                    f"{ADD_HEADERS}, or a Python function as `transformer` of [bridges.{config.name}] in atalanta.toml",
                )

    def _section(self, section: XmlElement) -> None:
        self.reader.read(section, [], {"bridge": self._bridge})

    def _bridge(self, node: XmlElement) -> None:
        config = CoreBridgeConfig()
        handlers: dict[str, Handler] = {
            "filter": lambda child: self._filter(child, config),
            "transformer": lambda child: self._transformer(child, config),
            "transformer-class-name": lambda child: self._class_name(child, config),
            "static-connectors": lambda child: self._static(child, config),
            "discovery-group-ref": lambda child: self._discovery(child, config),
        }
        self.reader.read(node, [into(config)], handlers)
        why = self._missing(config)
        if why:
            self.report.problem(node.file, node.line, why)
            return
        self.configuration.positions["bridge", config.name] = (node.file, node.line)
        self.configuration.bridges.append(config)

    def _missing(self, config: CoreBridgeConfig) -> str:
        if not config.name:
            return "a <bridge> needs a name"
        if any(known.name == config.name for known in self.configuration.bridges):
            return f"bridge '{config.name}' is given twice"
        if not config.queue_name:
            return f"bridge '{config.name}' needs a <queue-name>"
        if config.static_connectors and config.discovery_group is not None:
            return f"bridge '{config.name}' has static connectors and a discovery group: keep one of them"
        if not config.static_connectors and config.discovery_group is None:
            return f"bridge '{config.name}' needs <static-connectors> or a <discovery-group-ref>"
        return ""

    def _filter(self, node: XmlElement, config: CoreBridgeConfig) -> None:
        config.filter_text = read_filter(self.reader, node)

    def _transformer(self, node: XmlElement, config: CoreBridgeConfig) -> None:
        read_transformer(
            self.reader, node, config.transformer_properties, lambda name: self._class_name(name, config)
        )

    def _class_name(self, node: XmlElement, config: CoreBridgeConfig) -> None:
        name = node.text.strip()
        if not name:
            return
        config.transformer_class = name
        if name != ADD_HEADERS:
            self.transformers.append((node, config))

    def _static(self, node: XmlElement, config: CoreBridgeConfig) -> None:
        def connector(child: XmlElement) -> None:
            name = self.references.connector(child)
            if name:
                config.static_connectors.append(name)

        self.reader.read(node, [], {"connector-ref": connector})

    def _discovery(self, node: XmlElement, config: CoreBridgeConfig) -> None:
        config.discovery_group = self.references.discovery_group(node) or config.discovery_group
