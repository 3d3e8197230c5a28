"""Page files and large bodies of an active node: a follower has them before the records that name them."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.cluster.replication.member_codec import (
    LARGE_FILE,
    PAGE_FILE,
    FileDeletion,
    FromActive,
    JournalBlock,
    KeptFiles,
    LargeData,
    LargeEnd,
    PageFile,
    StoredFiles,
)
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.store.pages import PageFiles
from atalanta.wire.core.packets.consumer import Acknowledge, CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import ReceiveMessage
from atalanta.wire.core.packets.session import SessionStart
from tests.cluster.replication.group_rig import (
    Group,
    Scripted,
    begin_large,
    client,
    joined,
    publish,
    send_piece,
)
from tests.cluster.replication.member_rig import JOURNAL_ID


def paging() -> AddressSettingsRepository:
    settings = AddressSettingsRepository()
    settings.add("#", {"max_size_bytes": 20_000, "page_size_bytes": 8_000})
    return settings


def index_of(follower: Scripted, true: Callable[[FromActive], bool]) -> int:
    return next(index for index, message in enumerate(follower.messages) if true(message))


def block_with(follower: Scripted, text: bytes) -> int:
    """The place of the first block with these bytes."""
    return index_of(
        follower, lambda message: isinstance(message, JournalBlock) and text in message.item.data
    )


def pages_of(group: Group) -> dict[int, bytes]:
    disk = group.active.disk
    files = PageFiles(disk, JOURNAL_ID)
    return {number: files.content(number) for number in files.numbers()}


def sent_pages(follower: Scripted) -> dict[int, bytes]:
    return {each.number: each.data for each in follower.messages if isinstance(each, PageFile)}


def test_a_page_file_arrives_before_the_record_that_names_it() -> None:
    group = Group(settings=paging)
    conn = client(group)
    follower = joined(group)
    for number in range(100):
        publish(group.active, conn, "x" * 1_000, -10 - number)
        group.run(1)
    group.run(100)
    assert len(sent_pages(follower)) > 3
    assert sent_pages(follower) == pages_of(group)
    for number in sent_pages(follower):
        page = index_of(follower, lambda each, n=number: isinstance(each, PageFile) and each.number == n)  # type: ignore[misc]
        assert page < block_with(follower, number.to_bytes(8, "big"))
    assert group.active.confirmed(conn) == [-10 - number for number in range(100)]


def test_a_follower_gets_only_the_page_files_that_it_lacks() -> None:
    group = Group(settings=paging)
    conn = client(group)
    for number in range(100):
        publish(group.active, conn, "x" * 1_000, -10 - number)
        group.run(1)
    group.run(100)
    files = PageFiles(group.active.disk, JOURNAL_ID)
    numbers = files.numbers()
    follower = Scripted(group.active)
    stamps = {number: files.stamp(number) for number in numbers}
    different = (numbers[2], stamps[numbers[2]][0], stamps[numbers[2]][1] ^ 1)
    follower.files = StoredFiles(
        ((numbers[0], *stamps[numbers[0]]), different, (numbers[3], 5, stamps[numbers[3]][1]), (9, 9, 9)), ()
    )
    group.until(lambda: "b" in group.in_sync())
    assert sorted(sent_pages(follower)) == [number for number in numbers if number != numbers[0]]
    [kept] = follower.of(KeptFiles)
    assert isinstance(kept, KeptFiles)
    assert kept.pages == tuple(numbers)
    first = index_of(follower, lambda each: isinstance(each, JournalBlock))
    last = max(index for index, each in enumerate(follower.messages) if isinstance(each, PageFile))
    assert last < first


def test_a_follower_is_in_sync_only_when_its_files_are_on_its_disk() -> None:
    """Only the answer to a later block says that they are."""
    group = Group(settings=paging)
    conn = client(group)
    for number in range(60):
        publish(group.active, conn, "x" * 1_000, -10 - number)
        group.run(1)
    group.run(100)
    last = group.active.node.journal.last
    follower = Scripted(group.active)
    follower.last = follower.durable = last
    group.until(lambda: "b" in group.in_sync())
    page = max(index for index, each in enumerate(follower.messages) if isinstance(each, PageFile))
    block = index_of(follower, lambda each: isinstance(each, JournalBlock) and each.block.first > last)
    assert page < block


def test_a_page_that_was_read_is_deleted_once_that_is_confirmed() -> None:
    group = Group(settings=paging)
    conn = client(group)
    follower = joined(group)
    for number in range(60):
        publish(group.active, conn, "x" * 1_000, -10 - number)
        group.run(1)
    group.run(100)
    before = list(pages_of(group))
    group.active.send(conn, CreateConsumer(consumer_id=1, queue="orders"))
    group.active.send(conn, SessionStart())
    group.active.send(conn, FlowToken(1, 1 << 20))
    for _ in range(60):
        group.run(20)
        for packet in group.active.received(conn):
            if isinstance(packet, ReceiveMessage):
                group.active.send(conn, Acknowledge(1, packet.message.id, requires_response=False))
    group.run(100)
    assert pages_of(group) == {}
    deleted = follower.of(FileDeletion)
    assert sorted(each.number for each in deleted if isinstance(each, FileDeletion)) == before
    for each in deleted:
        assert isinstance(each, FileDeletion)
        assert each.kind == PAGE_FILE
        assert 0 < each.lsn <= follower.durable


# --- large bodies -----------------------------------------------------------------------------------------


BODY = bytes(range(256)) * 4_000


def sent_body(follower: Scripted) -> bytes:
    """The large body, as it was sent in pieces that follow each other."""
    body = b""
    for message in follower.messages:
        if isinstance(message, LargeData):
            assert message.offset in (0, len(body))
            body = body[: message.offset] + message.data
    return body


def test_a_large_body_arrives_whole_before_the_record_that_names_it() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    begin_large(group.active, conn)
    half = len(BODY) // 2
    send_piece(group.active, conn, BODY[:half], len(BODY))
    group.run(50)
    assert sent_body(follower) == BODY[:half]  # early
    publish(group.active, conn, "between", -8)
    group.run(50)
    send_piece(group.active, conn, BODY[half:], len(BODY), -9)
    group.run(100)
    assert sent_body(follower) == BODY
    [end] = follower.of(LargeEnd)
    assert isinstance(end, LargeEnd)
    assert end.size == len(BODY)
    at = index_of(follower, lambda each: isinstance(each, LargeEnd))
    assert block_with(follower, "between".encode("utf-16-le")) > 0
    assert at < block_with(follower, end.file.to_bytes(8, "big") + end.size.to_bytes(8, "big"))
    assert group.active.confirmed(conn)[-1] == -9


def test_a_body_of_a_message_that_is_not_durable_is_not_sent() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    begin_large(group.active, conn, durable=False)
    send_piece(group.active, conn, BODY, len(BODY), -9)
    group.run(200)
    assert group.active.confirmed(conn) == [-9]
    assert sent_body(follower) == b""


def test_a_follower_that_connects_in_the_middle_of_a_body_gets_it_from_the_beginning() -> None:
    group = Group()
    conn = client(group)
    begin_large(group.active, conn)
    send_piece(group.active, conn, BODY[:300_000], len(BODY))
    group.run(50)
    file = next(iter(group.active.large.contents))
    follower = Scripted(group.active)
    follower.files = StoredFiles((), ((file, 300_000), (77, 1)))
    group.run(50)
    send_piece(group.active, conn, BODY[300_000:], len(BODY), -9)
    group.until(lambda: "b" in group.in_sync())
    group.run(50)
    assert sent_body(follower) == BODY
    [kept] = follower.of(KeptFiles)
    assert isinstance(kept, KeptFiles)
    assert kept.large == (file,)
    again = Scripted(group.active, "c")
    again.files = StoredFiles((), ((file, len(BODY)),))
    group.until(lambda: "c" in group.in_sync())
    assert sent_body(again) == b""


def test_a_body_that_nobody_needs_any_more_is_deleted() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    begin_large(group.active, conn)
    send_piece(group.active, conn, BODY[:300_000], len(BODY))
    group.run(50)
    file = next(iter(group.active.large.contents))
    group.active.input("on_closed", conn, "broken")
    group.run(100)
    [deletion] = follower.of(FileDeletion)
    assert isinstance(deletion, FileDeletion)
    assert (deletion.kind, deletion.number) == (LARGE_FILE, file)
    assert follower.of(LargeEnd) == []
