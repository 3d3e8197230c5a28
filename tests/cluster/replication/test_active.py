"""An active node and followers that a test scripts: who must have a record before a client is told."""

from __future__ import annotations

import json

from atalanta.cluster.replication.active.replicator import CHECK_TIMER
from atalanta.cluster.replication.member_codec import JournalBlock, SettingsFile
from atalanta.ha.register import CompareAndSet, Register
from atalanta.ha.replication.block_stream import JumpItem
from atalanta.ha.replication.messages import Ended, HandOver, Heartbeat, Refusal
from atalanta.kernel.ports import Process
from atalanta.kernel.settings.broker_config import AddressSetting, StoredSettings
from atalanta.kernel.settings.settings_change import SettingsChange
from atalanta.store.config import JournalConfig
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.replication.group_rig import Group, Scripted, client, joined, publish
from tests.cluster.replication.member_rig import JOURNAL_ID, MS
from tests.wire.core.server.server_rig import queue_request, text_message


def test_a_node_alone_confirms_by_itself() -> None:
    group = Group()
    conn = client(group)
    publish(group.active, conn, "a", -7)
    group.run(50)
    assert group.active.confirmed(conn) == [-7]


def test_a_confirmation_waits_for_the_follower_that_is_in_sync() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    publish(group.active, conn, "a", -7)
    group.run(50)
    assert group.active.confirmed(conn) == [-7]
    follower.answers = False
    publish(group.active, conn, "b", -8)
    group.run(500)
    assert group.active.confirmed(conn) == []
    follower.durable = follower.last
    follower.answer()
    assert group.active.confirmed(conn) == [-8]


# --- the in-sync set ----------------------------------------------------------------------------------------


def test_a_silent_follower_is_removed_before_anything_is_confirmed_without_it() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    follower.answers = False
    publish(group.active, conn, "a", -7)
    group.run(1_500)
    assert group.in_sync() == ["a", "b"]
    assert group.active.confirmed(conn) == []
    group.until(lambda: group.in_sync() == ["a"])
    group.run(10)
    assert group.active.confirmed(conn) == [-7]


def test_nothing_is_confirmed_while_the_outcome_of_the_removal_is_unknown() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    follower.leave()
    group.manager.reachable = False
    publish(group.active, conn, "a", -7)
    group.run(20_000)
    assert group.active.confirmed(conn) == []
    told = [event["why"] for event in group.active.events("register_uncertain")]
    assert told == ["no answer", "the manager is away"]
    [awaited] = group.active.events("replica_awaited")
    assert awaited["member"] == "b" and "start the manager" in str(awaited["what_to_do"])
    group.manager.reachable = True
    group.manager.writes_lost = 3
    group.until(lambda: group.in_sync() == ["a"])
    group.run(1_000)
    assert group.active.confirmed(conn) == [-7]
    assert group.active.events("replica_wait_over") == [{"member": "b"}]


def test_whether_another_member_could_take_over_is_read_after_the_question() -> None:
    group = Group()
    joined(group)
    replicator = group.active.node.replicator
    assert replicator is not None
    group.manager.delay_ns = 100 * MS
    group.active.input("on_timer", "replication.register")
    group.run(50)
    group.active.input("on_timer", CHECK_TIMER)
    group.run(40)
    group.manager.reachable = False  # the earlier read has no answer either
    group.run(50)
    assert replicator.handover_problem() is None
    group.run(150)
    assert replicator.handover_problem() == "the register cannot be read: the manager is away"
    group.manager.reachable = True
    group.active.input("on_timer", CHECK_TIMER)
    group.run(5)
    assert replicator.handover_problem() is None
    group.run(300)
    assert replicator.handover_problem() == ""


def test_a_broken_connection_removes_a_follower_sooner() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    follower.leave()
    publish(group.active, conn, "a", -7)
    group.run(1_200)
    assert group.in_sync() == ["a"]
    assert group.active.confirmed(conn) == [-7]


def test_a_follower_that_comes_back_at_once_stays_in_sync() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    version = group.manager.version
    follower.leave()
    again = Scripted(group.active)
    again.last = again.durable = follower.last
    publish(group.active, conn, "a", -7)
    group.run(2_000)
    assert group.active.confirmed(conn) == [-7]
    assert group.manager.version == version


def test_deliveries_and_answers_wait_for_the_lease() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    follower.answers = False
    group.run(2_100)
    group.active.send(conn, queue_request("second"))
    assert not group.active.node.may_send(group.active.now)
    follower.durable = follower.last
    follower.answer()
    assert group.active.received(conn) == []
    group.until(lambda: group.in_sync() == ["a"])
    group.run(100)
    assert group.active.received(conn) != []


def test_the_service_does_not_stop_while_a_follower_joins() -> None:
    group = Group()
    client(group)
    follower = Scripted(group.active)
    while "b" not in group.in_sync():
        group.schedule.step()
        assert group.active.node.may_send(group.active.now)
    assert follower.last > 0


