"""Address settings and security settings, changed and shown by management (ActiveMQServerControlImpl).

A change is durable in a file of the process before it applies and the request is answered.
"""

from __future__ import annotations

import re
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.settings.repository import AddressSettings
from atalanta.kernel.settings.settings_change import (
    ADDRESS_SETTING,
    SECURITY_SETTING,
    SettingsChange,
)
from atalanta.management.operations.roles import IN_ARRAYS
from atalanta.management.request.call import (
    LATER,
    Call,
    Operations,
    Parameters,
    optional_text,
    text_of,
)
from atalanta.management.request.json_text import encode_json, read_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.kernel.ports import Process
    from atalanta.kernel.settings.broker_config import StoredSettings
    from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
    from atalanta.management.request.replies import Replies

PENDING_MAX: Final = 1_000
# The names in Artemis' JSON that are not made of the words of the element's name.
OTHER_NAMES: Final = {
    "address-full-policy": "addressFullMessagePolicy",
    "disk-full-policy": "diskFullMessagePolicy",
    "page-full-policy": "pageFullMessagePolicy",
    "page-max-cache-size": "pageCacheMaxSize",
    "redelivery-delay-multiplier": "redeliveryMultiplier",
    "send-to-dla-on-no-route": "sendToDLAOnNoRoute",
}
# The parameters of the deprecated forms of addAddressSettings after the match, and how many each form has.
POSITIONAL: Final = (
    "deadLetterAddress expiryAddress expiryDelay defaultLastValueQueue maxDeliveryAttempts maxSizeBytes "
    "pageSizeBytes pageCacheMaxSize redeliveryDelay redeliveryMultiplier maxRedeliveryDelay redistributionDelay "
    "sendToDLAOnNoRoute addressFullMessagePolicy slowConsumerThreshold slowConsumerCheckPeriod slowConsumerPolicy "
    "autoCreateJmsQueues autoDeleteJmsQueues autoCreateJmsTopics autoDeleteJmsTopics autoCreateQueues "
    "autoDeleteQueues autoCreateAddresses autoDeleteAddresses configDeleteQueues configDeleteAddresses "
    "maxSizeBytesRejectThreshold defaultLastValueKey defaultNonDestructive defaultExclusiveQueue "
    "defaultGroupRebalance defaultGroupBuckets defaultGroupFirstKey defaultMaxConsumers defaultPurgeOnNoConsumers "
    "defaultConsumersBeforeDispatch defaultDelayBeforeDispatch defaultQueueRoutingType defaultAddressRoutingType "
    "defaultConsumerWindowSize defaultRingSize autoDeleteCreatedQueues autoDeleteQueuesDelay "
    "autoDeleteQueuesMessageCount autoDeleteAddressesDelay redeliveryCollisionAvoidanceFactor "
    "retroactiveMessageCount autoCreateDeadLetterResources deadLetterQueuePrefix deadLetterQueueSuffix "
    "autoCreateExpiryResources expiryQueuePrefix expiryQueueSuffix minExpiryDelay maxExpiryDelay enableMetrics"
).split()
POSITIONAL_COUNTS: Final = (21, 25, 48, 54, 57)
ROLE_COUNTS: Final = (7, 8, 10, 12)
LETTERS: Final = {"bool": "b", "int": "l", "float": "d", "str": "S"}


def json_name(element: str) -> str:
    """Returns the name in Artemis' JSON (AddressSettings.metaBean) of an element of an address setting."""
    first, *others = element.split("-")
    return OTHER_NAMES.get(element) or first + "".join(word.capitalize() for word in others)


OPTIONS: Final[dict[str, Field[Any]]] = {
    json_name(each.metadata["xml"]): each for each in fields(AddressSettings)
}


