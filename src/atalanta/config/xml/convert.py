"""WildFly's standalone.xml, ActiveMQ Classic's activemq.xml and a broker.xml of version 1 as the text of a broker.xml,
with a list of what is left out."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from os.path import dirname, realpath
from pathlib import Path
from typing import Final

from atalanta.config.activemq.reader import DELETE_ALL, classic_broker
from atalanta.config.activemq.user_files import user_files
from atalanta.config.configuration import instance_folder
from atalanta.config.native.networks import networks_text
from atalanta.config.native.toml_file import NAME as OWN_FILE
from atalanta.config.problems import Report, grouped
from atalanta.config.version_1.conversion import version_2
from atalanta.config.wildfly.reader import broker_tree
from atalanta.config.xml.text import xml_text
from atalanta.config.xml.tree import TreeReader, XmlElement, is_classic, is_wildfly, made
from atalanta.kernel.security.security import DEFAULT_CLUSTER_USER, is_public_password

CORE_NAMESPACE: Final = "urn:activemq:core"
NAMESPACE: Final = "urn:activemq"
CLUSTER_USER: Final = "cluster-user"
CLUSTER_PASSWORD: Final = "cluster-password"
NEW_CLUSTER_USER: Final = "cluster"  # as `atalanta create` calls it
SECRET_BYTES: Final = 18


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
    path: Path, values: Mapping[str, str], from_command_line: bool = False, alone: bool = False
) -> Converted:
    """The file `path` as a broker.xml. ConfigError where it cannot be read, or is of neither kind.

    Expressions (`${…}`) are replaced by `values` (the environment) or by their defaults. `from_command_line`:
    the file may be a pipe, "-" is stdin. `alone`: also an activemq.xml that says that there are other brokers, in a way
    that is not known here; what says so is left out then.
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
    configuration: XmlElement | None = None
    if is_wildfly(root):
        wildfly = broker_tree(root, report)
        if wildfly is not None:
            configuration = wildfly.configuration
            what = "the JGroups stack that it names"
            beside = [Beside(name, text, what) for name, text in wildfly.stacks.items()]
    elif is_classic(root):
        classic = classic_broker(root, path, known, report)
        if classic is not None:
            configuration = classic.configuration
            report.settle_others(alone, f"`atalanta convert --alone {shlex.quote(str(path))}`")
            if classic.deletes_messages:
                why = "a broker.xml has no such option: messages are kept at a start"
                report.without_effect(root.file, root.line, DELETE_ALL, why, True)
            files = {} if classic.logins is None else user_files(classic.logins, path, report)
            beside = [Beside(name, text, "users of the node", True) for name, text in files.items()]
            networks = networks_text(classic.networks.connectors)
            if networks:
                beside.append(Beside(OWN_FILE, networks, "the networks of brokers", True))
    else:
        return Converted(*version_1_file(root, path, report))
    report.check()
    assert configuration is not None
    for core in configuration.children:
        give_cluster_user(core)
    text = xml_text(in_namespaces(configuration), f"written from {path.name}")
    return Converted(text, grouped(report.unsupported), beside)


def converted_tree(
    path: Path, values: Mapping[str, str], contents: Mapping[Path, bytes] | None = None
) -> XmlElement | None:
    """Returns the tree of a broker.xml that a file of WildFly or Classic stands for; None if it cannot be read.

    `contents`: see read_broker_xml.
    """
    report = Report()
    root = TreeReader(report, values, contents=contents).read(path)
    if root is None:
        return None
    if is_classic(root):
        classic = classic_broker(root, path, values, report)
        return None if classic is None else classic.configuration
    wildfly = broker_tree(root, report)
    return None if wildfly is None else wildfly.configuration


def version_1_file(root: XmlElement, path: Path, report: Report) -> tuple[str, list[str]]:
    """Returns the text of a broker.xml of version 1 as version 2 has it, and lines for people. Raises ConfigError."""
    found = version_2(root, report) if root.name in ("configuration", "core") else None
    if found is None:
        hint = "such files are converted to a broker.xml, and not the other way"
        text = f"<{root.name}> is not a standalone.xml of WildFly, an activemq.xml, or a broker.xml of version 1"
        report.problem(root.file, root.line, text, hint)
    report.check()
    assert found is not None
    return xml_text(found.root, f"written from {path.name}"), [*grouped(report.unsupported), *found.differs]


def give_cluster_user(core: XmlElement) -> None:
    """Gives a node that is alone a cluster user with a generated password, if the file has none that is a secret.

    The members of a cluster need the same one: the file of a member keeps what it has, and `atalanta check` warns of
    the default.
    """
    given = {child.name: child.text for child in core.children if child.name in (CLUSTER_USER, CLUSTER_PASSWORD)}
    if any(section.children for section in core.all("cluster-connections")):
        return
    if not is_public_password(given.get(CLUSTER_PASSWORD, "")):
        return
    user = given.get(CLUSTER_USER, DEFAULT_CLUSTER_USER)
    core.children = [child for child in core.children if child.name not in (CLUSTER_USER, CLUSTER_PASSWORD)]
    core.children.append(made(core, CLUSTER_USER, NEW_CLUSTER_USER if user == DEFAULT_CLUSTER_USER else user))
    core.children.append(made(core, CLUSTER_PASSWORD, secrets.token_urlsafe(SECRET_BYTES)))


def in_namespaces(configuration: XmlElement) -> XmlElement:
    """Returns the tree with the namespaces of Artemis' schema."""
    configuration.namespace = NAMESPACE
    for core in configuration.children:
        core.namespace = CORE_NAMESPACE
    return configuration
