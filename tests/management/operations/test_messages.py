"""Operations on messages: count, show, remove, move, retry."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.codec import text_body
from atalanta.message.message import TEXT
from tests.kernel.broker_rig import consume
from tests.management.management_rig import Desk, Refused


def desk_with_dead_letters() -> Desk:
    settings = AddressSettingsRepository()
    values: dict[str, object] = {"dead_letter_address": "DLA", "expiry_address": "EXP"}
    settings.add("work", values)  # type: ignore[arg-type]
    desk = Desk(BrokerConfig(), settings)
    desk.queue("work")
    desk.queue("DLQ", "DLA", 1)
    desk.queue("EXP")
    return desk


def test_counts_with_filters_and_groups(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 4, colour="red")
    desk.fill("work", 2, colour="blue", durable=False)
    assert desk.ask("queue.work", "countMessages") == 6
    assert desk.ask("queue.work", "countMessages", "colour = 'red' AND number > 1") == 2
    assert desk.json("queue.work", "countMessages", None, "colour") == {"red": 4, "blue": 2}
    assert desk.get("queue.work", "DurableMessageCount") == 4
    session = desk.session()
    consume(session, desk, "work", "colour = 'blue'")
    desk.settle()
    assert desk.ask("queue.work", "countDeliveringMessages", "number = 1") == 1
    assert desk.ask("queue.work", "countMessages", "number = 1") == 1


def test_documents_are_counted_listed_and_removed_by_xpath(desk: Desk) -> None:
    desk.queue("work")
    for number in range(25):
        message = desk.message("work", text_body(f"<n>{number}</n>"), number=number)
        message.kind = TEXT
        desk.broker.publisher.publish(desk.now, message, None, 0)
    desk.settle()
    assert desk.ask("queue.work", "countMessages", "XPATH '/n > 19' AND number < 24") == 4
    listed = desk.ask("queue.work", "listMessages", "XPATH '/n = 23'")
    assert isinstance(listed, list) and [one["number"] for one in listed] == [23]
    assert desk.ask("queue.work", "removeMessages", "XPATH '/n < 22'") == 22
    assert desk.ask("queue.work", "countMessages") == 3
    with pytest.raises(Refused, match="column 10"):
        desk.ask("queue.work", "countMessages", "XPATH 'n['")


def test_messages_are_shown_with_their_properties(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 3, flag=True, raw=b"\xff\x01", nothing=None, long="x" * 300)
    messages = desk.json("queue.work", "listMessagesAsJSON", "number = 1")
    assert isinstance(messages, list)
    (shown,) = messages
    assert shown["number"] == 1 and shown["flag"] is True and shown["nothing"] == ""
    assert shown["raw"] == [-1, 1] and shown["long"] == "x" * 256 + ", + 44 more"
    assert shown["address"] == "work" and shown["durable"] is True and shown["priority"] == 4
    assert desk.ask("queue.work", "listMessages", None) == desk.json(
        "queue.work", "listMessagesAsJSON", ""
    )
    first = desk.json("queue.work", "getFirstMessageAsJSON")
    assert isinstance(first, list) and first[0]["number"] == 0
    assert desk.get("queue.work", "FirstMessageTimestamp") == desk.now // 1_000_000
    page = desk.ask("queue.work", "browse", 2, 2)
    assert isinstance(page, list) and [one["number"] for one in page] == [2]
    assert page[0]["redelivered"] is False


def test_purge_leaves_what_a_consumer_holds(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 5)
    session = desk.session()
    consume(session, desk, "work", "number = 2")
    desk.settle()
    assert desk.ask("queue.work", "removeAllMessages") == 4
    assert desk.bodies("work") == [b"2"]
    invariants.validate(desk.broker)
    desk.restart()
    assert desk.bodies("work") == [b"2"]


def test_many_messages_are_moved_in_steps_and_answered_at_the_end(desk: Desk) -> None:
    desk.queue("work")
    desk.queue("other")
    desk.fill("work", 1_000)
    assert desk.ask("queue.work", "moveMessages", "number >= 10", "other") == 990
    assert desk.steps >= 3
    assert desk.bodies("other") == [str(number).encode() for number in range(10, 1_000)]
    assert len(desk.bodies("work")) == 10
    invariants.validate(desk.broker)
    desk.restart()
    assert len(desk.bodies("other")) == 990 and len(desk.bodies("work")) == 10


def test_what_arrives_during_a_purge_stays(desk: Desk) -> None:
    queue = desk.queue("work")
    desk.fill("work", 6_000, durable=False)
    desk.put("queue.work", "removeAllMessages")
    assert 0 < queue.message_count < 6_000
    desk.broker.publisher.publish(desk.now, desk.message("work", b"new"), None, 0)
    assert desk.answer() == 6_000
    assert desk.bodies("work") == [b"new"]


def test_a_purge_waits_for_messages_that_are_on_their_way_back(desk: Desk) -> None:
    desk.work_in_steps_of(10)
    queue = desk.queue("work")
    desk.fill("work", 200)
    session = desk.session()
    consume(session, desk, "work")
    desk.settle()
    session.client.close(desk.now, desk.broker.session_services, True)
    assert queue.delivering_count == 190
    assert desk.ask("queue.work", "removeAllMessages") == 200
    assert desk.bodies("work") == []


def test_a_queue_that_goes_ends_the_operation(desk: Desk) -> None:
    desk.queue("work")
    desk.queue("other")
    desk.fill("work", 600)
    desk.put("queue.work", "moveMessages", None, "other")
    desk.put("broker", "deleteAddress", "work", True)
    assert desk.answer() is None
    with pytest.raises(Refused, match="queue work was deleted meanwhile"):
        desk.answer()


def test_one_message_by_its_id(desk: Desk) -> None:
    desk.queue("work")
    desk.queue("other")
    desk.fill("work", 5)
    ids = [reference.message.id for reference in desk.broker.queues["work"].live()]
    assert desk.ask("queue.work", "moveMessage", ids[1], "other") is True
    assert desk.ask("queue.work", "moveMessage", ids[1], "other") is False
    assert desk.ask("queue.work", "copyMessage", ids[2], "other") is True
    assert desk.ask("queue.work", "removeMessage", ids[3]) is True
    assert desk.bodies("work") == [b"0", b"2", b"4"] and desk.bodies("other") == [b"1", b"2"]
    moved = desk.broker.queues["other"].live()[0].message
    assert moved.properties.get("_AMQ_ORIG_QUEUE") == "work"


def test_dead_letters_and_expired_messages_are_retried() -> None:
    desk = desk_with_dead_letters()
    desk.fill("work", 4)
    ids = [reference.message.id for reference in desk.broker.queues["work"].live()]
    assert desk.ask("queue.work", "sendMessageToDeadLetterAddress", ids[0]) is True
    assert desk.ask("queue.work", "sendMessagesToDeadLetterAddress", "number = 1") == 1
    assert desk.ask("queue.work", "expireMessages", "number = 2") == 1
    assert desk.bodies("DLQ") == [b"0", b"1"] and desk.bodies("EXP") == [b"2"]
    assert desk.ask("queue.DLQ", "retryMessages", "number = 0") == 1
    assert desk.bodies("work") == [b"3", b"0"] and desk.bodies("DLQ") == [b"1"]
    assert desk.ask("queue.DLQ", "retryMessages") == 1
    assert desk.bodies("work") == [b"3", b"0", b"1"] and desk.bodies("DLQ") == []
    assert desk.get("queue.work", "DeadLetterAddress") == "DLA"


def test_what_never_came_from_elsewhere_cannot_be_retried(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 3)
    assert desk.ask("queue.work", "retryMessages") == 0
    assert len(desk.bodies("work")) == 3


def test_a_new_priority_counts_for_delivery(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 3)
    assert desk.ask("queue.work", "changeMessagesPriority", "number = 2", 9) == 1
    shown = desk.json("queue.work", "listMessagesAsJSON", None)
    assert isinstance(shown, list) and [one["number"] for one in shown] == [2, 0, 1]
    first = desk.json("queue.work", "peekFirstMessageAsJSON")
    assert isinstance(first, dict) and first["number"] == 2
    session = desk.session()
    consume(session, desk, "work")
    desk.settle()
    assert [body for _, _, body in session.endpoint.delivered] == [b"2", b"0", b"1"]  # type: ignore[attr-defined]


def test_a_message_sent_by_an_operator(desk: Desk) -> None:
    desk.queue("work")
    text = {"colour": "red"}
    sent = desk.ask("queue.work", "sendMessage", text, 3, "hello", True, None, None)
    (reference,) = desk.broker.queues["work"].live()
    assert str(reference.message.id) == sent
    assert reference.message.text() == "hello"
    assert reference.message.properties.get("colour") == "red"
    desk.ask("address.work", "sendMessage", {}, 4, "AAEC", False, None, None, True)
    assert desk.bodies("work")[-1] == b"\0\1\2"
    with pytest.raises(Refused, match="not base64"):
        desk.ask("queue.work", "sendMessage", {}, 4, "?", False, None, None)
    with pytest.raises(Refused, match="not base64"):
        desk.ask("queue.work", "sendMessage", {}, 4, "\u00e9", False, None, None)


def test_the_purge_of_an_address_takes_all_its_queues(desk: Desk) -> None:
    desk.queue("one", "topic", 0)
    desk.queue("two", "topic", 0)
    desk.fill("topic", 3)
    assert desk.ask("address.topic", "purge") == 6
    assert desk.get("address.topic", "MessageCount") == 0


def test_counters_are_reset(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 3)
    desk.ask("queue.work", "resetMessagesAdded")
    assert desk.get("queue.work", "MessagesAdded") == 0


def test_scheduled_messages_are_shown_purged_and_delivered_early(desk: Desk) -> None:
    desk.queue("work")
    later = desk.now // 1_000_000 + 60_000
    desk.fill("work", 3, _AMQ_SCHED_DELIVERY=later)
    desk.fill("work", 2)
    assert desk.get("queue.work", "ScheduledCount") == 3
    shown = desk.json("queue.work", "listScheduledMessagesAsJSON")
    assert isinstance(shown, list) and [one["number"] for one in shown] == [0, 1, 2]
    assert desk.ask("queue.work", "deliverScheduledMessages", "number = 1") is None
    desk.settle()
    assert desk.bodies("work") == [b"0", b"1", b"1"]
    assert desk.ask("queue.work", "removeMessage", shown[2]["messageID"]) is True
    assert desk.ask("queue.work", "removeAllMessages") == 4
    assert desk.get("queue.work", "MessageCount") == 0


def paged_desk(count: int) -> Desk:
    """A queue with `count` messages of which memory holds a few."""
    settings = AddressSettingsRepository()
    settings.add("work", {"max_size_bytes": 40_000, "page_size_bytes": 16_000})
    desk = Desk(settings=settings, paging=True)
    desk.trace.on = False
    desk.queue("work")
    desk.queue("other")
    for start in range(0, count, 10):
        for number in range(start, start + 10):
            message = desk.message("work", bytes(400), number=number)
            desk.broker.publisher.publish(desk.now, message, None, 0)
        desk.settle()
    queue = desk.broker.queues["work"]
    assert queue.paged is not None and len(queue.references) < count // 2
    return desk


def test_messages_in_page_files_are_counted_and_shown() -> None:
    desk = paged_desk(600)
    assert desk.ask("queue.work", "countMessages", "number >= 590") == 10
    messages = desk.ask("queue.work", "browse", 2, 3, "number >= 590")
    assert isinstance(messages, list) and [one["number"] for one in messages] == [593, 594, 595]
    queue = desk.broker.queues["work"]
    assert desk.get("address.work", "Paging") is True
    paged = paged_queue_of(queue)
    assert paged is not None, "looking brings nothing into memory"
    assert desk.get("address.work", "NumberOfPages") == len(paged.pages) > 0


def test_messages_in_page_files_are_purged_and_moved() -> None:
    desk = paged_desk(600)
    assert desk.ask("queue.work", "moveMessages", None, "other", False) == 600
    desk.settle()
    assert desk.get("queue.other", "MessageCount") == 600
    assert desk.broker.queues["work"].message_count == 0
    desk.restart()
    desk.open_desk()
    assert desk.get("queue.other", "MessageCount") == 600
    desk = paged_desk(600)
    assert desk.ask("queue.work", "removeAllMessages") == 600
    assert desk.get("queue.work", "MessageCount") == 0
    invariants.validate(desk.broker)
    desk = paged_desk(600)
    assert desk.ask("queue.work", "removeMessages", "number > 10 AND number <> 500") == 588
    assert desk.get("queue.work", "MessageCount") == 12


def test_a_message_that_says_text_and_has_none_is_shown_by_its_bytes(desk: Desk) -> None:
    """Also when the operation takes several steps, outside of any request."""
    desk.queue("work")
    desk.fill("work", 3_000)
    wrong = desk.message("work", b"\x01\x7f\xff\xff\xff")
    wrong.kind = TEXT
    desk.broker.publisher.publish(desk.now, wrong, None, 0)
    shown = desk.ask("queue.work", "browse", 31, 100)
    assert isinstance(shown, list)
    assert shown[-1]["BodyPreview"] == [1, 127, -1, -1, -1] and "text" not in shown[-1]
    assert desk.steps > 0


def test_a_number_of_messages_limits_what_is_removed_expired_and_dead(desk: Desk) -> None:
    desk = desk_with_dead_letters()
    desk.fill("work", 10)
    assert desk.ask("queue.work", "removeMessages", 500, "", 3) == 3
    assert desk.ask("queue.work", "removeMessages", 500, "number > 8", 3) == 1
    assert desk.ask("queue.work", "removeMessages", 500, "", 0) == 0
    assert desk.ask("queue.work", "expireMessages", "", 2) == 2
    assert desk.ask("queue.work", "sendMessagesToDeadLetterAddress", None, 1) == 1
    assert [desk.ask(f"queue.{name}", "countMessages") for name in ("work", "EXP", "DLQ")] == [3, 2, 1]
    assert desk.ask("queue.work", "removeMessages", 500, "", -1) == 3


def test_a_retry_of_some_passes_over_those_that_have_nowhere_to_go() -> None:
    desk = desk_with_dead_letters()
    desk.fill("DLA", 250)  # they came from nowhere
    desk.fill("work", 300)
    assert desk.ask("queue.work", "sendMessagesToDeadLetterAddress", "") == 300
    assert desk.ask("queue.DLQ", "retryMessages", "", 100) == 100
    assert desk.ask("queue.DLQ", "retryMessages", None, 250) == 200
    assert desk.ask("queue.DLQ", "retryMessages", None, 250) == 0
    assert [desk.ask(f"queue.{name}", "countMessages") for name in ("work", "DLQ")] == [300, 250]
