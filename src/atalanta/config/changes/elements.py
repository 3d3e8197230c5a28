"""The elements that management may change, as they stand in the files, with who uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from atalanta.cluster.networks.config import NetworkConnectorConfig
from atalanta.config.changes.address_text import address_values
from atalanta.config.changes.kinds import (
    DISCOVERY_GROUP,
    HIDDEN,
    STATIC_CONNECTORS,
    ElementKind,
    Parameter,
    classic_kinds,
    default_text,
    is_secret,
    kinds,
)
from atalanta.config.changes.request import Change
from atalanta.config.native.networks import DESTINATIONS, QUEUE, TOPIC
from atalanta.config.problems import Report
from atalanta.config.xml.tree import TreeReader, XmlElement
from atalanta.wire.uri import UriError, masked

# Parameters that name an element of another kind.
REFERENCES: Final = {
    ("broadcast-group", "connector-ref"): "connector",
    ("cluster-connection", "connector-ref"): "connector",
    ("cluster-connection", STATIC_CONNECTORS): "connector",
    ("cluster-connection", DISCOVERY_GROUP): "discovery-group",
    ("bridge", STATIC_CONNECTORS): "connector",
    ("bridge", DISCOVERY_GROUP): "discovery-group",
    ("connection-router", f"pool.{STATIC_CONNECTORS}"): "connector",
    ("connection-router", f"pool.{DISCOVERY_GROUP}"): "discovery-group",
    ("connection-router", "pool.cluster-connection"): "cluster-connection",
    ("acceptor", "clusterConnection"): "cluster-connection",
    ("acceptor", "router"): "connection-router",
}
FILE: Final = "file"
RUNTIME: Final = "runtime"


@dataclass
class ConfigurationElement:
    """One element. `file` is the name of the file that it stands in; `values` are texts, lists joined by commas."""

    kind: str
    name: str
    file: str
    line: int
    values: dict[str, str] = field(default_factory=dict)
    used_by: list[str] = field(default_factory=list)
    origin: str = FILE
    fixed: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.name

    def as_json(self) -> dict[str, object]:
        """Returns the element for consoles."""
        return {
            "kind": self.kind,
            "name": self.name,
            "file": self.file,
            "line": self.line,
            "values": self.values,
            "from": self.origin,
            "state": "",
            "used_by": self.used_by,
            "fixed": self.fixed,
        }


class WrittenTree(TreeReader):
    """Reads the files as they are written: placeholders are not replaced."""

    def _replaced(self, text: str, node: XmlElement) -> str:
        return text


def written_tree(path: Path, contents: Mapping[Path, bytes] | None = None) -> XmlElement | None:
    """Returns the tree of a broker.xml with its includes, with placeholders as they are written."""
    return WrittenTree(Report(), {}, contents=contents).read(path)


def core_of(root: XmlElement) -> XmlElement | None:
    """Returns the `<core>` of a tree."""
    return root if root.name == "core" else next(root.all("core"), None)


def classic_elements(root: XmlElement) -> list[ConfigurationElement]:
    """Returns the network and transport connectors of an activemq.xml, as they are written."""
    broker = root if root.name == "broker" else next(root.all("broker"), None)
    if broker is None:
        return []
    return [_element(each, kind) for kind in classic_kinds().values() for each in _nodes(broker, kind)]


def elements_of(
    root: XmlElement | None, networks: list[NetworkConnectorConfig], file: str, missing: Sequence[Change] = ()
) -> list[ConfigurationElement]:
    """Returns the elements of a tree and the network connectors, in the order of the kinds and of the file; `file` is
    that of the network connectors. `missing` are removed ones, which may have users yet."""
    core = None if root is None else core_of(root)
    found: list[ConfigurationElement] = []
    for kind in kinds().values():
        if kind.table:
            found += [_network(each, kind, file) for each in networks]
        elif core is not None:
            found += [_element(each, kind) for each in _nodes(core, kind)]
    present = {each.key for each in found}
    absent = [each for each in missing if (each.kind, each.name) not in present]
    found += [ConfigurationElement(each.kind, each.name, "", 0) for each in absent]
    _tell_users(found)
    return found


def _nodes(core: XmlElement, kind: ElementKind) -> list[XmlElement]:
    sections = list(core.all(kind.section)) if kind.section else [core]
    if kind.without_section:
        sections.append(core)
    names = (kind.tag, *kind.also)
    return [child for section in sections for child in section.children if child.name in names]


def _element(node: XmlElement, kind: ElementKind) -> ConfigurationElement:
    name = node.attributes.get(kind.key, "")
    found = ConfigurationElement(kind.name, name, Path(node.file).name, node.line)
    if kind.uri:
        found.values = _address(node, kind)
    elif node.name != kind.tag or ("uri" in node.attributes and kind.parameter("uri") is None):
        found.values = {"uri": masked(node.attributes.get("address", node.attributes.get("uri", "")))}
    if not kind.uri:
        for parameter in kind.parameters:
            text = _text(node, parameter)
            if text is not None:
                hides = is_secret(parameter.name) and text
                found.values[parameter.name] = HIDDEN if hides else masked(text) if "://" in text else text
    return found


def _text(node: XmlElement, parameter: Parameter) -> str | None:
    """Returns the value of a parameter in an element; None if it is not there."""
    place = parameter.place
    parent: XmlElement | None = node
    for name in place.inside:
        parent = None if parent is None else next(parent.all(name), None)
    if parent is None:
        return None
    if not place.element:
        return parent.attributes.get(place.attribute)
    children = [each for each in parent.children if each.name in (place.element, *place.also)]
    if place.key[0]:
        children = [each for each in children if each.attributes.get(place.key[0]) == place.key[1]]
    if place.flag:
        return "true" if children else None
    if place.many:
        names = [each.text or each.attributes.get("connector-name", "") for each in children]
        return ",".join(names) if children or place.inside else None
    if not children:
        return None
    return children[0].attributes.get(place.attribute, "") if place.attribute else children[0].text


def _address(node: XmlElement, kind: ElementKind) -> dict[str, str]:
    """Returns host, port and parameters of an acceptor or connector; those of the old form with `<param>` as well."""
    if node.children:
        given = {
            each.attributes.get("key", ""): each.attributes.get("value", "")
            for each in node.children
            if each.name == "param"
        }
    else:
        try:
            given = address_values(node.text)
        except UriError:
            given = {"uri": masked(node.text)}
    values = {kind.key: node.attributes.get(kind.key, "")}
    for name, text in given.items():
        values[name] = HIDDEN if is_secret(name) and text else text
    return values


def _network(config: NetworkConnectorConfig, kind: ElementKind, file: str) -> ConfigurationElement:
    values = {kind.key: config.name}
    for entry in fields(NetworkConnectorConfig):
        value = getattr(config, entry.name)
        if entry.metadata and value != entry.default:
            name = str(entry.metadata["xml"])
            text = ("true" if value else "false") if isinstance(value, bool) else str(value)
            values[name] = HIDDEN if is_secret(name) and text != default_text(entry) else masked(text)
    for name, attribute in DESTINATIONS.items():
        names = [(QUEUE if each.queue else TOPIC) + each.name for each in getattr(config, attribute)]
        if names:
            values[name] = ",".join(names)
    return ConfigurationElement(kind.name, config.name, file, 0, values)


def _tell_users(found: list[ConfigurationElement]) -> None:
    """Puts into each element who uses it."""
    by_key: dict[tuple[str, str], ConfigurationElement] = {}
    for each in found:
        by_key.setdefault(each.key, each)
    for each in found:
        for (kind, parameter), target in REFERENCES.items():
            if kind != each.kind:
                continue
            for name in each.values.get(parameter, "").split(","):
                used = by_key.get((target, name.strip()))
                user = f"{each.kind} {each.name}"
                if used is not None and user not in used.used_by:
                    used.used_by.append(user)
