"""A broker.xml as WildFly's standalone.xml and back, as text, with a list of what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os.path import dirname, realpath
from pathlib import Path

from atalanta.config.configuration import instance_folder
from atalanta.config.problems import Report, grouped
from atalanta.config.wildfly.reader import broker_tree, is_wildfly
from atalanta.config.wildfly.writer import subsystem_tree
from atalanta.config.xml_text import xml_text
from atalanta.config.xml_tree import Node, TreeReader

CORE_NAMESPACE = "urn:activemq:core"
NAMESPACE = "urn:activemq"


@dataclass(frozen=True)
class Converted:
    """The other file's text; `left_out` are lines for people; `stacks` are JGroups stack files to stand beside it."""

    text: str
    to_wildfly: bool
    left_out: list[str]
    stacks: dict[str, str] = field(default_factory=dict)


def convert_file(
    path: Path, values: Mapping[str, str], from_command_line: bool = False
) -> Converted:
    """`path` as the file of the other kind. ConfigError where it cannot be read.

    Expressions (`${…}`) are replaced: with `values` (the environment), or with their defaults. `from_command_line`: it
    may be a pipe, "-" is stdin.
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
    stacks: dict[str, str] = {}
    if is_wildfly(root):
        made = broker_tree(root, report)
        stacks = {} if made is None else made.stacks
        comment = f"written from {path.name}"
        text = "" if made is None else xml_text(in_namespaces(made.configuration), comment)
        to_wildfly = False
    else:
        text = xml_text(subsystem_tree(root, report), f"written from {path.name}")
        to_wildfly = True
    report.check()
    return Converted(text, to_wildfly, grouped(report.unsupported), stacks)


def in_namespaces(configuration: Node) -> Node:
    """As Artemis' schema has it."""
    configuration.namespace = NAMESPACE
    for core in configuration.children:
        core.namespace = CORE_NAMESPACE
    return configuration