def test_with_a_minimum_nothing_is_confirmed_by_a_node_alone() -> None:
    group = Group(min_in_sync=2)
    conn = group.active.login()
    group.active.send(conn, queue_request("orders"))
    group.run(1_000)
    assert group.active.received(conn) == []
    assert group.active.events("replicas_missing") == [{"in_sync": 1, "required": 2}]
    joined(group)
    assert group.active.received(conn) != []


# --- the stream -----------------------------------------------------------------------------------------------


def lsns(follower: Scripted) -> list[tuple[int, int]]:
    blocks = [message.block for message in follower.messages if isinstance(message, JournalBlock)]
    return [(block.first, block.last) for block in blocks]


def test_a_follower_catches_up_while_appends_go_on_and_is_required_at_the_end() -> None:
    group = Group()
    conn = client(group)
    for number in range(300):
        publish(group.active, conn, "x" * 8_000, -10 - number)
        group.run(1)
    group.run(100)
    follower = Scripted(group.active)
    for number in range(300, 400):
        publish(group.active, conn, "x" * 8_000, -10 - number)
        group.run(1)
    group.until(lambda: "b" in group.in_sync())
    group.run(100)
    found = lsns(follower)
    assert found[0][0] == 1
    assert [first for first, _ in found[1:]] == [last + 1 for _, last in found[:-1]]
    assert found[-1][1] == group.active.node.journal.last
    assert group.active.confirmed(conn) == [-10 - number for number in range(400)]


def test_a_slow_connection_gets_no_more_than_it_takes() -> None:
    group = Group()
    conn = client(group)
    for number in range(300):
        publish(group.active, conn, "x" * 20_000, -10 - number)
        group.run(1)
    follower = Scripted(group.active)
    follower.answers = False
    group.run(3)
    group.active.input("on_blocked", follower.conn)
    follower.answers = True
    follower.say(follower.files)
    follower.answer()
    group.run(2_000)
    assert lsns(follower) == []
    group.active.node.on_unblocked(group.active.now, follower.conn)
    group.active.end_turn()
    group.active.input("on_blocked", follower.conn)
    group.run(2_000)
    sent = sum(len(message.item.data) for message in follower.messages if isinstance(message, JournalBlock))
    assert 0 < sent < 2 << 20
    assert group.in_sync() == ["a"]
    group.active.input("on_unblocked", follower.conn)
    group.until(lambda: "b" in group.in_sync())


def small() -> JournalConfig:
    return JournalConfig(
        JOURNAL_ID, segment_size_bytes=16_384, compact_min_segments=2, compact_percentage=50,
        block_size_bytes_max=4_096,
    )  # fmt: skip


def test_a_lagging_follower_does_not_stop_the_compaction_and_jumps() -> None:
    group = Group(small())
    conn = client(group)
    publish(group.active, conn, "kept", -7)
    group.active.send(conn, queue_request("last", ring_size=1))
    follower = Scripted(group.active)
    group.run(4)
    group.active.input("on_blocked", follower.conn)
    follower.answers = False
    first = group.active.node.journal.segments[0].number
    number = 0
    while group.active.node.journal.segments[0].number < first + 4:
        number += 1
        publish(group.active, conn, "x" * 1_000, -10 - number, "last")
        group.run(5)
        assert number < 1_000
    follower.answers = True
    group.active.input("on_unblocked", follower.conn)
    group.until(lambda: "b" in group.in_sync())
    assert follower.of(JumpItem)
    assert lsns(follower)[-1][1] == group.active.node.journal.last


def test_a_stream_whose_journal_is_damaged_ends_with_an_event() -> None:
    group = Group()
    conn = client(group)
    publish(group.active, conn, "a", -7)
    group.run(100)
    name = group.active.node.journal.segments[0].name
    group.active.disk.files[name][100] ^= 1
    follower = Scripted(group.active)
    group.run(100)
    assert follower.conn in group.active.wire.closed
    [event] = group.active.events("replica_stream_failed")
    assert event["member"] == "b"
    publish(group.active, conn, "b", -8)
    group.run(100)
    assert group.active.confirmed(conn) == [-7, -8]


# --- the end of the service ---------------------------------------------------------------------------------------


def test_a_higher_epoch_ends_the_service_and_nothing_is_confirmed_any_more() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    follower.answers = False
    publish(group.active, conn, "a", -7)
    group.run(10)
    follower.say(Refusal(follower.epoch + 1))
    assert "has epoch 2" in group.active.replicator.deposed
    assert group.active.node.failed is not None
    follower.durable = follower.last
    follower.answer(group.active.now)
    group.run(5_000)
    assert not group.active.node.may_send(group.active.now)
    assert group.active.received(conn) == []


def test_the_register_of_another_active_node_ends_the_service() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    assert group.manager.value is not None
    taken = Register(2, "b", ("b",), 0, bytes(16))
    assert group.manager.set(CompareAndSet(group.manager.version, taken))
    follower.leave()
    publish(group.active, conn, "a", -7)
    group.run(5_000)
    assert "b has epoch 2" in group.active.replicator.deposed
    assert group.active.received(conn) == []


