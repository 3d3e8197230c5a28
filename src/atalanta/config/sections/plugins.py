"""The section `<broker-plugins>`: Artemis' notification plugin is supported, other plugins are Java classes."""

from __future__ import annotations

from atalanta.config.problems import Report
from atalanta.config.xml.reader import Handler, XmlReader
from atalanta.config.xml.tree import XmlElement
from atalanta.kernel.settings.notification_options import PLUGIN, NotificationOptions


class PluginSection:
    """Reads the options of the notification plugin; other plugins are listed as without effect."""

    def __init__(self, options: NotificationOptions, report: Report) -> None:
        self.options = options
        self.report = report
        self.reader = XmlReader(report)

    def handlers(self) -> dict[str, Handler]:
        return {"broker-plugins": self._section}

    def _section(self, section: XmlElement) -> None:
        self.reader.read(section, [], {"broker-plugin": self._plugin})

    def _plugin(self, node: XmlElement) -> None:
        properties: list[XmlElement] = []
        self.reader.read(node, [], {"property": properties.append}, attributes=("class-name",))
        name = node.attributes.get("class-name", "")
        if name != PLUGIN:
            why = "Java classes cannot be loaded"
            self.report.without_effect(node.file, node.line, f"broker-plugin {name}", why, True)
            return
        for child in properties:
            self.reader.read(child, [], attributes=("key", "value"))
            key = child.attributes.get("key", "")
            on = child.attributes.get("value", "").lower() == "true"
            if not self.options.switch(key, on):
                self.report.without_effect(child.file, child.line, key, "this notification is not sent", True)
