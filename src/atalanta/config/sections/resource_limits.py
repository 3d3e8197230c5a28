"""The section `<resource-limit-settings>` of broker.xml."""

from __future__ import annotations

from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report
from atalanta.config.xml.reader import Handler, XmlReader, into
from atalanta.config.xml.tree import XmlElement
from atalanta.kernel.security.resource_limits import ResourceLimit


class LimitSection:
    """Reads the limits of single users into the broker's configuration."""

    def __init__(self, configuration: Configuration, report: Report) -> None:
        self.limits = configuration.broker.resource_limits
        self.report = report
        self.reader = XmlReader(report)

    def handlers(self) -> dict[str, Handler]:
        return {"resource-limit-settings": self._section}

    def _section(self, section: XmlElement) -> None:
        self.reader.read(section, [], {"resource-limit-setting": self._limit})

    def _limit(self, node: XmlElement) -> None:
        limit = ResourceLimit()
        self.reader.read(node, [into(limit)])
        if not limit.match:
            why = "a <resource-limit-setting> needs a match, the name of a user"
            self.report.problem(node.file, node.line, why)
        elif any(known.match == limit.match for known in self.limits):
            self.report.problem(node.file, node.line, f"user '{limit.match}' is given twice")
        else:
            self.limits.append(limit)
