"""Branches belong to the user who has started them: another one needs `manage`, over CORE and OpenWire."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.kernel.errors import SECURITY
from atalanta.kernel.journal import records
from atalanta.kernel.transactions import xa_records
from atalanta.kernel.transactions.xa import identifier
from atalanta.kernel.transactions.xa_session import XA_HEURCOM, XAER_DUPID
from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.session import AddMetadata
from atalanta.wire.core.packets.transaction import (
    XaCommit,
    XaEnd,
    XaFailed,
    XaForget,
    XaInDoubt,
    XaInDoubtResponse,
    XaJoin,
    XaPrepare,
    XaResponse,
    XaResume,
    XaRollback,
    XaStart,
    XaSuspend,
    Xid,
)
from atalanta.wire.openwire.commands.deliveries import MessageAck
from atalanta.wire.openwire.commands.identifiers import ConsumerId, MessageId, ProducerId
from atalanta.wire.openwire.commands.responses import DataArrayResponse
from atalanta.wire.openwire.commands.transactions import TransactionInfo, XATransactionId
from atalanta.wire.openwire.encoding.structure import Command
from tests.wire.core.server.server_rig import Client
from tests.wire.core.server.xa_rig import ONE, ok
from tests.wire.openwire.server.openwire_rig import (
    BEGIN,
    COMMIT,
    COMMIT_ONE_PHASE,
    FORGET,
    PREPARE,
    RECOVER,
    ROLLBACK,
    STANDARD,
    OpenWireClient,
    OpenWireServer,
)

XID = XATransactionId(1, b"global", b"branch-1")  # the same as ONE
USER_KEY = "atalanta-xa-user"  # metadata of a member's session
REFUSED = (
    "belongs to another user: AMQ229032: User: low does not have permission='MANAGE' on address activemq.management"
)


class World(OpenWireServer):
    """The queues `in` and `out`; `victim` and `low` may send and consume, `chief` may manage, too."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("victim", "low", "chief"):
            self.security.add_user(name, name, [name])
        for match in ("in", "out"):
            work = dict.fromkeys(("send", "consume"), ["admin", "victim", "low", "chief"])
            self.security.add_rule(match, {**work, "createDurableQueue": ["admin"], "createAddress": ["admin"]})
        self.security.add_rule("activemq.management", {"manage": ["admin", "chief"], "send": ["admin"]})
        admin = self.login()
        admin.create_queue("in")
        admin.create_queue("out")
        admin.publish("in", "work")
        self.settle()

    def xa(self, user: str, password: str = "") -> Client:
        client = self.greeted()
        client.open_session(10, user, password or user, transacted=True, xa=True)
        return client

    def worked(self) -> Client:
        """The victim, with an active branch that has taken from `in` and sent to `out`."""
        victim = self.xa("victim")
        ok(victim, XaStart(ONE))
        victim.publish("out", "result")
        return victim

    def count(self, queue: str) -> int:
        self.settle()
        return self.broker.queues[queue].message_count


def refused(client: Client, packet: Packet) -> str:
    answer = client.call(packet)
    assert isinstance(answer, ExceptionResponse) and answer.code == SECURITY, f"{packet}: {answer}"
    return answer.message or ""


def in_doubt(client: Client) -> list[Xid]:
    answer = client.call(XaInDoubt())
    assert isinstance(answer, XaInDoubtResponse), answer
    return answer.xids


def recovered(client: OpenWireClient) -> list[object]:
    answer = client.succeeds(TransactionInfo(None, None, RECOVER))
    assert isinstance(answer, DataArrayResponse)
    return list(answer.data or [])


@pytest.fixture
def world() -> World:
    return World()


ENDS: list[Callable[[], Packet]] = [
    lambda: XaJoin(ONE), lambda: XaResume(ONE), lambda: XaEnd(ONE, False), lambda: XaPrepare(ONE),
    lambda: XaCommit(ONE, True), lambda: XaCommit(ONE, False), lambda: XaRollback(ONE), lambda: XaFailed(ONE),
]  # fmt: skip


@pytest.mark.parametrize("state", ["at work", "suspended", "ended", "prepared"])
def test_a_branch_is_its_users_over_core(world: World, state: str) -> None:
    victim, stranger = world.worked(), world.xa("low")
    if state == "suspended":
        ok(victim, XaSuspend())
    elif state != "at work":
        ok(victim, XaEnd(ONE, False))
    if state == "prepared":
        ok(victim, XaPrepare(ONE))
    for end in ENDS:
        assert REFUSED in refused(stranger, end()), end()
    assert in_doubt(stranger) == []
    assert in_doubt(victim) == ([ONE] if state == "prepared" else [])
    if state == "suspended":
        ok(victim, XaResume(ONE))
    if state in ("at work", "suspended"):
        ok(victim, XaEnd(ONE, False))
    if state != "prepared":
        ok(victim, XaPrepare(ONE))
    ok(world.xa("victim"), XaCommit(ONE, False))  # another session of the same user
    assert world.count("out") == 1


