"""Changes of a real Artemis, by the operations that its management has for them."""

from __future__ import annotations

import json
from typing import Final

from atalanta.client.management import BROKER
from atalanta.console.configuration.artemis_configuration import setting_name
from atalanta.console.configuration.artemis_reach import REACH, ROLES
from atalanta.console.configuration.change_answer import ChangeAnswer, ElementChange
from atalanta.console.configuration.element_kinds import ADD, BY_NAME, CHANGE, REMOVE
from atalanta.console.nodes.node import ClusterNode

# Names in Artemis' JSON of bridges and diverts that are not those of broker.xml.
JSON_NAMES: Final = {"filter": "filter-string", "discovery-group-ref": "discovery-group-name"}
REMOVALS: Final = {
    "bridge": "destroyBridge",
    "divert": "destroyDivert",
    "connector": "removeConnector",
    "address-setting": "removeAddressSettings",
    "security-setting": "removeSecuritySettings",
}
CREATIONS: Final = {
    "bridge": "createBridge",
    "divert": "createDivert",
    "connector": "addConnector",
    "address-setting": "addAddressSettings",
    "security-setting": "addSecuritySettings",
}
NOTHING_KEPT: Final = "Artemis keeps no changes: to take it back, do the opposite."
NO_FILE: Final = "Artemis changes no file by management."


def artemis_preview(change: ElementChange) -> ChangeAnswer:
    """Returns what a change would do at an Artemis node, which has no operation that tells it."""
    noun = BY_NAME[change.kind].noun
    reach = REACH[change.kind]
    if change.action not in reach.actions:
        return ChangeAnswer(refused=reach.untold or reach.reason)
    unknown = sorted(set(change.values) - {each.name for each in reach.parameters})
    if unknown:
        return ChangeAnswer(refused=f"The management of Artemis has no {', '.join(unknown)} for a {noun}.")
    verb = {ADD: "is made", CHANGE: "is changed", REMOVE: "is removed"}[change.action]
    return ChangeAnswer(
        now=(f"{noun} {change.name} {verb} by {artemis_operation(change)}",), note=f"{NO_FILE} {reach.note}".strip()
    )


def artemis_operation(change: ElementChange) -> str:
    """Returns the operation of `broker` that carries out a change."""
    if change.action == CHANGE:
        return "updateDivert"
    return (CREATIONS if change.action == ADD else REMOVALS)[change.kind]


async def change_artemis(node: ClusterNode, change: ElementChange) -> ChangeAnswer:
    """Carries a change out. `values` of a divert that changes are all that it has afterwards."""
    answer = artemis_preview(change)
    if answer.is_possible:
        await node.call(BROKER, artemis_operation(change), *artemis_parameters(change))
    return answer


def artemis_parameters(change: ElementChange) -> list[object]:
    """Returns the parameters of the operation that carries out a change."""
    values = {name: value for name, value in change.values.items() if value is not None}
    if change.action == REMOVE:
        return [change.name]
    if change.kind == "connector":
        return [change.name, f"tcp://{values.get('host', '')}:{values.get('port', '61616')}"]
    if change.kind == "address-setting":
        return [change.name, json.dumps({setting_name(name): typed(value) for name, value in values.items()})]
    if change.kind == "security-setting":
        return [change.name, *(",".join(listed(values.get(role, ""))) for role in ROLES)]
    definition: dict[str, object] = {"name": change.name}
    for name, value in values.items():
        given = listed(value) if name == "static-connectors" else value
        definition[JSON_NAMES.get(name, name)] = given
    return [json.dumps(definition)]


def typed(value: str | list[str]) -> object:
    """Returns a value of an address setting as Artemis' JSON has it: numbers and truth values are no texts there."""
    text = " ".join(listed(value))
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


def listed(value: str | list[str]) -> list[str]:
    """Returns a value as its parts."""
    return [value] if isinstance(value, str) and value else list(value)