def test_a_node_that_stops_hands_over_to_the_follower_in_sync() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    publish(group.active, conn, "a", -7)
    group.active.input("stop")
    assert group.active.hand_over() is False  # not everything is confirmed
    group.until(lambda: group.active.hand_over() is True)
    group.run(10)
    [message] = follower.of(HandOver)
    assert isinstance(message, HandOver)
    assert message.lsn == follower.durable == group.active.node.journal.last
    assert message.register.in_sync == ("a", "b")
    node = group.active.node
    assert (group.active.replicator.handed_over, node.failed) == (False, None)
    assert not node.may_send(group.active.now)
    follower.leave()
    assert (group.active.replicator.handed_over, node.failed) == (True, None)


def test_a_node_without_a_follower_in_sync_cannot_hand_over() -> None:
    group = Group()
    client(group)
    group.active.input("stop")
    group.run(100)
    assert not group.active.replicator.has_successor()
    assert group.active.hand_over() is False


def test_a_node_whose_disk_fails_lets_a_follower_take_over_at_once() -> None:
    group = Group()
    client(group)
    follower = joined(group)
    group.active.input("on_disk_failed", "I/O error")
    last_ns = group.active.now
    group.run(10)
    assert follower.of(Ended) == [Ended(1, last_ns)]  # the exact last instant of its clock
    assert group.active.replicator.deposed == ""
    assert not group.active.node.may_send(group.active.now)


# --- the door -------------------------------------------------------------------------------------------------------


def test_a_follower_with_another_password_gets_nothing() -> None:
    group = Group()
    follower = Scripted(group.active, key=b"wrong")
    group.run(100)
    assert follower.welcome is None
    assert follower.conn in group.active.wire.closed
    [event] = group.active.events("replica_refused")
    assert "cluster-password" in str(event["why"])


def test_a_follower_of_another_group_is_told_so() -> None:
    group = Group()
    follower = Scripted(group.active, group="other")
    group.run(100)
    assert follower.welcome is not None
    assert "another group" in follower.welcome.refusal
    assert follower.messages == []
    assert follower.conn in group.active.wire.closed


def test_a_copied_data_folder_is_told_so() -> None:
    group = Group()
    follower = Scripted(group.active, "a")
    group.run(100)
    assert follower.welcome is not None
    assert "own member name" in follower.welcome.refusal


def test_the_ids_of_an_epoch_begin_above_those_of_the_one_before() -> None:
    group = Group()
    before = group.active.node.broker.store.next_message_id
    group.run(100)
    group.active.crash()
    group.active.start()
    assert group.active.node.broker.store.next_message_id >= before + (1 << 32)


def test_the_management_settings_follow() -> None:
    group = Group()
    group.active.stored_settings = b"<settings/>"
    follower = joined(group)
    assert follower.of(SettingsFile) == [SettingsFile(b"<settings/>")]


class SettingsFiles(Process):
    """The process of a member: a change of settings waits until the test has written it."""

    def __init__(self) -> None:
        self.token = 0

    def change_settings(self, token: int, change: SettingsChange) -> None:
        self.token = token


def test_a_change_of_settings_is_answered_when_the_follower_in_sync_has_stored_it() -> None:
    group = Group()
    a = group.active
    files = a.node.management.settings.process = SettingsFiles()
    conn = client(group, "replies")
    follower = joined(group)
    request = text_message("activemq.management", json.dumps(["orders", json.dumps({"maxDeliveryAttempts": 3})]))
    request.properties.put("_AMQ_ResourceName", "broker")
    request.properties.put("_AMQ_OperationName", "addAddressSettings")
    request.properties.put("JMSReplyTo", "replies")
    request.properties_changed()
    a.send(conn, SendMessage(request, requires_response=True, correlation=-7, sender_id=0))
    group.run(50)
    assert files.token and a.texts("replies") == []
    follower.answers = False
    a.stored_settings = b"<settings/>"
    stored = StoredSettings([AddressSetting("orders", {"max_delivery_attempts": 3})], [])
    a.input("on_settings_changed", files.token, stored, "")
    group.run(100)
    assert follower.of(SettingsFile)[-1] == SettingsFile(b"<settings/>")
    assert isinstance(follower.messages[-1], JournalBlock | Heartbeat), "a block follows the settings"
    assert a.texts("replies") == [], "the follower has not said that they are on its disk"
    follower.durable = follower.last
    follower.answer()
    group.run(10)
    assert len(a.texts("replies")) == 1


class Announcements:
    """Stands for the cluster connections of the node: what they are to announce."""

    def __init__(self) -> None:
        self.backups: list[dict[str, str]] = []

    def on_backups(self, now: int, backups: dict[str, TransportConfiguration]) -> None:
        self.backups.append({name: connector.name for name, connector in backups.items()})


def test_the_cluster_learns_of_the_follower_that_would_take_over() -> None:
    group = Group()
    announced = Announcements()
    group.active.node.clusters = announced  # type: ignore[assignment]
    connectors = {"c": TransportConfiguration.tcp("to-b", "b", 1)}
    follower = Scripted(group.active, connectors=connectors)
    group.run(2_000)
    assert announced.backups == [{"c": "to-b"}]
    follower.leave()
    group.run(2_000)
    assert announced.backups == [{"c": "to-b"}, {}]
