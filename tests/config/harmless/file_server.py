"""A broker made of a file: its settings, its users and its first acceptor, with clients of all protocols."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.users.users import read_security
from atalanta.kernel.settings.effective_settings import settings_repository
from tests.wire.openwire.server.openwire_rig import OpenWireServer
from tests.wire.stomp.stomp_rig import StompServer

PERMISSIONS = (
    "send consume browse manage createAddress deleteAddress createDurableQueue deleteDurableQueue"
    " createNonDurableQueue deleteNonDurableQueue"
).split()
CORE = """<configuration><core><acceptors>{acceptor}</acceptors>{elements}
<security-settings><security-setting match="#">{permissions}</security-setting></security-settings>
</core></configuration>
"""
ACCEPTOR = '<acceptor name="front">tcp://0.0.0.0:1{}</acceptor>'


def broker_file(folder: Path, elements: str = "", parameters: str = "") -> Path:
    """Writes a broker.xml with one acceptor, whose URL ends with `parameters`, and its user admin."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "broker.xml"
    permissions = "".join(f'<permission type="{name}" roles="admin"/>' for name in PERMISSIONS)
    acceptor = ACCEPTOR.format(f"?{parameters}" if parameters else "")
    path.write_text(CORE.format(acceptor=acceptor, elements=elements, permissions=permissions))
    (folder / "artemis-users.properties").write_text("admin = admin\n")
    (folder / "artemis-roles.properties").write_text("admin = admin\n")
    return path


def quiet(path: Path) -> Configuration:
    """Reads a file in which no option is named."""
    configuration = read_broker_xml(path)
    assert [str(each) for each in configuration.unsupported if each.lost] == []
    assert configuration.closed_acceptors == []
    return configuration


class FileServer(StompServer, OpenWireServer):
    """The broker of a file. `configuration` is what was read."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        broker = configuration.broker
        acceptor = configuration.acceptors[0]
        super().__init__(broker, settings_repository(broker), acceptor, read_security(configuration))
        self.broker.resources.create(self.now)
        self.settle()

    def restart(self) -> None:
        super().restart()
        self.broker.resources.create(self.now)
        self.settle()

    def beat(self) -> None:
        StompServer.beat(self)
        OpenWireServer.beat(self)

    def reload(self, configuration: Configuration) -> None:
        """Takes another state of the file, as a running node does."""
        self.config = configuration.broker
        self.broker.reload(
            self.now, configuration.broker, settings_repository(configuration.broker), read_security(configuration)
        )
        self.settle()


Conversation = Callable[[FileServer], object]


def both(folder: Path, conversation: Conversation, elements: str = "", parameters: str = "") -> None:
    """Has a conversation with a broker without and with the elements and parameters: the clients see the same."""
    without = conversation(FileServer(quiet(broker_file(folder / "without"))))
    assert without, "the conversation says what clients see"
    assert conversation(FileServer(quiet(broker_file(folder / "with", elements, parameters)))) == without
