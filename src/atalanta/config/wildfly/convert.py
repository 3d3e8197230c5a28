"""WildFly's standalone.xml as the text of a broker.xml, with a list of what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os.path import dirname, realpath
from pathlib import Path

from atalanta.config.configuration import instance_folder
from atalanta.config.problems import Report, grouped
from atalanta.config.wildfly.reader import broker_tree
from atalanta.config.xml.text import xml_text
from atalanta.config.xml.tree import Node, TreeReader, is_wildfly

CORE_NAMESPACE = "urn:activemq:core"
NAMESPACE = "urn:activemq"


@dataclass(frozen=True)
class Converted:
    """The broker.xml's text; `left_out` are lines for people; `stacks` are JGroups stack files to stand beside it."""

    text: str
    left_out: list[str]
    stacks: dict[str, str] = field(default_factory=dict)


def convert_file(
    path: Path, values: Mapping[str, str], from_command_line: bool = False
) -> Converted:
    """The standalone.xml `path` as a broker.xml. ConfigError where it cannot be read, or is not a standalone.xml.

    Expressions (`${…}`) are replaced by `values` (the environment) or by their defaults. `from_command_line`:
    the file may be a pipe, "-" is stdin.
    """
    report = Report()
    known = {
        "artemis.instance": str(instance_folder(path)),
        "artemis.instance.etc": dirname(realpath(path)),
        **values,
    }
    root = TreeReader(report, known, from_command_line).read(path)
    report.check()
    assert root is not None
    if not is_wildfly(root):
        hint = "a standalone.xml of WildFly is converted to a broker.xml, and not the other way"
        report.problem(root.file, root.line, f"<{root.name}> is not a standalone.xml of WildFly", hint)
    report.check()
    made = broker_tree(root, report)
    report.check()
    assert made is not None
    text = xml_text(in_namespaces(made.configuration), f"written from {path.name}")
    return Converted(text, grouped(report.unsupported), made.stacks)


def in_namespaces(configuration: Node) -> Node:
    """Returns the tree with the namespaces of Artemis' schema."""
    configuration.namespace = NAMESPACE
    for core in configuration.children:
        core.namespace = CORE_NAMESPACE
    return configuration
