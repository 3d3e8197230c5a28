"""Queues, addresses and diverts that an operator makes, changes and deletes."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.routing.divert_config import ADD_HEADERS
from tests.kernel.broker_rig import consume, endpoint
from tests.management.management_rig import Desk, Refused


def test_queues_by_the_long_and_short_forms(desk: Desk) -> None:
    text = desk.ask("broker", "createQueue", "a", "MULTICAST", "q", "x > 1", True, 3, True, True)
    assert text == (
        "Queue [name=q, address=a, routingType=MULTICAST, filter=x > 1, durable=true, maxConsumers=3, "
        "purgeOnNoConsumers=true, autoCreateAddress=false, exclusive=false, lastValue=false, "
        "lastValueKey=null, nonDestructive=false, consumersBeforeDispatch=0, delayBeforeDispatch=-1, "
        "autoCreateAddress=false]"
    )
    assert desk.ask("broker", "createQueue", "a", "second", False, "MULTICAST") is None
    assert desk.get("queue.second", "Durable") is False
    assert desk.ask("broker", "createQueue", "b", "third", None, True, "ANYCAST") is None
    assert desk.ask("broker", "getQueueNames", "ANYCAST") == ["third"]
    desk.restart()
    desk.open_desk()
    assert desk.get("queue.q", "Filter") == "x > 1"
    assert desk.get("queue.q", "MaxConsumers") == 3


def test_a_queue_by_json(desk: Desk) -> None:
    wanted = {"name": "q", "address": "a", "routing-type": "ANYCAST", "max-consumers": 2}
    made = desk.json("broker", "createQueue", json.dumps(wanted))
    assert isinstance(made, dict) and made["name"] == "q" and made["max-consumers"] == 2
    again = desk.json("broker", "createQueue", json.dumps(wanted), True)
    assert again == made
    changed = desk.json("broker", "updateQueue", json.dumps({"name": "q", "max-consumers": 9}))
    assert isinstance(changed, dict) and changed["max-consumers"] == 9
    with pytest.raises(Refused, match=r"AMQ229211: .* for address: a are \[ANYCAST\]"):
        desk.json("broker", "updateQueue", json.dumps({"name": "q", "routing-type": "MULTICAST"}))
    with pytest.raises(Refused, match="a queue has no option colour"):
        desk.ask("broker", "createQueue", json.dumps({"name": "x", "colour": 1}))
    with pytest.raises(Refused, match="Failed to parse JSON"):
        desk.ask("broker", "createQueue", "{}")


def test_an_address_must_be_there_unless_it_may_be_made(desk: Desk) -> None:
    with pytest.raises(Refused, match="AMQ229203: Address Does Not Exist: a"):
        desk.ask("broker", "createQueue", "a", "ANYCAST", "q", None, True, -1, False, False)
    assert "Address [name=a" in str(desk.ask("broker", "createAddress", "a", "MULTICAST"))
    with pytest.raises(Refused, match="AMQ229207: Can not create queue with routing type"):
        desk.ask("broker", "createQueue", "a", "ANYCAST", "q", None, True, -1, False, False)
    assert "MULTICAST,ANYCAST" in str(desk.ask("broker", "updateAddress", "a", "ANYCAST,MULTICAST"))
    desk.ask("broker", "createQueue", "a", "ANYCAST", "q", None, True, -1, False, False)
    with pytest.raises(Refused, match="AMQ229209: Can't remove routing type ANYCAST"):
        desk.ask("broker", "updateAddress", "a", "MULTICAST")


def test_a_queue_with_consumers_goes_only_by_force(desk: Desk) -> None:
    desk.queue("work")
    desk.fill("work", 10)
    session = desk.session()
    consume(session, desk, "work", consumer_id=4)
    desk.settle()
    with pytest.raises(Refused, match="it has consumers = 1"):
        desk.ask("broker", "destroyQueue", "work")
    assert desk.ask("broker", "destroyQueue", "work", True, True) is None
    assert endpoint(session).gone == [4]
    assert "work" not in desk.broker.queues and "work" not in desk.broker.addresses


def test_an_address_goes_with_its_queues_by_force(desk: Desk) -> None:
    desk.queue("one", "topic", 0)
    desk.queue("two", "topic", 0)
    assert desk.ask("broker", "deleteAddress", "topic", True) is None
    assert desk.ask("broker", "getQueueNames") == ["replies"]
    with pytest.raises(Refused, match="AMQ229203"):
        desk.ask("broker", "deleteAddress", "topic")


def test_diverts(desk: Desk) -> None:
    desk.queue("work")
    desk.queue("copy")
    desk.ask("broker", "createDivert", "d", "d", "work", "copy", False, None, None)
    assert desk.get("broker", "DivertNames") == ["d"]
    assert desk.get("divert.d", "ForwardingAddress") == "copy"
    assert desk.get("divert.d", "Exclusive") is False
    desk.fill("work", 2)
    assert desk.bodies("copy") == [b"0", b"1"]
    desk.ask("broker", "destroyDivert", "d")
    with pytest.raises(Refused, match="Cannot find resource with name divert.d"):
        desk.get("divert.d", "Address")
    with pytest.raises(Refused, match="is a Java class"):
        desk.ask("broker", "createDivert", "d", "d", "work", "copy", False, None, "com.Mine")


def test_a_divert_is_changed(desk: Desk) -> None:
    for name in ("work", "copy", "other"):
        desk.queue(name)
    headers = {"class-name": ADD_HEADERS, "properties": {"k": "v"}}
    wanted = {"name": "d", "address": "work", "forwarding-address": "copy", "filter-string": "number > 0"}
    made = json.dumps({**wanted, "routing-type": "PASS", "transformer-configuration": headers})
    desk.ask("broker", "createDivert", made)
    desk.fill("work", 2)
    assert desk.bodies("copy") == [b"1"]
    desk.ask("broker", "updateDivert", "d", "other", None, None, None, "ANYCAST")
    assert desk.get("divert.d", "ForwardingAddress") == "other"
    assert desk.get("divert.d", "Filter") is None
    assert desk.get("divert.d", "RoutingType") == "ANYCAST"
    assert desk.get("divert.d", "TransformerProperties") == {"k": "v"}  # not named: it stays
    desk.ask("broker", "updateDivert", json.dumps({"name": "d", "filter-string": "number = 0"}))
    desk.fill("work", 2)
    assert desk.bodies("copy") == [b"1"] and desk.bodies("other") == [b"0"]
    assert desk.get("divert.d", "RoutingType") == "STRIP"
    desk.restart()
    desk.broker.diverts.deploy()
    desk.open_desk()
    assert desk.get("divert.d", "Filter") == "number = 0"
    assert desk.get("divert.d", "ForwardingAddress") == "other"
    with pytest.raises(Refused, match="AMQ229231: Divert Does Not Exist: none"):
        desk.ask("broker", "updateDivert", json.dumps({"name": "none"}))
    with pytest.raises(Refused):
        desk.ask("broker", "updateDivert", "d", None, "not a ( filter", None, None, None)
    assert desk.get("divert.d", "Filter") == "number = 0"


def test_roles_of_an_address(desk: Desk) -> None:
    desk.broker.security.add_rule("a.#", {"send": ["writers"], "consume": ["readers", "writers"]})
    roles = desk.json("broker", "getRolesAsJSON", "a.b")
    assert isinstance(roles, list)
    by_name = {role["name"]: role for role in roles}
    assert by_name["writers"]["send"] is True and by_name["readers"]["send"] is False
    assert desk.ask("broker", "getRoles", "elsewhere") == []


def test_queues_of_every_kind_are_made_and_changed(desk: Desk) -> None:
    wanted = {"name": "q", "last-value-key": "stock", "ring-size": "10", "group-buckets": 4}
    made = desk.json("broker", "createQueue", json.dumps(wanted))
    assert isinstance(made, dict)
    assert made["last-value"] is True and made["ring-size"] == 10 and made["group-buckets"] == 4
    text = desk.ask(
        "broker", "updateQueue", "q", None, "x = 1", None, None, True, None, None, None, None, 2, 50,
        None, 7,
    )  # fmt: skip
    assert "filter=x = 1" in str(text) and "exclusive=true" in str(text)
    assert "consumersBeforeDispatch=2, delayBeforeDispatch=50" in str(text)
    assert desk.get("queue.q", "RingSize") == 7
    assert desk.ask("queue.q", "disable") is None
    desk.restart()
    desk.open_desk()
    assert desk.get("queue.q", "Enabled") is False and desk.get("queue.q", "Exclusive") is True
    desk.ask("queue.q", "enable")
    assert desk.get("queue.q", "Enabled") is True


def test_groups_are_listed_and_shared_anew(desk: Desk) -> None:
    desk.queue("work")
    session = desk.session()
    consume(session, desk, "work", consumer_id=1)
    desk.fill("work", 2, _AMQ_GROUP_ID="a")
    groups = desk.json("queue.work", "listGroupsAsJSON")
    assert isinstance(groups, list) and [one["groupID"] for one in groups] == ["a"]
    assert groups[0]["consumerID"] == 1
    assert desk.get("queue.work", "GroupCount") == 1
    desk.ask("queue.work", "resetGroup", "a")
    desk.ask("queue.work", "resetAllGroups")
    assert desk.get("queue.work", "GroupCount") == 0


def test_a_queue_is_made_auto_created_or_configuration_managed(desk: Desk) -> None:
    desk.ask("broker", "createQueue", json.dumps({"name": "a", "auto-created": True}))
    desk.ask("broker", "createQueue", json.dumps({"name": "b", "configuration-managed": True}))
    desk.ask("broker", "createQueue", json.dumps({"name": "c"}))
    found: list[tuple[object, object]] = []
    for name in "abc":
        made = desk.json("broker", "getQueueConfigurationAsJSON", name)
        assert isinstance(made, dict)
        found.append((made["auto-created"], made["configuration-managed"]))
    assert found == [(True, False), (False, True), (False, False)]
    assert desk.get("queue.a", "AutoDelete") is True


def test_the_bindings_of_an_address_are_its_queues_and_diverts(desk: Desk) -> None:
    desk.queue("work")
    desk.queue("copies")
    desk.ask("broker", "createDivert", "copy", "copy", "work", "copies", False, None, None)
    assert desk.get("address.work", "BindingNames") == ["work", "copy"]
    assert desk.get("address.copies", "BindingNames") == ["copies"]


def test_a_queue_that_is_about_to_end_is_replaced(desk: Desk) -> None:
    """Its connection is closed, and its deletion waits for other work."""
    for number in range(2):
        desk.queue(f"q{number}", durable=False, temporary=True).ownerless = True
    desk.ask("broker", "createQueue", "q0", "ANYCAST", "q0", None, True, -1, False, True)
    desk.ask("broker", "createQueue", json.dumps({"name": "q1", "durable": True}), True)
    assert [desk.broker.queues[f"q{number}"].durable for number in range(2)] == [True, True]
