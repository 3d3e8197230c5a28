"""Two nodes of a cluster for the tests of the console, once for each process of tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from atalanta.client.blocking import connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import PERMISSIONS, cluster, write_broker_xml, write_users
from tests.ports import free_port
from tests.waiting import until

WRITABLE = "configuration-changes = true\n"
USERS = ("admin", "viewer", "mover", "stranger")
# All may use queues; only operators may manage, and each call of management has a permission of its own.
SECURITY = """<management-message-rbac>true</management-message-rbac>
<security-settings>
  <security-setting match="#">{all}</security-setting>
  <security-setting match="activemq.management.#">
    <permission type="manage" roles="admin,viewer,mover"/>
    <permission type="send" roles="admin,viewer,mover,stranger"/>
  </security-setting>
  <security-setting match="mops.#">
    <permission type="view" roles="admin,viewer,mover"/><permission type="edit" roles="admin"/>
  </security-setting>
  <security-setting match="mops.queue.*.moveMessages">
    <permission type="view" roles="admin,viewer,mover"/><permission type="edit" roles="admin,mover"/>
  </security-setting>
</security-settings>
"""


@dataclass
class TwoNodes:
    """Host and port of each node."""

    first: str
    second: str

    @property
    def places(self) -> tuple[str, str]:
        return self.first, self.second


@pytest.fixture(scope="session")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    """Two nodes that know each other, `one` and `two`, with the users `USERS`, all with the password `secret`."""
    ports = [free_port(), free_port()]
    names = [name for name in PERMISSIONS if name != "manage"]
    given = "".join(f'<permission type="{name}" roles="{",".join(USERS)}"/>' for name in names)
    brokers = []
    for name, port, other in zip(("one", "two"), ports, reversed(ports), strict=True):
        folder = tmp_path_factory.mktemp("console") / name
        more = SECURITY.format(all=given) + cluster(port, [other])
        data = str(folder / "data")
        xml = write_broker_xml(folder, port, name=name, data=data, security=True, more=more, own=WRITABLE)
        write_users(xml, dict.fromkeys(USERS, "secret"), {user: user for user in USERS})
        brokers.append(BrokerProcess(xml, port=port))
    with brokers[0], brokers[1]:
        until_a_pair(ports)
        yield TwoNodes(*(f"127.0.0.1:{port}" for port in ports))


def until_a_pair(ports: list[int]) -> None:
    """Waits until each node knows the other."""
    for port in ports:
        with connect(f"tcp://127.0.0.1:{port}", user="admin", password="secret") as connection:
            until(lambda: len(connection.topology) == 2, lambda: "the nodes do not know each other")


@pytest.fixture
def some_file(tmp_path: Path) -> Path:
    """A file that nobody may read over HTTP."""
    path = tmp_path / "secret.txt"
    path.write_text("not for browsers")
    return path
