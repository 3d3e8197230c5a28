"""A reload that changes whose users come in at an acceptor."""

from __future__ import annotations

from atalanta.kernel.errors import SECURITY
from atalanta.kernel.security.security import PERMISSIONS, Security
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.node.config import NodeConfig
from atalanta.store.config import JournalConfig
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.session import (
    CreateSessionResponse,
    CreateSessionV2,
    ReattachSession,
    ReattachSessionResponse,
)
from atalanta.wire.endpoint import AcceptorConfig
from tests.node.machine_rig import Machine


def reload(machine: Machine, *doors: AcceptorConfig) -> None:
    """`u` at usual doors, `v` at those with a domain; there are the domains that doors name, as in app."""
    security = Security()
    security.add_user("u", "p", ["all"])
    security.add_rule("#", {name: ["all"] for name in PERMISSIONS})
    for door in doors:
        if door.security_domain:
            security.domains[door.security_domain] = Security()
            security.domains[door.security_domain].add_user("v", "p", ["all"])
    config = NodeConfig(
        "node-a", BrokerConfig(), AddressSettingsRepository(), security, JournalConfig(bytes(16)), [*doors]
    )
    machine.node.on_reload(machine.now, config)


def door(domain: str) -> AcceptorConfig:
    return AcceptorConfig("door", "0.0.0.0", 1, security_domain=domain)


def comes_in(machine: Machine, conn: int, user: str, accept: bool = True, channel: int = 10) -> bool:
    if accept:
        machine.node.on_accept(machine.now, conn, "door", "somewhere")
        machine.node.on_data(machine.now, conn, HANDSHAKE)
    name = f"s{conn}.{channel}"
    machine.send(
        conn,
        CreateSessionV2(
            name=name,
            session_channel=channel,
            version=136,
            user=user,
            password="p",
            confirmation_window=99,
        ),
        1,
    )
    [answer] = machine.received(conn)
    if isinstance(answer, ExceptionResponse):
        assert answer.code == SECURITY
        return False
    assert isinstance(answer, CreateSessionResponse)
    return True


def reattached(machine: Machine, conn: int, name: str) -> bool:
    machine.node.on_accept(machine.now, conn, "door", "somewhere")
    machine.node.on_data(machine.now, conn, HANDSHAKE)
    machine.send(conn, ReattachSession(name, -1), 1)
    machine.work()
    answers = [each for each in machine.received(conn) if isinstance(each, ReattachSessionResponse)]
    return answers[0].reattached


def told(machine: Machine) -> list[tuple[str, dict[str, object]]]:
    return [event for event in machine.trace.events if event[0].startswith("security_domain")]


def test_who_connects_after_the_reload_is_looked_up_in_the_new_domain() -> None:
    machine = Machine()
    assert comes_in(machine, 1, "u")
    reload(machine, door("visitors"))
    assert comes_in(machine, 2, "v")
    assert not comes_in(machine, 3, "u")
    reload(machine, door("others"))
    assert comes_in(machine, 4, "v")
    reload(machine, door(""))
    assert comes_in(machine, 5, "u")
    assert not comes_in(machine, 6, "v")
    assert told(machine) == [
        ("security_domain_changed", {"acceptor": "door", "domain": domain})
        for domain in ("visitors", "others", "")
    ]


def test_an_open_connection_keeps_its_own_domain() -> None:
    """Somebody else of the same name in the new domain gets none of its sessions."""
    machine = Machine()
    assert comes_in(machine, 1, "u")
    reload(machine, door("visitors"))
    assert comes_in(machine, 1, "u", accept=False, channel=11)
    assert not comes_in(machine, 1, "v", accept=False, channel=12)
    assert not reattached(machine, 2, "s1.10")
    reload(machine, door("visitors"))
    assert comes_in(machine, 3, "v")
    assert reattached(machine, 4, "s3.10")


def test_an_acceptor_that_is_gone_from_the_file_is_closed_with_its_connections() -> None:
    machine = Machine()
    reload(machine, door("visitors"))
    assert comes_in(machine, 1, "v")
    reload(machine)
    machine.work()
    assert list(machine.wire.closed) == [1]
    machine.node.on_accept(machine.now, 2, "door", "somewhere")
    assert list(machine.wire.closed) == [1, 2], "its handshake has ended too late"
    assert not machine.node.connections
    reload(machine, door("visitors"))
    assert comes_in(machine, 3, "v") and not comes_in(machine, 4, "u")
