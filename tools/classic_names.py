"""The page docs/reference/activemq-xml.md: what of an activemq.xml has no effect, from config/activemq/tables.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from atalanta.config.activemq import tables
from atalanta.kernel.unseen_options import FixedValue

HEAD: Final = """# Names of an activemq.xml without effect

This page is generated from the source (`tools/reference.py`).
[Coming from ActiveMQ Classic](../guide/coming-from-activemq.md) says what the other names become. `atalanta check`
names with its line whatever a file has of these.

What is harmless is so because of its kind (there are no threads to tune, no JMX, …), or because a test
(`tests/config/harmless`) does with clients what the name is about, with and without it, and they see the same.
"""
# Beginning of a table's name -> where its names stand.
PLACES: Final = {
    "BROKER": "`<broker>`",
    "BROKER_CHILDREN": "in `<broker>`",
    "KAHADB": "`<kahaDB>`",
    "FILE_SIZE": "`<kahaDB>`, more than 64 MiB",
    "KAHADB_CHILDREN": "in `<kahaDB>`",
    "STORES": "`<persistenceAdapter>`",
    "LOCK": "a store",
    "LOCKER": "`<shared-file-locker>`",
    "CONNECTOR": "`<transportConnector>`",
    "SCHEMES": "`uri` of a connector",
    "OPTIONS": "options of a connector's `uri`",
    "POLICY": "`<policyEntry>`",
    "POLICY_CHILDREN": "in `<policyEntry>`",
    "CURSORS": "`<pendingSubscriberPolicy>`, `<pendingDurableSubscriberPolicy>`",
    "CURSORS_WITHOUT_FLOW": "the same, with `producerFlowControl=\"false\"`",
    "DISPATCH": "`<dispatchPolicy>`",
    "EVICTION": "`<messageEvictionStrategy>`",
    "GROUPS": "`<policyEntry>`",
    "RECOVERY": "`<fixedSizedSubscriptionRecoveryPolicy>`",
    "GC": "`<policyEntry>`",
    "DEAD_LETTERS": "`<sharedDeadLetterStrategy>`, `<individualDeadLetterStrategy>`",
    "DISCARDING": "`<discarding>`",
    "DESTINATIONS": "`<destinations>`",
    "VIRTUAL": "`<virtualTopic>`, `<compositeQueue>`, `<compositeTopic>`",
    "PLUGINS": "`<plugins>`",
    "SELECTOR_CACHE": "`<virtualSelectorCacheBrokerPlugin>`",
    "TIME_STAMPS": "`<timeStampingBrokerPlugin>`",
    "DISCARDING_PLUGIN": "`<discardingDLQBrokerPlugin>`",
    "DROPS": "`<discardingDLQBrokerPlugin dropAll=\"true\">`",
    "REDELIVERY_PLUGIN": "`<redeliveryPlugin>`",
    "REDELIVERY": "`<redeliveryPolicy>`",
    "GROUP_CLASS": "`<authorizationMap>`, `<authorizationEntry>`",
    "JAAS": "`<jaasAuthenticationPlugin>` and the like",
    "NETWORK": "`<networkConnector>`",
    "NETWORK_CHILDREN": "in `<networkConnector>`",
    "USAGE": "`<memoryUsage>`, `<storeUsage>`",
    "SYSTEM_USAGE": "`<systemUsage>`",
    "SYSTEM_USAGE_CHILDREN": "in `<systemUsage>`",
    "SSL": "`<sslContext>`",
    "OUTSIDE": "beside `<broker>` (parts of the names of classes)",
}


def classic_page() -> str:
    """Returns the text of the page."""
    parts = [HEAD, "\n## Named in a warning\n\n| where | name | what clients miss |\n|---|---|---|\n"]
    parts += [f"| {where} | {names} | {why} |\n" for where, names, why in _grouped("_LOST")]
    parts.append(
        "\n## Harmless with one value\n\nAnother value is a warning.\n\n| where | name | value | what is so here |\n"
        "|---|---|---|---|\n"
    )
    for table, names in _tables("_FIXED"):
        for name, value in names.items():
            assert isinstance(value, FixedValue)
            parts.append(f"| {PLACES[table]} | `{name}` | `{value.here[0]}` | {_shown(value.otherwise)} |\n")
    parts.append("\n## Harmless\n\n| where | name | why |\n|---|---|---|\n")
    parts += [f"| {where} | {names} | {why} |\n" for where, names, why in _grouped("_SILENT")]
    return "".join(parts)


def _tables(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the tables of a kind, with the beginnings of their names."""
    for name, table in vars(tables).items():
        if name.endswith(kind) and not name.startswith("_"):
            yield name.removesuffix(kind), table


def _grouped(kind: str) -> Iterator[tuple[str, str, str]]:
    """Yields the place, the names and the reason of entries with one reason."""
    for table, names in _tables(kind):
        reasons: dict[str, list[str]] = {}
        for name, why in names.items():
            reasons.setdefault(why, []).append(f"`{name}`")
        for why, found in reasons.items():
            yield PLACES[table], ", ".join(found), _shown(why)


def _shown(text: str) -> str:
    """Returns a text that Markdown shows with its names of elements."""
    return text.replace("<", "&lt;")
