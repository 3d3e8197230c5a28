"""XPATH wherever a selector stands: which consumer and which queue gets which document."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import INVALID_FILTER, BrokerError
from atalanta.kernel.queue.reference import READY
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.codec import text_body
from atalanta.message.message import TEXT, Message
from atalanta.message.selector.nodes import XPath
from tests.kernel.broker_rig import Bench, consume, endpoint
from tests.kernel.memory.large_rig import LargeBench

RED, BLUE, TEXT_BODY = "<car><colour>red</colour></car>", "<car><colour>blue</colour></car>", "red"
IS_RED, IS_BLUE = "XPATH '/car[colour=\"red\"]'", "XPATH '/car[colour=\"blue\"]'"


def text_message(bench: Bench, address: str, body: str, number: int = 0) -> Message:
    message = bench.message(address, text_body(body), number=number)
    message.kind = TEXT
    return message


def send(bench: Bench, address: str, *bodies: str) -> None:
    session = bench.session()
    for number, body in enumerate(bodies):
        session.send(bench.now, text_message(bench, address, body, number), number)
    bench.settle()


def texts(bench: Bench, queue: str) -> list[str | None]:
    return [reference.message.text() for reference in bench.broker.queues[queue].live()]


def test_each_consumer_gets_its_documents_in_order(bench: Bench) -> None:
    bench.queue("cars")
    session = bench.session()
    consume(session, bench, "cars", IS_RED, consumer_id=1)
    consume(session, bench, "cars", IS_BLUE, consumer_id=2)
    send(bench, "cars", RED, BLUE, TEXT_BODY, RED, "<car", BLUE)
    given = [(consumer, body) for consumer, _, body in endpoint(session).delivered]
    assert [body for consumer, body in given if consumer == 1] == [text_body(RED)] * 2
    assert [body for consumer, body in given if consumer == 2] == [text_body(BLUE)] * 2
    waiting = [each for each in bench.broker.queues["cars"].live() if each.state == READY]
    assert [each.message.text() for each in waiting] == [TEXT_BODY, "<car"]


def test_a_browser_sees_the_documents_that_it_asks_for(bench: Bench) -> None:
    bench.queue("cars")
    send(bench, "cars", RED, TEXT_BODY, BLUE, RED)
    session = bench.session()
    consume(session, bench, "cars", IS_RED, browse=True)
    bench.settle()
    assert endpoint(session).bodies() == [text_body(RED)] * 2


def test_queues_with_filters_get_their_documents_also_after_a_restart(bench: Bench) -> None:
    bench.queue("red", "cars", 0, IS_RED)
    bench.queue("others", "cars", 0, f"NOT ({IS_RED})")
    for _ in range(2):
        send(bench, "cars", RED, BLUE, TEXT_BODY)
        bench.restart()
    assert texts(bench, "red") == [RED] * 2
    assert texts(bench, "others") == [BLUE, TEXT_BODY] * 2


def test_a_divert_takes_its_documents(bench: Bench) -> None:
    bench.queue("cars")
    bench.queue("audit")
    config = DivertConfig("d", "cars", "audit", filter_text=IS_RED)
    bench.broker.diverts.create(config, False)
    send(bench, "cars", RED, BLUE)
    assert (texts(bench, "cars"), texts(bench, "audit")) == ([RED, BLUE], [RED])


def test_documents_in_page_files_match() -> None:
    settings = AddressSettingsRepository()
    settings.add("#", {"max_size_bytes": 20_000, "page_size_bytes": 8_000})
    bench = Bench(settings=settings, paging=True)
    bench.queue("cars")
    bodies = [RED.replace("red", "blue" if n % 50 else "red") + " " * 300 for n in range(300)]
    send(bench, "cars", *bodies)
    assert bench.pages is not None and bench.pages.files
    browser, consumer = bench.session(), bench.session()
    consume(browser, bench, "cars", IS_RED, browse=True)
    consume(consumer, bench, "cars", IS_RED)
    bench.settle()
    reds = [text_body(body) for body in bodies if "red" in body]
    assert len(reds) == 6 and endpoint(browser).bodies() == endpoint(consumer).bodies() == reds
    validate(bench.broker)


def test_large_messages_do_not_match() -> None:
    """Their body is in a file, which Artemis does not read for a filter either."""
    bench = LargeBench()
    bench.publish("orders", 1_000)
    session = bench.session()
    consume(session, bench, "orders", "XPATH '/*'", consumer_id=1)
    bench.settle()
    assert endpoint(session).bodies() == []
    consume(session, bench, "orders", "NOT XPATH '/*'", consumer_id=2)
    bench.settle()
    assert [consumer for consumer, _, _ in endpoint(session).delivered] == [2]


@pytest.mark.parametrize("mixed", [False, True])
def test_one_dispatch_reads_few_documents(bench: Bench, mixed: bool) -> None:
    """Parsing takes 200 times as long as reading a property: the node turns to others in between."""
    queue = bench.queue("cars")
    bodies = [BLUE] * 300 + [RED] * 300
    session = bench.session()
    for number, body in enumerate(bodies):
        message = text_message(bench, "cars", body, number)
        message.priority = 4 + (number % 2 if mixed else 0)
        session.send(bench.now, message, number)
    bench.settle()
    consume(session, bench, "cars", IS_RED)
    selector = queue.consumers[0].selector
    assert selector is not None and isinstance(selector.condition, XPath)
    seen: list[Message] = []
    matches = selector.condition.matches

    def counted(message: Message) -> bool:
        seen.append(message)
        return matches(message)

    selector.condition.matches = counted
    most = 0
    while bench.broker.dispatches.dirty:
        before = len(seen)
        bench.broker.flush(bench.now)
        bench.journal.durable = bench.journal.last
        bench.broker.on_durable(bench.now, bench.journal.last)
        most = max(most, len(seen) - before)
    assert endpoint(session).bodies() == [text_body(RED)] * 300
    assert most < 100


def test_an_invalid_expression_is_refused_with_its_position(bench: Bench) -> None:
    bench.queue("cars")
    session = bench.session()
    for create in (
        lambda: consume(session, bench, "cars", "XPATH '//car['"),
        lambda: bench.queue("red", "cars", 0, "XPATH '//car['"),
    ):
        with pytest.raises(BrokerError) as caught:
            create()
        assert caught.value.code == INVALID_FILTER
        assert "invalid XPath expression (column 14)" in caught.value.text
    assert "red" not in bench.broker.queues
