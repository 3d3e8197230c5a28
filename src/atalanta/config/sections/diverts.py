"""The section `<diverts>` of broker.xml."""

from __future__ import annotations

from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report
from atalanta.config.sections.message import read_filter, read_transformer
from atalanta.config.xml.reader import Handler, XmlReader, into
from atalanta.config.xml.tree import XmlElement
from atalanta.kernel.routing.divert_config import ADD_HEADERS, DivertConfig


class DivertSection:
    """Reads diverts into the broker's configuration; a divert that could never work is a problem."""

    def __init__(self, configuration: Configuration, report: Report) -> None:
        self.diverts = configuration.broker.diverts
        self.report = report
        self.reader = XmlReader(report)

    def handlers(self) -> dict[str, Handler]:
        return {"diverts": self._section}

    def _section(self, section: XmlElement) -> None:
        self.reader.read(section, [], {"divert": self._divert})

    def _divert(self, node: XmlElement) -> None:
        config = DivertConfig()
        self.reader.read(
            node,
            [into(config)],
            {
                "filter": lambda child: self._filter(child, config),
                "transformer": lambda child: self._transformer(child, config),
                "transformer-class-name": lambda child: self._class_name(child, child.text.strip()),
            },
        )
        why = self._missing(config)
        if why:
            self.report.problem(node.file, node.line, why)
            return
        if any(known.name == config.name for known in self.diverts):
            self.report.problem(node.file, node.line, f"divert '{config.name}' is given twice")
            return
        self.diverts.append(config)

    def _missing(self, config: DivertConfig) -> str:
        if not config.name:
            return "a <divert> needs a name"
        if not config.address:
            return f"divert '{config.name}' needs an <address>"
        targets = [part.strip() for part in config.forwarding_address.split(",") if part.strip()]
        if not targets:
            return f"divert '{config.name}' needs a <forwarding-address>"
        if any(target.split("::")[0] == config.address for target in targets):
            return f"divert '{config.name}' leads to its own address"
        return ""

    def _filter(self, node: XmlElement, config: DivertConfig) -> None:
        config.filter_text = read_filter(self.reader, node)

    def _transformer(self, node: XmlElement, config: DivertConfig) -> None:
        read_transformer(
            self.reader, node, config.headers, lambda name: self._class_name(name, name.text.strip())
        )

    def _class_name(self, node: XmlElement, name: str) -> None:
        if name != ADD_HEADERS:
            self.report.problem(
                node.file,
                node.line,
                f"transformer '{name}' is not known: Java classes cannot be loaded",
                f"only {ADD_HEADERS} is supported",
            )
