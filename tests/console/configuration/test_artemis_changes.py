"""The operations of Artemis' management that a change becomes."""

from __future__ import annotations

import json

from atalanta.console.configuration.artemis_changes import (
    artemis_operation,
    artemis_parameters,
    artemis_preview,
)
from atalanta.console.configuration.artemis_configuration import setting_element, setting_name
from atalanta.console.configuration.artemis_reach import REACH
from atalanta.console.configuration.change_answer import ElementChange
from atalanta.console.configuration.element_kinds import KINDS


def test_each_kind_says_what_artemis_does_with_it() -> None:
    assert set(REACH) == {kind.name for kind in KINDS}
    assert all(reach.untold or reach.actions or reach.reason for reach in REACH.values())


def test_settings_have_the_names_of_artemis_json() -> None:
    change = ElementChange(
        "add", "address-setting", "a.#",
        {"dead-letter-address": "DLQ", "max-size-bytes": "100", "auto-create-queues": "false",
         "address-full-policy": "DROP", "expiry-address": None},
    )  # fmt: skip
    assert artemis_operation(change) == "addAddressSettings"
    match, text = artemis_parameters(change)
    assert match == "a.#" and json.loads(str(text)) == {
        "deadLetterAddress": "DLQ", "maxSizeBytes": 100, "autoCreateQueues": False, "addressFullMessagePolicy": "DROP",
    }  # fmt: skip
    for name in ("dead-letter-address", "address-full-policy", "send-to-dla-on-no-route", "max-size-bytes"):
        assert setting_element(setting_name(name)) == name


def test_roles_stand_at_their_places() -> None:
    change = ElementChange("add", "security-setting", "a.#", {"send": ["x", "y"], "edit": ["z"]})
    assert artemis_parameters(change) == ["a.#", "x,y", *[""] * 10, "z"]


def test_a_connector_is_an_address() -> None:
    change = ElementChange("add", "connector", "c", {"host": "h", "port": "61617"})
    assert artemis_parameters(change) == ["c", "tcp://h:61617"]


def test_what_artemis_cannot_do_is_refused_with_the_reason() -> None:
    assert "tells nothing" in artemis_preview(ElementChange("add", "discovery-group", "d")).refused
    assert "restart" in artemis_preview(ElementChange("remove", "acceptor", "a")).refused
    assert "has no concurrency" in artemis_preview(ElementChange("add", "bridge", "b", {"concurrency": "2"})).refused