class SettingsOperations:
    """The operations of the resource `broker` on settings. A change waits in `pending` for its file, then `apply` gets
    all stored settings."""

    def __init__(
        self,
        settings: AddressSettingsRepository,
        apply: Callable[[int, StoredSettings], None],
        process: Process,
        replies: Replies,
    ) -> None:
        self.settings = settings
        self.apply = apply
        self.process = process
        self.replies = replies
        self.pending: dict[int, tuple[Call, SettingsChange, bool]] = {}
        self.last_token = 0
        letters = "".join(
            "S" if OPTIONS[name].metadata["choices"] else LETTERS[OPTIONS[name].metadata["kind"]]
            for name in POSITIONAL
        )
        self.operations: Operations = {
            "getAddressSettingsAsJSON": [("s", self.address_settings_as_json)],
            "addAddressSettings": [
                ("ss", self.add_address_json),
                *(("s" + letters[:count], self.add_address) for count in POSITIONAL_COUNTS),
            ],
            "removeAddressSettings": [("s", self.remove_address)],
            "addSecuritySettings": [
                ("s" + "S" * count, self.add_security) for count in ROLE_COUNTS
            ],
            "removeSecuritySettings": [("s", self.remove_security)],
        }

    def address_settings_as_json(self, call: Call, given: Parameters) -> object:
        """Returns the effective address settings of one address (AddressSettings.toJSON), defaults as well."""
        settings = self.settings.match(text_of(given, 0))
        return encoded({each.name: getattr(settings, each.name) for each in OPTIONS.values()})

    def add_address_json(self, call: Call, given: Parameters) -> object:
        """Sets the address settings of a match: (match, JSON). Returns them as JSON; null values are not set."""
        return self._add_address(call, text_of(given, 0), read_object(text_of(given, 1)), True)

    def add_address(self, call: Call, given: Parameters) -> object:
        """Sets the address settings of a match by position. What the form does not have gets its default."""
        values: dict[str, object] = {}
        for index, name in enumerate(POSITIONAL):
            entry = OPTIONS[name]
            value = given[index + 1] if index + 1 < len(given) else default_of(entry)
            if value in (None, "") and entry.metadata["choices"]:
                value = default_of(entry)
            if value != "" or name in ("deadLetterAddress", "expiryAddress"):
                values[name] = value
        return self._add_address(call, text_of(given, 0), values, False)

    def _add_address(
        self, call: Call, match: str, values: dict[str, object], returned: bool
    ) -> object:
        size, page = values.get("maxSizeBytes"), values.get("pageSizeBytes")
        if isinstance(size, int) and size < -1:
            raise BrokerError(ILLEGAL_STATE, "Invalid argument on maxSizeBytes")
        if isinstance(size, int) and isinstance(page, int) and page > size > 0:
            why = f"pageSize has to be lower than maxSizeBytes. Invalid argument ({page} < {size})"
            raise BrokerError(ILLEGAL_STATE, why)
        texts: dict[str, str] = {}
        for name, value in values.items():
            if name not in OPTIONS:
                raise BrokerError(ILLEGAL_STATE, f"there is no address setting '{name}'")
            if value is not None:
                texts[OPTIONS[name].metadata["xml"]] = setting_text(name, value)
        return self._change(call, SettingsChange(ADDRESS_SETTING, match, texts), returned)

    def remove_address(self, call: Call, given: Parameters) -> object:
        """Removes the settings that management made for a match; those of broker.xml apply again."""
        return self._change(call, SettingsChange(ADDRESS_SETTING, text_of(given, 0), None))

    def add_security(self, call: Call, given: Parameters) -> object:
        """Sets the roles of a match, in the order of CheckType; separated by commas or blanks (SecurityFormatter)."""
        roles = {}
        for index, permission in enumerate(IN_ARRAYS[: len(given) - 1]):
            names = re.findall("[^, ]+", optional_text(given, index + 1) or "")
            if names:
                roles[permission] = ",".join(names)
        return self._change(call, SettingsChange(SECURITY_SETTING, text_of(given, 0), roles))

    def remove_security(self, call: Call, given: Parameters) -> object:
        """Removes the roles that management set for a match; those of broker.xml apply again."""
        return self._change(call, SettingsChange(SECURITY_SETTING, text_of(given, 0), None))

    def _change(self, call: Call, change: SettingsChange, returned: bool = False) -> object:
        if len(self.pending) >= PENDING_MAX:
            raise BrokerError(ILLEGAL_STATE, f"{PENDING_MAX} changes of settings are under way")
        self.last_token += 1
        self.process.change_settings(self.last_token, change)
        self.pending[self.last_token] = (call, change, returned)
        return LATER

    def changed(self, now: int, token: int, stored: StoredSettings | None, why: str) -> None:
        """Applies the stored settings after a change and answers its request; None: refused, `why` has the reason."""
        call, change, returned = self.pending.pop(token)
        if stored is None:
            self.replies.refuse(now, call, why)
            return
        self.apply(now, stored)
        result = None
        if returned:
            [values] = [each.values for each in stored.address_settings if each.match == change.match]
            result = encoded(values)
        self.replies.trace.event(
            "settings_changed",
            {
                "setting": f"{change.element} '{change.match}'",
                "how": "removed" if change.values is None else "set",
                "user": "" if call.session is None else call.session.identity.user,
            },
        )
        self.replies.send(now, call, result, True, True)


def encoded(values: dict[str, SettingValue]) -> str:
    """Returns address settings as JSON; `values` are by attribute of AddressSettings, those of None are left out."""
    return encode_json(
        {
            name: shown(entry, values[entry.name])
            for name, entry in OPTIONS.items()
            if values.get(entry.name) is not None
        }
    )


def default_of(entry: Field[Any]) -> SettingValue:
    default: Any = entry.default
    return shown(entry, default)


def shown(entry: Field[Any], value: SettingValue) -> SettingValue:
    """Returns the value as broker.xml writes it: the name of a routing type, not its number."""
    choices = entry.metadata["choices"] or {}
    return next((text for text, chosen in choices.items() if chosen == value), value)


def setting_text(name: str, value: object) -> str:
    """Returns a value as the text of an element."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise BrokerError(ILLEGAL_STATE, f"{name}: {encode_json(value)} is not a value")
