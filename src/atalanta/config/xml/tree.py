"""XML files as plain nodes with file and line.

lxml parses, without DTDs, entities and network. XInclude takes only local files below the folder of the first
file. Placeholders are replaced here, so other readers never see them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os.path import realpath
from pathlib import Path
from typing import Any, Final

from atalanta.config.problems import Report
from atalanta.config.xml.properties import ExpressionValues, substitute
from atalanta.files.regular import read_named, read_regular
from atalanta.files.xml import XmlError, xml_root

FILE_BYTES_MAX: Final = 16 * 1024 * 1024
INCLUDE_DEPTH_MAX: Final = 10
INCLUDES_MAX: Final = 200  # files included in one configuration
ALL_BYTES_MAX: Final = 64 * 1024 * 1024  # total size of all files
XINCLUDE: Final = "http://www.w3.org/2001/XInclude"
WILDFLY_ROOTS: Final = ("server", "subsystem", "domain")
CLASSIC_NAMESPACES: Final = {
    "beans": ("http://www.springframework.org/schema/beans",),
    "broker": ("http://activemq.apache.org/schema/core", "http://activemq.org/config/1.0"),
}
FOREIGN_ATTRIBUTES: Final = (
    "{http://www.w3.org/2001/XMLSchema-instance}",
    "{http://www.w3.org/XML/1998/namespace}",
)


@dataclass
class XmlElement:
    """An element: `name` is without namespace, `text` is the text outside its children."""

    name: str
    namespace: str
    file: str
    line: int
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list[XmlElement] = field(default_factory=list)

    def all(self, name: str) -> Iterator[XmlElement]:
        return (child for child in self.children if child.name == name)


def below(node: XmlElement) -> Iterator[XmlElement]:
    """Iterates over `node` and all its descendants, in the order of the file."""
    yield node
    for child in node.children:
        yield from below(child)


def made(source: XmlElement, tag: str, text: str = "", /, **attributes: str) -> XmlElement:
    """Creates an element of broker.xml with the position of `source`, an element of another kind of file."""
    return XmlElement(tag, "", source.file, source.line, attributes, text)


class TreeReader:
    """Reads one file with its includes. Problems go to the report; `read` returns None without a root element."""

    def __init__(
        self,
        report: Report,
        values: Mapping[str, str],
        from_command_line: bool = False,
        contents: Mapping[Path, bytes] | None = None,
    ) -> None:
        self.report = report
        self.values = values
        self.contents = contents or {}  # of files that are read as if they had these
        self.from_command_line = from_command_line  # the main file may be a pipe
        self.folder = Path()
        self.includes = 0
        self.bytes = 0  # total size read so far
        self.within: list[Path] = []  # the file being read, and the files that include it
        self.keep_unknown = False  # expressions without a value stay unchanged
        self.files: list[Path] = []  # all files that were read

    def read(self, path: Path) -> XmlElement | None:
        self.folder = Path(realpath(path.parent))
        root = self._parse(path)
        if root is None:
            return None
        self.within = [Path(realpath(path))]
        # In the files of WildFly and of ActiveMQ Classic some expressions do not concern this broker; their readers
        # check those that do.
        namespace, name = names_of(root)
        wildfly = namespace.startswith("urn:jboss:domain:")
        self.keep_unknown = wildfly or has_classic_names(name, namespace)
        if self.keep_unknown:
            self.values = ExpressionValues(self.values, system_properties(root) if wildfly else {})
        return self._node(root, path, 0)

    def _data(self, path: Path, included: bool) -> bytes | str:
        """Returns the contents of the file, or the reason why it is not read."""
        self.files.append(path)
        self.report.files.append(path)
        read = read_named if self.from_command_line and not included else read_regular
        data = self.contents.get(path)
        if data is None:
            try:
                data = read(path, min(FILE_BYTES_MAX, ALL_BYTES_MAX - self.bytes))
            except OSError as error:
                return f"cannot be read: {error.strerror}"
        if len(data) > FILE_BYTES_MAX:
            return f"the file is larger than {FILE_BYTES_MAX} bytes"
        self.bytes += len(data)
        if self.bytes > ALL_BYTES_MAX:
            self.bytes = ALL_BYTES_MAX
            return f"all files together are larger than {ALL_BYTES_MAX} bytes"
        return data

    def _parse(self, path: Path, position: tuple[str, int] | None = None) -> Any:
        """Returns the root element; `position` is file and line of the include."""
        shown = str(path)
        data = self._data(path, position is not None)
        if isinstance(data, str):
            if position is None:
                self.report.problem(shown, 0, data)
            else:
                self.report.problem(*position, f"the included {path}: {data}")
            return None
        try:
            return xml_root(data)
        except XmlError as error:
            self.report.problem(shown, error.line, error.text)
            return None

    def _node(self, element: Any, path: Path, depth: int) -> XmlElement:
        namespace, name = names_of(element)
        line = element.sourceline or 0
        node = XmlElement(name, namespace, str(path), line)
        for key, value in element.attrib.items():
            attribute = str(key)
            if not attribute.startswith(FOREIGN_ATTRIBUTES):
                node.attributes[attribute] = self._replaced(str(value), node)
        text = element.text or ""
        for child in element:
            if not isinstance(child.tag, str):
                self.report.problem(
                    str(path), child.sourceline or line, "an entity is not allowed here"
                )
            elif child.tag == f"{{{XINCLUDE}}}include":
                node.children.extend(self._included(child, path, depth))
            else:
                node.children.append(self._node(child, path, depth))
            text += child.tail or ""
        node.text = self._replaced(text, node).strip()
        return node

    def _replaced(self, text: str, node: XmlElement) -> str:
        if "${" not in text:
            return text
        try:
            return substitute(text, self.values)
        except KeyError as missing:
            if self.keep_unknown:
                return text
            name = missing.args[0]
            self.report.problem(
                node.file,
                node.line,
                f"'${{{name}}}' has no value in <{node.name}>",
                f"set the environment variable {name}, or write ${{{name}:default}}",
            )
        except ValueError as error:
            self.report.problem(node.file, node.line, f"in <{node.name}>: {error}")
        return ""

    def _included(self, element: Any, path: Path, depth: int) -> list[XmlElement]:
        line = element.sourceline or 0
        text = self._include_problem(element, path, depth)
        if text:
            self.report.problem(str(path), line, text)
            return []
        self.includes += 1
        target = Path(realpath(path.parent / element.get("href", "")))
        if not target.is_relative_to(self.folder):
            self.report.problem(
                str(path),
                line,
                f"'{element.get('href')}' lies outside the folder of the configuration",
            )
            return []
        if target in self.within:
            self.report.problem(str(path), line, f"{target.name} includes itself")
            return []
        root = self._parse(target, (str(path), line))
        if root is None:
            return []
        self.within.append(target)
        found = self._node(root, target, depth + 1)
        self.within.pop()
        return [found]

    def _include_problem(self, element: Any, path: Path, depth: int) -> str:
        href = element.get("href", "")
        if not href or "://" in href or href.startswith("file:"):
            return f"an include names a local file, not '{href}'"
        if element.get("parse", "xml") != "xml" or element.get("xpointer") is not None:
            return "an include takes whole XML files only"
        if depth >= INCLUDE_DEPTH_MAX or self.includes >= INCLUDES_MAX:
            return "too many includes"
        return ""


def names_of(element: Any) -> tuple[str, str]:
    """Returns namespace ("" without one) and name. A namespace may contain any text, even "}", which lxml's QName
    refuses."""
    namespace, _, name = str(element.tag).rpartition("}")
    return namespace[1:], name


def system_properties(root: Any) -> dict[str, str]:
    """Returns the `<system-properties>` of a standalone.xml; expressions are not replaced."""
    return {
        str(each.get("name", "")): str(each.get("value", ""))
        for section in root
        if isinstance(section.tag, str) and names_of(section)[1] == "system-properties"
        for each in section
        if isinstance(each.tag, str)
    }


def is_wildfly(root: XmlElement) -> bool:
    """Returns whether `root` is a standalone.xml of WildFly, or its subsystem alone."""
    return root.name in WILDFLY_ROOTS and root.namespace.startswith("urn:jboss:domain:")


def has_classic_names(name: str, namespace: str) -> bool:
    """Returns whether a root element of this name is that of ActiveMQ Classic's activemq.xml."""
    return name in CLASSIC_NAMESPACES and namespace.startswith(CLASSIC_NAMESPACES[name])


def is_classic(root: XmlElement) -> bool:
    """Returns whether `root` is the `<beans>` of an activemq.xml, or its `<broker>` alone."""
    return has_classic_names(root.name, root.namespace)