@pytest.mark.parametrize("prepared", [False, True])
def test_a_branch_is_its_users_over_openwire(world: World, prepared: bool) -> None:
    victim, stranger = world.openwire_client("v", "victim"), world.openwire_client("s", "low")
    victim.succeeds(TransactionInfo(None, XID, BEGIN))
    victim.succeeds(victim.message("result", "out", transaction_id=XID))
    if prepared:
        victim.succeeds(TransactionInfo(None, XID, PREPARE))
    for kind in (BEGIN, PREPARE, COMMIT_ONE_PHASE, COMMIT, ROLLBACK):
        name, why = stranger.fails(TransactionInfo(None, XID, kind))
        assert name == "java.lang.SecurityException" and REFUSED in why, kind
    assert recovered(stranger) == []
    assert recovered(victim) == ([XID] if prepared else [])
    victim.succeeds(TransactionInfo(None, XID, COMMIT if prepared else COMMIT_ONE_PHASE))
    assert world.count("out") == 1


def test_nobody_works_or_fails_in_a_strangers_branch(world: World) -> None:
    """A refused message, a message to nowhere and an acknowledgement of nothing roll nothing back."""
    victim, stranger = world.openwire_client("v", "victim"), world.openwire_client("s", "low")
    victim.succeeds(TransactionInfo(None, XID, BEGIN))
    victim.succeeds(victim.message("result", "out", transaction_id=XID))
    consumer = stranger.consume("in")
    wrong: list[Command] = [
        stranger.message("x", "out", transaction_id=XID),
        stranger.message("x", "forbidden", transaction_id=XID),
        stranger.message("x", "out", transaction_id=XID, producer_id=ProducerId("ID:other", 1, 1)),
        MessageAck(None, XID, ConsumerId("ID:none", 1, 1), STANDARD, None, MessageId(None, None, 1), 1),
    ]
    for command in wrong:
        stranger.fails(command)
    (got,) = stranger.dispatches()
    assert REFUSED in stranger.fails(stranger.ack_info(got, transaction=XID))[1]
    stranger.close(consumer)
    stranger.server.lost(stranger.conn)
    victim.succeeds(TransactionInfo(None, XID, COMMIT_ONE_PHASE))
    assert (world.count("out"), world.count("in")) == (1, 1)


def test_the_owners_own_refused_message_still_rolls_back(world: World) -> None:
    victim = world.openwire_client("v", "victim")
    victim.succeeds(TransactionInfo(None, XID, BEGIN))
    victim.succeeds(victim.message("result", "out", transaction_id=XID))
    victim.fails(victim.message("x", "forbidden", transaction_id=XID))
    assert "xaErrorCode:100" in victim.fails(TransactionInfo(None, XID, COMMIT_ONE_PHASE))[1]
    assert world.count("out") == 0


def test_a_message_of_a_transaction_with_a_long_id_is_refused(world: World) -> None:
    client = world.openwire_client("s", "low")
    long = XATransactionId(1, b"g" * 2000, b"b")
    _, why = client.fails(client.message("x", "out", transaction_id=long))
    assert "has not been started" in why
    client.publish("x", "out")


def test_who_may_manage_ends_branches_of_others(world: World) -> None:
    victim = world.worked()
    ok(victim, XaEnd(ONE, False), XaPrepare(ONE))
    chief = world.xa("chief")
    assert in_doubt(chief) == [ONE]
    assert recovered(world.openwire_client("c", "chief")) == [XID]
    ok(chief, XaCommit(ONE, False))
    assert world.count("out") == 1


def test_the_user_survives_a_restart_and_the_compaction_of_the_journal(world: World) -> None:
    victim = world.worked()
    ok(victim, XaEnd(ONE, False), XaPrepare(ONE))
    for _ in range(2):
        world.settle()
        world.restart()
        stranger = world.xa("low")
        assert in_doubt(stranger) == [] and REFUSED in refused(stranger, XaRollback(ONE))
        branch = world.broker.branches.by_xid[next(iter(world.broker.branches.by_xid))]
        world.journal.append(records.XA_PREPARED, xa_records.encode_prepared(branch))  # as live_records.py does
    owner = world.xa("victim")
    assert in_doubt(owner) == [ONE]
    ok(owner, XaCommit(ONE, False))
    assert world.count("out") == 1


def test_a_prepared_message_to_an_automatic_queue_survives_a_start(world: World) -> None:
    """The node deletes empty automatic queues when it starts (node.py)."""
    client = world.openwire_client("v", "admin")
    client.succeeds(TransactionInfo(None, XID, BEGIN))
    client.succeeds(client.message("result", "automatic", transaction_id=XID))
    client.succeeds(TransactionInfo(None, XID, PREPARE))
    world.settle()
    world.restart()
    world.broker.queue_registry.sweep_at_start(world.now)
    again = world.openwire_client("v", "admin")
    again.succeeds(TransactionInfo(None, XID, COMMIT))
    again.consume("automatic")
    assert again.texts() == ["result"]


