"""A command that fails by a mistake of ours costs its connection, unless it has begun to change the kernel."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.command import CurrentCommand
from atalanta.kernel.publish.grouping import GroupingHandler, GroupWaiter
from atalanta.kernel.sessions.request_wait import STEP_TIMER
from atalanta.message.codec import text_body
from atalanta.wire.core.client.management import request_message
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.query import QueueQuery
from atalanta.wire.core.packets.transaction import Commit
from tests.fuzz.node_rig import NodeRig
from tests.kernel.broker_rig import SECOND, RecordingTrace
from tests.wire.core.server.server_rig import text_message


class FailingCommand(CurrentCommand):
    """Fails at the command of that number from now on, before or behind the begin of its change."""

    def __init__(self) -> None:
        super().__init__()
        self.until = -1
        self.inside = False
        self.at_change = False  # fails once, before the kernel changes

    def begin(self) -> None:
        super().begin()
        self.until -= 1
        if self.until == 0 and not self.inside:
            raise ZeroDivisionError("planted")

    def begin_change(self) -> None:
        if self.at_change:
            self.at_change = False
            raise ZeroDivisionError("planted at the change")
        super().begin_change()
        if self.until == 0 and self.inside:
            raise ZeroDivisionError("planted inside")


@pytest.fixture
def command() -> FailingCommand:
    return FailingCommand()


@pytest.fixture
def rig(command: FailingCommand) -> NodeRig:
    return NodeRig(command)


def sends(*texts: str) -> bytes:
    return b"".join(
        codec.encode(
            SendMessage(text_message("a", each), requires_response=True, correlation=-7, sender_id=0), 10, 136
        )
        for each in texts
    )


def management_request(operation: str, *parameters: object) -> bytes:
    body = text_body(json.dumps(parameters))
    message = request_message(0, "activemq.management", "broker", "_AMQ_OperationName", operation, body)
    return codec.encode(SendMessage(message, requires_response=True, correlation=-7, sender_id=0), 10, 136)


def failures(rig: NodeRig) -> list[dict[str, object]]:
    trace = rig.node.ports.trace
    assert isinstance(trace, RecordingTrace)
    return [fields for name, fields in trace.events if name == "command_failed"]


def expect_failures(rig: NodeRig) -> None:
    trace = rig.node.ports.trace
    assert isinstance(trace, RecordingTrace)
    trace.expects_failures = True


def test_a_management_request_that_nobody_answers_costs_its_connection(rig: NodeRig, command: FailingCommand) -> None:
    """Nobody would hear of the failure: a bridge would wait for ever for the queues that it has asked for."""
    expect_failures(rig)
    conn, other = rig.login("admin", "admin"), rig.login("admin", "admin")
    command.at_change = True
    rig.node.on_data(rig.now, conn, management_request("createAddress", "new", "ANYCAST"))
    rig.settle()
    assert conn not in rig.node.connections and other in rig.node.connections
    assert "new" not in rig.node.broker.addresses
    assert len(failures(rig)) == 1


def test_the_connection_closes_and_what_came_before_stays(rig: NodeRig, command: FailingCommand) -> None:
    expect_failures(rig)
    conn, other = rig.login("admin", "admin"), rig.login("admin", "admin")
    rig.consuming(conn)
    before = rig.node.broker.queues["a"].message_count
    command.until = 4  # the input, the first message, the second one, the third one
    rig.node.on_data(rig.now, conn, sends("one", "two", "three"))
    rig.settle()
    assert conn not in rig.node.connections and other in rig.node.connections
    assert rig.node.broker.queues["a"].message_count == before + 2
    (event,) = failures(rig)
    assert event["protocol"] == "CORE" and event["remote"] == "1.2.3.4:5"
    assert "planted" in str(event["why"]) and "test_failed_commands.py" in str(event["place"])
    assert "wire/core/server/connection.py" in str(event["calls"])
    rig.node.on_data(rig.now, other, sends("four"))
    rig.settle()
    assert rig.node.broker.queues["a"].message_count == before + 3
    rig.check()


def test_each_place_is_reported_once_a_minute(rig: NodeRig, command: FailingCommand) -> None:
    expect_failures(rig)
    for _ in range(3):
        conn = rig.login("admin", "admin")
        command.until = 2
        rig.send(conn, QueueQuery("a"))
        assert conn not in rig.node.connections
    rig.now += 61 * SECOND
    conn = rig.login("admin", "admin")
    command.until = 2
    rig.send(conn, QueueQuery("a"))
    assert len(failures(rig)) == 2
    assert rig.node.broker.trace.counts()["commands_failed"] == 4


def test_inside_the_kernel_the_node_ends(rig: NodeRig, command: FailingCommand) -> None:
    conn = rig.login("admin", "admin")
    rig.consuming(conn)
    command.until, command.inside = 2, True
    with pytest.raises(ZeroDivisionError):
        rig.node.on_data(rig.now, conn, sends("one"))
    assert not failures(rig)


def test_a_datagram_costs_nothing(rig: NodeRig, command: FailingCommand) -> None:
    expect_failures(rig)
    command.until = 1
    rig.node.on_datagram(rig.now, "hears", b"x")
    (event,) = failures(rig)
    assert event["protocol"] == "datagram"
    rig.check()


class BrokenGroups(GroupingHandler):
    """Lets the first send of a group wait, and fails by a mistake at the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.waiter: GroupWaiter | None = None

    def covers(self, address: str) -> bool:
        return True

    def chosen(self, now: int, full_id: str) -> str | None:
        if self.waiter is not None:
            raise ZeroDivisionError("planted")
        return None

    def propose(self, now: int, full_id: str, cluster_name: str) -> str | None:
        return None

    def wait(self, now: int, ids: list[str], waiter: GroupWaiter) -> None:
        self.waiter = waiter

    def forget(self, waiter: GroupWaiter) -> None:
        return None


