"""The element `<manager>` of a replication: Artemis' lock managers, and what they are called here."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from atalanta.config.problems import Report, nearest
from atalanta.config.xml.reader import BadValue, XmlReader, convert
from atalanta.config.xml.tree import XmlElement

if TYPE_CHECKING:
    from atalanta.ha.manager_config import ManagerConfig


class LockManagerReader:
    """Reads the element. A class of somebody else is a problem, unless atalanta.toml names a manager instead."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.reader = XmlReader(report)
        self.unknown: list[XmlElement] = []  # <class-name> elements with other classes

    def read(self, node: XmlElement) -> ManagerConfig | None:
        """Returns the manager of the element; None for an unknown class."""
        # Most nodes have no manager, and a start is faster without its classes.
        from atalanta.ha.manager_config import CLASSES, DEFAULT_CLASS

        names: list[XmlElement] = []
        sections: list[XmlElement] = []
        properties: list[XmlElement] = []
        self.reader.read(node, [], {"class-name": names.append, "properties": sections.append})
        for section in sections:
            self.reader.read(section, [], {"property": properties.append})
        name = names[0].text if names else DEFAULT_CLASS
        described = CLASSES.get(name.rpartition(".")[2])
        if described is None:
            self.unknown.append(names[0])
            return None
        config = described()
        for each in properties:
            self._property(config, each)
        required = fields(described)[0]
        if not getattr(config, required.name):
            self.report.problem(
                node.file, node.line, f"the manager has no property {required.metadata['xml']}",
                required.metadata["why"],
            )  # fmt: skip
        return config

    def finish(self, manager: ManagerConfig | None) -> None:
        """Reports unknown classes, unless another file says which `manager` the node has."""
        if manager is not None or not self.unknown:
            return
        from atalanta.ha.manager_config import CLASSES  # as above

        for node in self.unknown:
            self.report.problem(
                node.file, node.line, f"{node.text} is a Java class, which cannot be loaded",
                f"{', '.join(CLASSES)}, or [ha.manager] in atalanta.toml",
            )  # fmt: skip

    def _property(self, config: Any, node: XmlElement) -> None:
        self.reader.read(node, [], attributes=("key", "value"))
        key, text = (node.attributes.get(name, "") for name in ("key", "value"))
        known = {entry.metadata["xml"]: entry for entry in fields(config)}
        entry = known.get(key)
        if entry is None:
            text = f"unknown property '{key}' of the manager"
            self.report.problem(node.file, node.line, text, nearest(key, known) or ", ".join(known))
            return
        try:
            value = convert(text, entry.metadata)
        except BadValue as error:
            self.report.problem(node.file, node.line, f"{key}: {error}")
            return
        if not entry.metadata["supported"] and value != entry.default:
            self.report.without_effect(node.file, node.line, key, entry.metadata["why"], entry.metadata["named"])
        setattr(config, entry.name, value)
