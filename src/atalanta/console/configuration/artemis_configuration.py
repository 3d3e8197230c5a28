"""The configuration of a real Artemis, as far as the controls of its management show it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping
from typing import Final

from atalanta.client import ManagementFailed
from atalanta.client.management import BROKER
from atalanta.console.configuration.artemis_reach import REACH, ROLES, ArtemisReach
from atalanta.console.configuration.element_kinds import BY_NAME
from atalanta.console.configuration.node_configuration import (
    HIDDEN,
    IN_EFFECT,
    NodeConfiguration,
    NodeElement,
    lines_of,
    mapping_of,
    read_object,
    read_rows,
    scalar_text,
    text_of,
)
from atalanta.console.nodes.failures import is_missing, missing_permission
from atalanta.console.nodes.node import ClusterNode

ELEMENTS_MAX: Final = 500  # that are asked for, one by one
CONTROL: Final = "management"
SECRET: Final = re.compile(r"password|passwd|secret|codec|store-?path|store-?provider", re.IGNORECASE)
# Names in Artemis' JSON of address settings that are not those of broker.xml in other letters.
SETTING_NAMES: Final = {
    "addressFullMessagePolicy": "address-full-policy",
    "redeliveryMultiplier": "redelivery-delay-multiplier",
    "pageCacheMaxSize": "page-max-cache-size",
    "sendToDLAOnNoRoute": "send-to-dla-on-no-route",
}
JSON_NAMES: Final = {element: name for name, element in SETTING_NAMES.items()}


async def artemis_configuration(
    node: ClusterNode, kinds: Collection[str], names: Mapping[str, Collection[str]]
) -> NodeConfiguration:
    """Returns the elements of these kinds. `names` are those of other nodes, by kind: Artemis does not list all."""
    found = NodeConfiguration(
        form="Artemis", why="Artemis changes no file by management.", permitted=True, kept=False
    )
    for kind in kinds:
        reach = REACH[kind]
        found.parameters[kind] = list(reach.parameters)
        if reach.untold:
            found.untold[kind] = reach.untold
            continue
        found.elements += await _elements(node, kind, reach, names.get(kind, ()))
    return found


async def _elements(
    node: ClusterNode, kind: str, reach: ArtemisReach, names: Collection[str]
) -> list[NodeElement]:
    if kind in ("acceptor", "connector"):
        attribute = "AcceptorsAsJSON" if kind == "acceptor" else "ConnectorsAsJSON"
        rows = read_rows(await node.get(BROKER, attribute), attribute)[:ELEMENTS_MAX]
        return [await _transport(node, kind, row) for row in rows]
    if reach.names:
        listed = await node.get(BROKER, reach.names)
        names = [str(name) for name in listed] if isinstance(listed, list) else []
    wanted = sorted(names)[:ELEMENTS_MAX]
    found = await asyncio.gather(*(_named(node, kind, reach, name) for name in wanted))
    return [each for each in found if each is not None]


async def _named(node: ClusterNode, kind: str, reach: ArtemisReach, name: str) -> NodeElement | None:
    """Returns an element by its name; None if the broker has none. What it does not tell is left out."""
    if kind == "address-setting":
        return await _address_setting(node, name)
    if kind == "security-setting":
        return await _security_setting(node, name)
    resource = f"connectionrouter.{name}" if kind == "connection-router" else _resource(kind, name)
    values: dict[str, str] = {}
    absent = False
    for attribute, parameter in reach.reads:
        try:
            value = await node.get(resource, attribute)
        except ManagementFailed as error:
            if missing_permission(error) is not None:
                raise
            absent = absent or is_missing(error)
            continue
        text = lines_of(value)
        if text:
            values[parameter] = text
    if absent and not values and not reach.names:
        return None
    return NodeElement(kind, name, values, origin=CONTROL, state=await _state(node, resource, reach))


def _resource(kind: str, name: str) -> str:
    return BY_NAME[kind].resource_of(name) if BY_NAME[kind].resource else f"{kind}.{name}"


async def _state(node: ClusterNode, resource: str, reach: ArtemisReach) -> str:
    if not reach.started:
        return ""
    try:
        started = await node.get(resource, "Started")
    except ManagementFailed as error:
        if missing_permission(error) is not None:
            raise
        return ""
    return {True: "started", False: "stopped"}.get(started, "") if isinstance(started, bool) else ""


async def _transport(node: ClusterNode, kind: str, row: dict[str, object]) -> NodeElement:
    """Returns an acceptor or connector: its address and parameters, without passwords and places of key stores."""
    name = text_of(row, "name")
    given = {**mapping_of(row, "params"), **mapping_of(row, "extraProps")}
    values = {key: HIDDEN if SECRET.search(key) else scalar_text(value) for key, value in given.items()}
    values = {key: value for key, value in values.items() if value}
    state = await _state(node, f"acceptor.{name}", REACH[kind]) if kind == "acceptor" else ""
    return NodeElement(kind, name, values, origin=CONTROL, state=state)


async def _address_setting(node: ClusterNode, match: str) -> NodeElement | None:
    answer = await node.call(BROKER, "getAddressSettingsAsJSON", match)
    told = read_object(answer, "getAddressSettingsAsJSON")
    values = {setting_element(name): scalar_text(value) for name, value in told.items()}
    return NodeElement(
        "address-setting", match, {name: value for name, value in values.items() if value}, origin=IN_EFFECT
    )


async def _security_setting(node: ClusterNode, match: str) -> NodeElement | None:
    roles = read_rows(await node.call(BROKER, "getRolesAsJSON", match), "getRolesAsJSON")
    values: dict[str, str] = {}
    for permission in ROLES:
        having = [text_of(row, "name") for row in roles if row.get(permission) is True]
        if having:
            values[permission] = "\n".join(having)
    return NodeElement("security-setting", match, values, origin=IN_EFFECT)


def setting_element(name: str) -> str:
    """Returns the name in broker.xml of a setting in Artemis' JSON (AddressSettings.metaBean)."""
    return SETTING_NAMES.get(name) or re.sub("([A-Z]+)", lambda found: f"-{found.group(1).lower()}", name)


def setting_name(element: str) -> str:
    """Returns the name in Artemis' JSON of a setting of broker.xml."""
    first, *others = element.split("-")
    return JSON_NAMES.get(element) or first + "".join(word.capitalize() for word in others)
