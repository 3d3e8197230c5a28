"""Address settings and security settings of management: a real Artemis and our node do the same with each call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from atalanta.client import connect
from atalanta.client.management import Management, ManagementFailed
from atalanta.management.operations.settings import POSITIONAL
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.management.address_settings_values import LONG

USUAL_TARGET = "atalanta"
GIVEN = {"maxSizeBytes": 20_000_000, "pageSizeBytes": 1_000_000, "addressFullMessagePolicy": "FAIL",
         "redeliveryMultiplier": 2.5, "sendToDLAOnNoRoute": True, "deadLetterAddress": "dead"}  # fmt: skip
ROLES = ["foo", "foo, bar", None, "bar", "foo bar", "", "", "bar", "foo", "foo"]
pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def managed(target: str, brokers: Lineup) -> Iterator[BrokerProcess]:
    node = brokers.single(target)
    node.start()
    yield node
    node.stop()


async def settings(management: Management, address: str) -> dict[str, object]:
    answer = json.loads(str(await management.call("broker", "getAddressSettingsAsJSON", address)))
    assert isinstance(answer, dict)
    return answer


async def roles(management: Management, address: str) -> dict[str, list[str]]:
    rows = json.loads(str(await management.call("broker", "getRolesAsJSON", address)))
    return {row["name"]: sorted(name for name, held in row.items() if held is True) for row in rows}


async def added(management: Management) -> None:
    call = management.call
    answer = await call("broker", "addAddressSettings", "set.json.#", json.dumps(GIVEN))
    assert GIVEN.items() <= json.loads(str(answer)).items()
    for count in (21, 25, 48, 54, 57):
        assert await call("broker", "addAddressSettings", f"set.long{count}", *LONG[:count]) is None
    wider = {"deadLetterAddress": "dead", "expiryAddress": "late", "deadLetterQueuePrefix": "P"}
    await call("broker", "addAddressSettings", "set.wide.#", json.dumps(wider))
    given: list[object] = [None, "", *LONG[2:]]
    given[13] = None
    given[49:51] = [None, ""]
    await call("broker", "addAddressSettings", "set.wide.null", *given)
    for bad in ({"maxSizeBytes": 100, "pageSizeBytes": 1000}, {"maxSizeBytes": -2}):
        with pytest.raises(ManagementFailed):
            await call("broker", "addAddressSettings", "set.bad", json.dumps(bad))
    await call("broker", "addSecuritySettings", "set.#", *ROLES)


async def shown(management: Management) -> None:
    found = await settings(management, "set.json.a")
    assert {name: found[name] for name in GIVEN} == GIVEN
    for count in (21, 25, 48, 54, 57):
        found = await settings(management, f"set.long{count}")
        same = 48 if count == 54 else count  # Artemis sets defaults for the last six of this form
        assert [found.get(name) for name in POSITIONAL[:same]] == LONG[:same], count
        assert found["enableMetrics"] is (count < 57) and found["autoCreateQueues"] is (count < 25)
    found = await settings(management, "set.wide.null")
    assert (found["deadLetterAddress"], found["deadLetterQueuePrefix"]) == ("dead", "P")
    assert not found.get("expiryAddress") and found["addressFullMessagePolicy"] == "PAGE"
    assert await roles(management, "set.a") == {
        "foo": ["consume", "createAddress", "createNonDurableQueue", "deleteAddress", "send"],
        "bar": ["browse", "consume", "createNonDurableQueue", "deleteDurableQueue"],
    }


async def removed(management: Management) -> None:
    usual = await settings(management, "unset")
    for match in ("set.json.#", "set.wide.#", "set.wide.null", "set.long21", "no such match", "#"):
        assert await management.call("broker", "removeAddressSettings", match) is None
    for address in ("set.json.a", "set.wide.null", "set.long21", "unset"):
        assert await settings(management, address) == usual
    for match in ("set.#", "no such match", "#"):
        assert await management.call("broker", "removeSecuritySettings", match) is None
    assert await roles(management, "set.a") == await roles(management, "unset")
    assert "amq" in await roles(management, "unset")


def test_settings_last_over_a_restart_until_they_are_removed(managed: BrokerProcess) -> None:
    async def body(*scripts: object) -> None:
        url = f"tcp://127.0.0.1:{managed.port}"
        async with connect(url, user="admin", password="admin") as connection:
            for script in scripts:
                assert callable(script)
                await script(connection.management())

    asyncio.run(body(added, shown))
    managed.stop()
    managed.start()
    asyncio.run(body(shown, removed))
