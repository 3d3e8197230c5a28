"""Rare operations: hold senders back, look at what is under way, read the files again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.kernel.ports import Process
from tests.kernel.broker_rig import consume, endpoint
from tests.management.management_rig import REPLIES, Desk, Refused


def test_a_blocked_address_gives_no_credits_until_it_is_unblocked(desk: Desk) -> None:
    desk.queue("work")
    desk.queue("other")
    session = desk.session()
    assert desk.get("address.work", "BlockedViaManagement") is False
    assert desk.ask("address.work", "block") is True
    assert desk.ask("address.work", "block") is False
    assert desk.get("address.work", "BlockedViaManagement") is True
    seen = endpoint(session)
    for address in ("work", "other"):
        account = desk.broker.addresses[address].account
        desk.broker.memory.request(seen, account, address, 1_000, False)
    desk.settle()
    assert seen.granted == [("other", 1_000)]
    desk.ask("address.work", "unblock")
    desk.settle()
    assert seen.granted == [("other", 1_000), ("work", 1_000)]
    desk.ask("address.work", "schedulePageCleanup")


def held(desk: Desk, queue: str) -> dict[str, list[object]]:
    """The property `number` of the messages in delivery, by consumer."""
    found = desk.ask(f"queue.{queue}", "listDeliveringMessages")
    assert isinstance(found, dict)
    shown = desk.json(f"queue.{queue}", "listDeliveringMessagesAsJSON")
    assert isinstance(shown, list)
    assert found == {one["consumerName"]: one["elements"] for one in shown}
    return {name: [each["number"] for each in maps] for name, maps in found.items()}


def test_what_consumers_hold(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 3)
    consume(desk.session(), desk, "work", "number < 2", consumer_id=4)
    consume(desk.session(), desk, "work", "number = 2", consumer_id=4)
    desk.settle()
    expected = {
        f"ServerConsumer [id=0000000{number}:session-{number}:4,"
        f" filter=FilterImpl [sfilterString={text}], binding=LocalQueueBinding"
        " [address=work, queue=QueueImpl[name=work, temp=false]]]": numbers
        for number, text, numbers in ((1, "number < 2", [0, 1]), (2, "number = 2", [2]))
    }
    assert held(desk, "work") == expected
    assert desk.get("queue.work", "PreparedTransactionMessageCount") == 0


def test_messages_of_an_open_transaction_are_in_delivery(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 300)
    session = desk.session(transacted=True)
    consume(session, desk, "work", consumer_id=4)
    desk.settle()
    references = session.consumers[4].unacknowledged.values()
    session.acknowledge(desk.now, 4, references[1].message.id, False, 0)
    assert list(held(desk, "work").values()) == [list(range(300))]
    session.close_consumer(desk.now, 4)
    assert held(desk, "work") == {"ServerSession [id=00000001:session-1]": [0, 1]}
    session.commit(desk.now, 0)
    desk.settle()
    assert held(desk, "work") == {}


def test_what_there_is_none_of_is_empty_and_the_rest_says_where_it_stands(desk: Desk) -> None:
    assert desk.ask("broker", "listBrokerConnections") == "[]"
    assert desk.ask("broker", "listDivertNames") == []
    assert desk.get("broker", "BrokerPluginClassNames") == []
    with pytest.raises(Refused, match="no configuration files"):
        desk.ask("broker", "reloadConfigurationFile")
    connectors = {"here": {"host": "a", "port": "61616"}}
    for name, parameters in connectors.items():
        desk.resources.register_connector(name, parameters)
    shown = desk.json_attribute("broker", "ConnectorsAsJSON")
    assert [(row["name"], row["params"]) for row in shown] == list(connectors.items())


def test_a_reload_is_answered_when_it_is_over() -> None:
    class Reloads(Process):
        def __init__(self) -> None:
            self.asked: list[Callable[[int, str], None]] = []

        def reload(self, why: str, done: Callable[[int, str], None]) -> None:
            self.asked.append(done)

    process = Reloads()
    desk = Desk(process=process)
    desk.put("broker", "reloadConfigurationFile")
    desk.settle()
    assert not desk.broker.queues[REPLIES].live()
    process.asked.pop()(desk.now, "")
    assert desk.answer() is None
    desk.put("broker", "reloadConfigurationFile")
    process.asked.pop()(desk.now, "broker.xml:7: not a number")
    with pytest.raises(Refused, match="xml:7: not a number"):
        desk.answer()


def test_the_duplicate_ids_of_an_address_are_cleared_for_good(desk: Desk) -> None:
    desk.queue("work")
    assert desk.ask("address.work", "clearDuplicateIdCache") is False
    desk.ask("broker", "updateDuplicateIdCache", "work", ["one", "two"])
    assert desk.get("address.work", "CurrentDuplicateIdCacheSize") == 2
    assert desk.ask("address.work", "clearDuplicateIdCache") is True
    assert desk.get("address.work", "CurrentDuplicateIdCacheSize") == 0
    desk.restart()
    desk.open_desk()
    assert desk.get("address.work", "CurrentDuplicateIdCacheSize") == 0


def test_a_replay_names_the_journal_that_is_missing(desk: Desk) -> None:
    with pytest.raises(Refused, match="retention journal"):
        desk.ask("broker", "replay", "work", "copies", None)
