"""Numbers at the limits of their types as parameters of management: an answer or a refusal, and the node lives."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.routing.divert_config import DivertConfig
from tests.kernel.broker_rig import consume
from tests.management.management_rig import Desk, Refused

EXTREMES = (-(2**63), -1, 0, 1, 2**15, 2**16, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30)
# They are answered by the process around the node.
BY_PROCESS = ("addAddressSettings", "addConnector", "createBridge", "createConnectorService")
OTHERS: dict[str, object] = {"s": "work", "S": None, "b": False, "B": None, "a": [], "m": {}}
NUMBERS = "ilILd"
KEYS = (
    "max-consumers", "consumers-before-dispatch", "delay-before-dispatch", "group-buckets", "ring-size",
    "auto-delete-delay", "auto-delete-message-count",
)  # fmt: skip


def desk_with_messages() -> Desk:
    desk = Desk()
    desk.queue("work")
    desk.queue("other")
    desk.broker.diverts.create(DivertConfig(name="d", address="work", forwarding_address="other"), False)
    desk.fill("work", 3)
    at_ms = desk.now // 1_000_000 + 1_000
    desk.fill("work", 2, _AMQ_SCHED_DELIVERY=at_ms)
    return desk


def calls() -> list[tuple[str, str, str]]:
    """Resource, operation and types of each overload that has a number."""
    found: list[tuple[str, str, str]] = []
    controls = desk_with_messages().management.controls
    for resource in ("broker", "queue.work", "address.work", "divert.d"):
        control = controls[resource.partition(".")[0]]
        for name, overloads in control.operations.items():
            found.extend(
                (resource, name, types)
                for types, _ in overloads
                if any(letter in NUMBERS for letter in types) and name not in BY_PROCESS
            )
    return found


@pytest.mark.parametrize(("resource", "name", "types"), calls())
def test_no_parameter_ends_the_node(resource: str, name: str, types: str) -> None:
    desk = desk_with_messages()
    for value in EXTREMES:
        for target in ("work", "other"):
            given = [value if letter in NUMBERS else OTHERS[letter] for letter in types]
            given = [target if each == "work" else each for each in given]
            try:
                desk.ask(resource, name, *given)
            except Refused as refusal:
                assert str(refusal)
            if "work" not in desk.broker.queues:
                desk = desk_with_messages()
            validate(desk.broker)
    desk.settle()
    desk.restart()
    validate(desk.broker)


@pytest.mark.parametrize("key", KEYS)
def test_a_queue_with_such_numbers_works_or_is_refused_by_name(key: str) -> None:
    for value in EXTREMES:
        desk = desk_with_messages()
        for operation, name in (("createQueue", "fresh"), ("updateQueue", "work")):
            definition = {"name": name, "address": name, "routing-type": "ANYCAST", key: value}
            try:
                desk.ask("broker", operation, json.dumps(definition))
            except Refused as refusal:
                assert key in str(refusal) or "max consumer" in str(refusal)
                assert str(value) in str(refusal)
                continue
            desk.fill(name, 2, _AMQ_GROUP_ID="g")
            if key != "max-consumers" or value != 0:
                consume(desk.session(), desk, name)
            desk.settle()
            validate(desk.broker)
        desk.restart()
        validate(desk.broker)
