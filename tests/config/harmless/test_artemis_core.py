"""Elements of <core> and options without effect: clients see the same with them."""

from __future__ import annotations

from pathlib import Path

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.wire.core.packets.consumer import (
    ConsumerClose,
    CreateConsumer,
    FlowToken,
    IndividualAcknowledge,
)
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import SessionStart
from atalanta.wire.core.packets.transaction import Rollback
from tests.config.harmless.cases import case
from tests.config.harmless.conversations import of_all_protocols
from tests.config.harmless.file_server import FileServer, both, broker_file, quiet
from tests.node.machine_rig import Machine
from tests.wire.core.server.server_rig import text_message

MIRRORS = {
    "mirror-ack-manager-queue-attempts": "1",
    "mirror-ack-manager-page-attempts": "1",
    "mirror-ack-manager-retry-delay": "1",
    "mirror-ack-manager-warn-unacked": "true",
    "mirror-page-transaction": "true",
}
LOCKS = """<lock-coordinators><lock-coordinator name="lock"><class-name>some.Lock</class-name><lock-id>x</lock-id>
</lock-coordinator></lock-coordinators>"""


@case("CORE", *MIRRORS)
def test_times_of_mirrors_without_a_mirror(tmp_path: Path) -> None:
    both(tmp_path, of_all_protocols, "".join(f"<{name}>{value}</{name}>" for name, value in MIRRORS.items()))


@case("CORE", "lock-coordinators")
def test_locks_that_no_acceptor_names(tmp_path: Path) -> None:
    both(tmp_path, of_all_protocols, LOCKS)


@case("CORE_FIXED", "resolve-protocols", "jmx-management-enabled", "backup")
def test_values_that_hold_here(tmp_path: Path) -> None:
    values = {"resolve-protocols": "true", "jmx-management-enabled": "false", "backup": " False "}
    both(tmp_path, of_all_protocols, "".join(f"<{name}>{value}</{name}>" for name, value in values.items()))


DIVERT = """<diverts><divert name="d"><address>orders</address><forwarding-address>copies</forwarding-address>
</divert></diverts>"""
QUEUES = "".join(
    f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>' for name in ("orders", "copies")
)


@case("AddressSettings", "config-delete-diverts")
def test_a_divert_goes_with_its_element(tmp_path: Path) -> None:
    seen = []
    for policy in ("OFF", "FORCE"):
        more = f"""<address-settings><address-setting match="#"><config-delete-diverts>{policy}</config-delete-diverts>
        </address-setting></address-settings><addresses>{QUEUES}</addresses>"""
        server = FileServer(quiet(broker_file(tmp_path / policy, more + DIVERT)))
        client = server.login()
        client.publish("orders", "diverted")
        server.settle()
        server.reload(quiet(broker_file(tmp_path / policy, more)))
        client.publish("orders", "after the reload")
        server.settle()
        seen.append([server.broker.queues[name].message_count for name in ("orders", "copies")])
    assert seen == [[2, 1], [2, 1]]


SYNC = ("journal-datasync", "journal-sync-transactional", "journal-sync-non-transactional")


@case("JournalOptions", *SYNC)
def test_what_was_confirmed_is_there_after_a_power_failure(tmp_path: Path) -> None:
    seen = []
    for value in ("", "true", "false"):
        elements = "".join(f"<{name}>{value}</{name}>" for name in SYNC) if value else ""
        configuration = quiet(broker_file(tmp_path / f"x{value}", elements))
        machine = Machine(configuration.journal.journal_config(bytes(16)))
        machine.login(1)
        machine.send(1, CreateQueueV2(address="orders", queue="orders", routing_type=ANYCAST, durable=True))
        message = text_message("orders", "alone")
        machine.send(1, SendMessage(message, requires_response=True, correlation=7, sender_id=0))
        machine.work()
        assert 7 in machine.confirmed(1)
        machine.calls.clear()
        machine.disk.crash()
        machine.start()
        machine.login(2)
        machine.send(2, SessionStart())
        machine.send(2, CreateConsumer(consumer_id=0, queue="orders"))
        machine.send(2, FlowToken(0, -1))
        machine.work()
        found = [each.message.text() for each in machine.received(2) if isinstance(each, ReceiveMessage)]
        seen.append(found)
    assert seen == [["alone"]] * 3


@case("BrokerConfig", "max-redelivery-records")
def test_the_delivery_count_of_a_message_after_a_restart(tmp_path: Path) -> None:
    """Artemis writes no more counts than it says; here the whole count is there."""

    def conversation(server: FileServer) -> list[object]:
        client = server.login(transacted=True)
        client.create_queue("orders")
        server.login().publish("orders", "again")
        seen: list[object] = []
        for consumer in range(4):
            client.consume("orders", consumer)
            server.settle()
            (found,) = client.deliveries()
            seen.append(found.delivery_count)
            client.send(IndividualAcknowledge(consumer, found.message.id, False))
            client.succeeds(ConsumerClose(consumer_id=consumer))
            client.succeeds(Rollback())
        server.restart()
        reader = server.login()
        reader.consume("orders")
        server.settle()
        return [*seen, *(each.delivery_count for each in reader.deliveries())]

    for most in (-1, 0, 1):
        both(tmp_path / f"x{most}", conversation, f"<max-redelivery-records>{most}</max-redelivery-records>")