def test_a_request_that_waited_for_a_message_group_costs_its_own_connection(
    rig: NodeRig, command: FailingCommand
) -> None:
    """The decision comes in the input of another connection, or in a timer."""
    expect_failures(rig)
    conn, other = rig.login("admin", "admin"), rig.login("admin", "admin")
    rig.consuming(conn)
    before = rig.node.broker.queues["a"].message_count
    groups = rig.node.broker.router.grouping = BrokenGroups()
    grouped = SendMessage(
        text_message("a", "g", _AMQ_GROUP_ID="g"), requires_response=True, correlation=-7, sender_id=0
    )
    rig.node.on_data(rig.now, conn, codec.encode(grouped, 10, 136) + sends("behind"))
    rig.settle()
    assert groups.waiter is not None
    rig.node.command.begin_change()
    groups.waiter.decided(rig.now)
    assert rig.node.command.changing
    rig.settle()
    assert conn not in rig.node.connections and other in rig.node.connections
    (event,) = failures(rig)
    assert event["protocol"] == "CORE" and event["command"] == "a request that has waited"
    assert rig.node.broker.queues["a"].message_count == before
    rig.node.broker.router.grouping = None
    rig.node.on_data(rig.now, other, sends("four"))
    rig.settle()
    assert rig.node.broker.queues["a"].message_count == before + 1
    rig.check()


def test_a_step_of_a_large_commit_costs_its_own_connection(rig: NodeRig, command: FailingCommand) -> None:
    """The step is done in a timer. Nothing of the transaction is anywhere."""
    expect_failures(rig)
    conn, other = rig.login("admin", "admin"), rig.login("admin", "admin")
    rig.consuming(conn)
    before = rig.node.broker.queues["a"].message_count
    session = next(each for each in rig.node.broker.clients.sessions() if each.client.connection == conn)
    session.auto_commit_sends = False
    for _ in range(300):
        rig.node.on_data(rig.now, conn, sends("x" * 90_000))
    rig.send(conn, Commit(-8))
    assert session.waits()
    command.until = 1
    rig.node.on_timer(rig.now, STEP_TIMER)
    rig.settle()
    assert conn not in rig.node.connections and other in rig.node.connections
    (event,) = failures(rig)
    assert event["command"] == "a request that has waited"
    assert rig.node.broker.queues["a"].message_count == before
    rig.check()
