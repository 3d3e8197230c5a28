"""Nodes from an activemq.xml, in memory, and what their clients see with and without elements that are harmless."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from atalanta.config.configuration import Configuration
from atalanta.config.users.users import read_security
from atalanta.kernel.settings.effective_settings import settings_repository
from tests.config.activemq.classic_files import classic_file, findings, read
from tests.wire.classic_server import ThreeProtocols

CONNECTOR = '<transportConnector name="openwire" uri="{}://0.0.0.0:61616{}" {}/>'
Scenario = Callable[[ThreeProtocols], Any]


class ClassicFile:
    """What stands in an activemq.xml. `policy` and `topic`: attributes and elements of the policies for `>`."""

    def __init__(
        self,
        attributes: str = "",
        inside: str = "",
        policy: str = "",
        children: str = "",
        topic: str = "",
        of_topic: str = "",
        connector: str = "",
        options: str = "",
        scheme: str = "tcp",
    ) -> None:
        self.attributes = attributes
        self.inside = (
            f"{inside}<transportConnectors>{CONNECTOR.format(scheme, options, connector)}</transportConnectors>"
            "<destinationPolicy><policyMap><policyEntries>"
            f'<policyEntry queue="&gt;" {policy}>{children}</policyEntry>'
            f'<policyEntry topic="&gt;" {topic}>{of_topic}</policyEntry>'
            "</policyEntries></policyMap></destinationPolicy>"
        )

    def read(self, folder: Path) -> Configuration:
        return read(classic_file(folder, self.inside, self.attributes))

    def node(self, folder: Path) -> ThreeProtocols:
        """A node with the broker, the users and the acceptor of the file."""
        configuration = self.read(folder)
        broker = configuration.broker
        security = read_security(configuration)
        made = ThreeProtocols(broker, settings_repository(broker), configuration.acceptors[0], security=security)
        made.broker.resources.create(made.now)
        made.broker.start_timers(made.now)
        made.settle()
        return made


def same(folder: Path, scenario: Scenario, without: ClassicFile, *others: ClassicFile) -> Any:
    """Returns what the clients of a scenario see: it is the same with each of the files, in which nothing is lost."""
    expected = scenario(without.node(folder / "without"))
    for number, each in enumerate(others):
        there = folder / str(number)
        assert scenario(each.node(there)) == expected
        assert lost(each, there) <= lost(without, folder / "without")
    return expected


def lost(file: ClassicFile, folder: Path) -> set[str]:
    """The warnings of a file, without their lines."""
    told = findings(file.read(folder))
    return {each.partition(": ")[2] for each in told if each.startswith("!")}


def warned(folder: Path, file: ClassicFile, name: str) -> bool:
    """Whether a warning names this attribute or element."""
    return any(f" {name}: " in f" {each}" for each in lost(file, folder))


def attributes(names: Iterable[str], value: str) -> str:
    return " ".join(f'{name}="{value}"' for name in names)
