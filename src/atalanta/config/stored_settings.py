"""The file of the settings that management operations made, in the data folder: `management-settings.xml`.

It is written like the sections `<address-settings>` and `<security-settings>` of broker.xml. Artemis keeps such
settings in its bindings journal (PersistedAddressSettingJSON, PersistedSecuritySetting).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report
from atalanta.config.sections.addresses import AddressSections
from atalanta.config.xml.reader import XmlReader
from atalanta.config.xml.text import xml_text
from atalanta.config.xml.tree import FILE_BYTES_MAX, TreeReader, XmlElement
from atalanta.files.replace import replace_file
from atalanta.kernel.settings.broker_config import BrokerConfig, StoredSettings
from atalanta.kernel.settings.settings_change import SECURITY_SETTING, SettingsChange

STORED_SETTINGS_NAME: Final = "management-settings.xml"
ROOT: Final = "core"
COMMENT: Final = (
    "Settings made by management operations. Each replaces that of broker.xml with the same match. Change this file "
    "only while the node is stopped."
)
REMEDY: Final = "repair it, or move the file away to start with the settings of broker.xml alone"


class StoredSettingsFile:
    """The settings in the file `path`, or in memory for a node without a data folder (None)."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._memory = XmlElement(ROOT, "", "", 0)

    @classmethod
    def of(cls, configuration: Configuration) -> StoredSettingsFile:
        """Returns the file of a configured node."""
        persistent = configuration.broker.persistence_enabled
        return cls(configuration.journal_folder / STORED_SETTINGS_NAME if persistent else None)

    def read(self, configuration: Configuration) -> None:
        """Adds the settings to the configuration. ConfigError names file, line and remedy."""
        report = Report()
        sections = _sections(self._tree(report), configuration, report)
        self._check(report)
        configuration.broker.stored = _stored(sections)
        for node, match in sections.matches:
            configuration.positions["stored", f"{node.name} '{match}'"] = (node.file, node.line)
        for key, place in sections.configuration.positions.items():
            configuration.positions.setdefault(key, place)

    def change(self, configuration: Configuration, change: SettingsChange) -> StoredSettings:
        """Writes the file with the change and returns all its settings. ConfigError, and then nothing is changed."""
        report = Report()
        root = self._tree(report)
        self._check(report)
        name = f"{change.element}s"
        for present in root.all(name):
            present.children = [
                each for each in present.children if each.attributes.get("match") != change.match
            ]
        if change.values is not None:
            section = next(root.all(name), None)
            if section is None:
                section = XmlElement(name, "", "", 0)
                root.children.append(section)
            section.children.append(_element(change, report))
        sections = _sections(root, configuration, report)
        self._check(report)
        self._write(root, change, report)
        report.check()
        return _stored(sections)

    def _tree(self, report: Report) -> XmlElement:
        """Returns the root of the file, an empty one without a file."""
        path = self.path
        if path is None:
            return replace(self._memory, children=[replace(each) for each in self._memory.children])
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return XmlElement(ROOT, "", str(path), 0)
        except OSError:
            pass  # a problem of the reader
        return TreeReader(report, {}).read(path) or XmlElement(ROOT, "", str(path), 0)

    def _check(self, report: Report) -> None:
        """Raises ConfigError with all problems, and the remedy for those of the file."""
        for index, each in enumerate(report.problems):
            if each.file == str(self.path):
                hint = f"{each.hint}; {REMEDY}" if each.hint else REMEDY
                report.problems[index] = replace(each, hint=hint)
        report.check()

    def _write(self, root: XmlElement, change: SettingsChange, report: Report) -> None:
        """Replaces the file durably. A problem: it cannot be written, or could not be read again."""
        path = self.path
        if path is None:
            self._memory = root
            return
        try:
            data = xml_text(root, COMMENT).encode("utf-8")
            if len(data) > FILE_BYTES_MAX:
                raise ValueError(f"all stored settings are larger than {FILE_BYTES_MAX} bytes")
            replace_file(path, data)
        except ValueError as error:  # a character that XML does not have
            report.problem(_place(change), 0, str(error))
        except OSError as error:
            report.problem(str(path), 0, f"cannot be written: {error.strerror}")


def _sections(root: XmlElement, configuration: Configuration, report: Report) -> AddressSections:
    """Reads the tree like the sections of broker.xml."""
    broker = configuration.broker
    own = BrokerConfig(wildcard=broker.wildcard, literal_match_markers=broker.literal_match_markers)
    if root.name != ROOT:
        report.problem(root.file, root.line, f"the root element is <{root.name}>, not <{ROOT}>")
    sections = AddressSections(Configuration(Path(root.file), configuration.instance, own), report)
    readers = sections.handlers()
    handlers = {name: readers[name] for name in ("address-settings", "security-settings")}
    XmlReader(report).read(root, [], handlers)
    sections.finish()
    return sections


def _stored(sections: AddressSections) -> StoredSettings:
    return StoredSettings(sections.broker.address_settings, sections.broker.security_rules)


def _place(change: SettingsChange) -> str:
    return f"{change.element} '{change.match}'"


def _element(change: SettingsChange, report: Report) -> XmlElement:
    """Returns the element of a new setting. Placeholders are refused: a reader of the file would replace them."""
    place = _place(change)
    made = XmlElement(change.element, "", place, 0, {"match": change.match})
    for name, text in (change.values or {}).items():
        if change.element == SECURITY_SETTING:
            child = XmlElement("permission", "", place, 0, {"type": name, "roles": text})
        else:
            child = XmlElement(name, "", place, 0, {}, text)
        made.children.append(child)
    if any("${" in text for text in (change.match, *(change.values or {}).values())):
        report.problem(place, 0, "'${' cannot be kept")
    return made