def test_a_heuristic_end_is_told_to_its_user(world: World) -> None:
    victim = world.worked()
    ok(victim, XaEnd(ONE, False), XaPrepare(ONE))
    branches = world.broker.branches
    assert branches.end_by_operator(world.now, _name(world), True)
    for _ in range(2):
        stranger = world.xa("low")
        assert in_doubt(stranger) == []
        for packet in (XaForget(ONE), XaCommit(ONE, False), XaRollback(ONE)):
            assert REFUSED in refused(stranger, packet)
        other = world.openwire_client("s", "low")
        for kind in (FORGET, COMMIT, ROLLBACK):
            assert REFUSED in other.fails(TransactionInfo(None, XID, kind))[1]
        world.settle()
        world.restart()
    owner = world.xa("victim")
    assert in_doubt(owner) == [ONE]
    ok(owner, XaForget(ONE))
    assert in_doubt(owner) == []


def test_the_xid_of_a_heuristic_end_is_not_used_again(world: World) -> None:
    """Until it is forgotten: a new branch of that name would hide the outcome from its manager, and end with it."""
    victim = world.worked()
    ok(victim, XaEnd(ONE, False), XaPrepare(ONE))
    assert world.broker.branches.end_by_operator(world.now, _name(world), True)
    stranger, other = world.xa("low"), world.openwire_client("s", "low")
    assert REFUSED in refused(stranger, XaFailed(ONE))
    assert REFUSED in other.fails(TransactionInfo(None, XID, BEGIN))[1]
    owner, again = world.xa("victim"), world.openwire_client("v", "victim")
    owner.send(XaFailed(ONE))  # too late to change anything
    assert f"xaErrorCode:{XAER_DUPID}" in again.fails(TransactionInfo(None, XID, BEGIN))[1]
    assert world.broker.branches.by_xid == {}
    answer = owner.call(XaCommit(ONE, False))
    assert isinstance(answer, XaResponse) and answer.code == XA_HEURCOM
    ok(owner, XaForget(ONE))
    again.succeeds(TransactionInfo(None, XID, BEGIN))


def test_a_branch_of_an_older_journal_belongs_to_everybody(world: World) -> None:
    victim = world.worked()
    ok(victim, XaEnd(ONE, False), XaPrepare(ONE))
    branch = next(iter(world.broker.branches.by_xid.values()))
    writer = Writer()
    writer.nullable_simple_string(branch.user)
    payload = xa_records.encode_prepared(branch)
    older = payload[: len(payload) - len(writer.getvalue())]
    world.journal.append(records.XA_PREPARED, older)
    world.settle()
    world.restart()
    other = world.xa("low")
    assert in_doubt(other) == [ONE]
    ok(other, XaCommit(ONE, False))
    assert world.count("out") == 1


def test_an_older_version_reads_the_records(world: World) -> None:
    """It reads the fields it knows, and no end of the record."""
    victim = world.worked()
    ok(victim, XaEnd(ONE, False), XaPrepare(ONE))
    branch = next(iter(world.broker.branches.by_xid.values()))
    reader = Reader(xa_records.encode_prepared(branch))
    assert reader.blob() == branch.xid and reader.int64() == branch.created_at
    assert reader.count("messages", 4) == 1 and reader.blob() and reader.count("acknowledged", 20) == 0
    assert reader.nullable_simple_string() == "victim"
    ended = Reader(xa_records.encode_ended(branch.xid, 1, "victim"))
    assert ended.blob() == branch.xid and ended.int8() == 1


def test_a_member_that_leaves_hands_over_the_user(world: World) -> None:
    """Only a member may say whose a branch is. One of an older version does not: then it is everybody's."""
    for user, said, sees in (
        ("cluster", "=victim", ([ONE], [])), ("cluster", "", ([ONE], [ONE])), ("low", "=victim", ([], [ONE])),
    ):  # fmt: skip
        member = world.xa(user, "secret" if user == "cluster" else "")
        member.call(AddMetadata(USER_KEY, said))
        ok(member, XaStart(ONE))
        member.publish("out", "result")
        ok(member, XaEnd(ONE, False), XaPrepare(ONE))
        assert (in_doubt(world.xa("victim")), in_doubt(world.xa("low"))) == sees
        ok(world.xa("chief"), XaRollback(ONE))
    answer = world.xa("victim").call(XaCommit(ONE, False))
    assert isinstance(answer, XaResponse) and answer.error


def _name(world: World) -> str:
    return identifier(next(iter(world.broker.branches.by_xid)))


def test_a_branch_from_before_security_was_enabled_belongs_to_everybody(world: World) -> None:
    """Nobody had to prove the name by which it was begun."""
    world.security.enabled = False
    before = world.openwire_client("b", "")
    before.succeeds(TransactionInfo(None, XID, BEGIN))
    before.succeeds(before.message("result", "out", transaction_id=XID))
    before.succeeds(TransactionInfo(None, XID, PREPARE))
    world.security.enabled = True
    after = world.openwire_client("a", "victim")
    assert recovered(after) == [XID]
    after.succeeds(TransactionInfo(None, XID, COMMIT))
    assert world.count("out") == 1
