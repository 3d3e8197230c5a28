"""WildFly's standalone.xml and ActiveMQ Classic's activemq.xml as the text of a broker.xml, with a list of what is left
out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os.path import dirname, realpath
from pathlib import Path
from typing import Final

from atalanta.config.activemq.reader import classic_broker
from atalanta.config.activemq.user_files import user_files
from atalanta.config.configuration import instance_folder
from atalanta.config.native.networks import networks_text
from atalanta.config.native.toml_file import NAME as OWN_FILE
from atalanta.config.problems import Report, grouped
from atalanta.config.wildfly.reader import broker_tree
from atalanta.config.xml.text import xml_text
from atalanta.config.xml.tree import Node, TreeReader, is_classic, is_wildfly

CORE_NAMESPACE: Final = "urn:activemq:core"
NAMESPACE: Final = "urn:activemq"


@dataclass(frozen=True)
class Beside:
    """A file to stand beside the broker.xml; `what` says what it is. `private`: only its owner may read it."""

    name: str
    text: str
    what: str
    private: bool = False


@dataclass(frozen=True)
class Converted:
    """The broker.xml's text; `left_out` are lines for people."""

    text: str
    left_out: list[str]
    beside: list[Beside] = field(default_factory=list)


def convert_file(
    path: Path, values: Mapping[str, str], from_command_line: bool = False
) -> Converted:
    """The file `path` as a broker.xml. ConfigError where it cannot be read, or is of neither kind.

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
    beside: list[Beside] = []
    configuration: Node | None = None
    if is_wildfly(root):
        made = broker_tree(root, report)
        if made is not None:
            configuration = made.configuration
            what = "the JGroups stack that it names"
            beside = [Beside(name, text, what) for name, text in made.stacks.items()]
    elif is_classic(root):
        classic = classic_broker(root, path, known, report)
        if classic is not None:
            configuration = classic.configuration
            files = {} if classic.logins is None else user_files(classic.logins, path, report)
            beside = [Beside(name, text, "users of the node", True) for name, text in files.items()]
            networks = networks_text(classic.networks.connectors)
            if networks:
                beside.append(Beside(OWN_FILE, networks, "the networks of brokers", True))
    else:
        hint = "a file of WildFly or ActiveMQ Classic is converted to a broker.xml, and not the other way"
        text = f"<{root.name}> is not a standalone.xml of WildFly, and not an activemq.xml"
        report.problem(root.file, root.line, text, hint)
    report.check()
    assert configuration is not None
    text = xml_text(in_namespaces(configuration), f"written from {path.name}")
    return Converted(text, grouped(report.unsupported), beside)


def in_namespaces(configuration: Node) -> Node:
    """Returns the tree with the namespaces of Artemis' schema."""
    configuration.namespace = NAMESPACE
    for core in configuration.children:
        core.namespace = CORE_NAMESPACE
    return configuration
