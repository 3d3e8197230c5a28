"""Address settings and security settings of management: what applies, what is shown, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.stored_settings import StoredSettingsFile
from atalanta.kernel.ports import Process
from atalanta.kernel.security.security import SecurityRule
from atalanta.kernel.settings.broker_config import AddressSetting, BrokerConfig
from atalanta.kernel.settings.effective_settings import settings_repository
from atalanta.kernel.settings.settings_change import SettingsChange
from atalanta.management.operations.settings import OPTIONS, POSITIONAL
from tests.management.address_settings_values import LONG
from tests.management.management_rig import Desk, Refused


class Files(Process):
    """The process of a node without a data folder: settings are kept in memory."""

    def __init__(self, config: BrokerConfig) -> None:
        self.configuration = Configuration(Path("broker.xml"), Path(), config)
        self.file = StoredSettingsFile(None)
        self.asked: list[tuple[int, SettingsChange]] = []

    def change_settings(self, token: int, change: SettingsChange) -> None:
        self.asked.append((token, change))


class SettingsDesk(Desk):
    """A desk whose changes of settings are written while the request waits."""

    def __init__(self) -> None:
        config = BrokerConfig(
            address_settings=[
                AddressSetting("#", {"max_delivery_attempts": 6}),
                AddressSetting("orders.#", {"max_delivery_attempts": 5, "expiry_delay_ms": 50}),
            ],
            security_rules=[SecurityRule("#", {"send": ("amq",), "manage": ("amq",)})],
        )
        self.files = Files(config)
        super().__init__(config, settings_repository(config), process=self.files)
        self.broker.security.enabled = True
        self.broker.security.set_rules(config.security_rules, None)

    def answer(self) -> object:
        for token, change in self.files.asked:
            try:
                stored, why = self.files.file.change(self.files.configuration, change), ""
            except ConfigError as error:
                stored, why = None, "; ".join(map(str, error.problems))
            self.management.settings.changed(self.now, token, stored, why)
        self.files.asked.clear()
        return super().answer()

    def shown(self, address: str) -> dict[str, object]:
        found = self.json("broker", "getAddressSettingsAsJSON", address)
        assert isinstance(found, dict)
        return found

    def roles(self, address: str) -> dict[str, set[str]]:
        found = self.json("broker", "getRolesAsJSON", address)
        assert isinstance(found, list)
        return {row["name"]: {name for name, held in row.items() if held is True} for row in found}


def test_a_setting_replaces_that_of_the_file_with_its_match_and_comes_back_as_json() -> None:
    desk = SettingsDesk()
    desk.queue("orders.a")
    given = {"maxSizeBytes": 2000, "pageSizeBytes": 1000, "addressFullMessagePolicy": "FAIL", "expiryAddress": None,
             "defaultQueueRoutingType": "ANYCAST", "redeliveryMultiplier": 2.5}  # fmt: skip
    answer = desk.json("broker", "addAddressSettings", "orders.#", json.dumps(given))
    assert answer == {name: value for name, value in given.items() if value is not None}
    shown = desk.shown("orders.a")
    assert shown["maxDeliveryAttempts"] == 6, "of #: orders.# has a setting of its own now"
    assert shown["expiryDelay"] == -1
    assert {name: shown.get(name) for name in given} == given
    desk.fill("orders.a", 10)
    assert desk.broker.addresses["orders.a"].account.refusing
    assert desk.ask("broker", "removeAddressSettings", "orders.#") is None
    assert desk.shown("orders.a")["maxDeliveryAttempts"] == 5
    assert desk.shown("orders.a")["expiryDelay"] == 50
    assert desk.ask("broker", "removeAddressSettings", "orders.#") is None, "there is none to remove"
    events = [fields for name, fields in desk.trace.events if name == "settings_changed"]
    assert [fields["how"] for fields in events] == ["set", "removed", "removed"]


def test_every_name_of_artemis_is_known() -> None:
    assert len(POSITIONAL) == len(LONG) == 57
    assert set(POSITIONAL) < set(OPTIONS)


@pytest.mark.parametrize("count", [21, 25, 48, 54, 57])
def test_the_forms_by_position_set_what_they_have_and_defaults_for_the_rest(count: int) -> None:
    desk = SettingsDesk()
    before = desk.shown("orders.a")
    desk.json("broker", "addAddressSettings", "orders.#", '{"minExpiryDelay": 1, "enableMetrics": false}')
    assert desk.ask("broker", "addAddressSettings", "orders.#", *LONG[:count]) is None
    shown = desk.shown("orders.a")
    assert [shown[name] for name in POSITIONAL[:count]] == LONG[:count]
    assert all(shown.get(name) == before.get(name) for name in POSITIONAL[count:])


def test_null_and_empty_texts_of_the_forms_by_position_are_not_set() -> None:
    desk = SettingsDesk()
    desk.ask("broker", "addAddressSettings", "#", '{"expiryAddress": "late", "deadLetterAddress": "dead"}')
    given = [None, "", *LONG[2:]]
    given[13] = None
    given[16] = ""
    desk.ask("broker", "addAddressSettings", "orders.#", *given[:21])
    shown = desk.shown("orders.a")
    assert shown["addressFullMessagePolicy"] == "PAGE" and shown["slowConsumerPolicy"] == "NOTIFY"
    assert shown["deadLetterAddress"] == "dead", "as in a wider match"
    assert "expiryAddress" not in shown, "an empty text takes it away"


@pytest.mark.parametrize(
    ("match", "values", "why"),
    [
        ("a", '{"maxSizeBytes": 100, "pageSizeBytes": 1000}', "pageSize has to be lower than maxSizeBytes"),
        ("a", '{"maxSizeBytes": -2}', "Invalid argument on maxSizeBytes"),
        ("a", '{"addressFullMessagePolicy": "SHRED"}', "'SHRED' is none of PAGE, BLOCK, DROP, FAIL"),
        ("a", '{"maxDeliveryAttempts": "ten"}', "max-delivery-attempts: 'ten' is not a number"),
        ("a", '{"maxDeliveryAttempts": 1.5}', "'1.5' is not a number"),
        ("a", '{"maxDeliveryAttempts": [1]}', r"maxDeliveryAttempts: \[1\] is not a value"),
        ("a", '{"pageSizeBytes": 0}', "0 is less than 1"),
        ("a", '{"autoCreateQueues": 7}', "neither true nor false"),
        ("a", '{"max-size-bytes": 7}', "no address setting 'max-size-bytes'"),
        ("a", "[]", "a JSON object is needed"),
        ("a", "{", "not JSON"),
        ("", "{}", "needs a match"),
        ("a.#.b.#c", "{}", "address-setting 'a.#.b.#c': "),
        ("${HOME}", "{}", "cannot be kept"),
    ],
)
def test_bad_arguments_are_refused_and_change_nothing(match: str, values: str, why: str) -> None:
    desk = SettingsDesk()
    before = desk.shown("a")
    with pytest.raises(Refused, match=why):
        desk.ask("broker", "addAddressSettings", match, values)
    assert desk.shown("a") == before
    assert desk.broker.config.stored.address_settings == []
    desk.ask("broker", "addAddressSettings", "a", '{"maxDeliveryAttempts": 1}')
    assert desk.shown("a")["maxDeliveryAttempts"] == 1


def test_roles_replace_those_of_the_file_for_users_who_are_logged_in_as_well() -> None:
    desk = SettingsDesk()
    desk.broker.security.add_user("foo", "secret", ["foo"])
    foo = desk.broker.security.authenticate("foo", "secret")
    assert foo is not None
    given = ["foo", "foo, bar", None, "bar", "foo bar", "", "", "bar", "foo", "foo", "bar", "foo,"]
    assert not desk.broker.security.allowed(foo, "send", "test.a")
    assert desk.ask("broker", "addSecuritySettings", "test.#", *given) is None
    assert desk.broker.security.allowed(foo, "send", "test.a")
    assert desk.roles("test.a") == {
        "foo": {"send", "consume", "createNonDurableQueue", "createAddress", "deleteAddress", "edit"},
        "bar": {"consume", "deleteDurableQueue", "createNonDurableQueue", "browse", "view"},
    }
    assert desk.roles("else") == {"amq": {"send", "manage"}}
    assert desk.ask("broker", "addSecuritySettings", "#", *["foo"] * 7) is None
    assert set(desk.roles("else")) == {"foo"}
    assert desk.ask("broker", "removeSecuritySettings", "#") is None
    assert desk.roles("else") == {"amq": {"send", "manage"}}
    desk.ask("broker", "removeSecuritySettings", "test.#")
    assert not desk.broker.security.allowed(foo, "send", "test.a")
    with pytest.raises(Refused, match="AMQ229069: no operation addSecuritySettings/2"):
        desk.ask("broker", "addSecuritySettings", "#", "amq")


def test_nobody_has_permissions_when_no_role_is_given() -> None:
    desk = SettingsDesk()
    desk.ask("broker", "addSecuritySettings", "closed", *[""] * 12)
    assert desk.roles("closed") == {}


def test_a_node_that_keeps_no_settings_says_so() -> None:
    with pytest.raises(Refused, match="keeps no settings"):
        Desk().ask("broker", "addSecuritySettings", "#", *["amq"] * 7)
