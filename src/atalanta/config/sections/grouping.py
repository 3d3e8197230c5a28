"""The element `<grouping-handler>` of broker.xml."""

from __future__ import annotations

from atalanta.cluster.grouping.config import TYPES, GroupingHandlerConfig
from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report
from atalanta.config.xml.reader import Handler, XmlReader, into
from atalanta.config.xml.tree import XmlElement


class GroupingSection:
    """Reads the only handler into `configuration.grouping`."""

    def __init__(self, configuration: Configuration, report: Report) -> None:
        self.configuration = configuration
        self.report = report
        self.reader = XmlReader(report)

    def handlers(self) -> dict[str, Handler]:
        return {"grouping-handler": self._handler}

    def _handler(self, node: XmlElement) -> None:
        config = GroupingHandlerConfig()
        self.reader.read(node, [into(config)])
        if self.configuration.grouping is not None:
            self.report.problem(node.file, node.line, "a second <grouping-handler>", "keep one")
            return
        if config.type not in TYPES:
            self.report.problem(
                node.file, node.line, "a <grouping-handler> needs a <type>", "LOCAL or REMOTE"
            )
            return
        self.configuration.positions["grouping-handler", config.name] = (node.file, node.line)
        self.configuration.grouping = config
