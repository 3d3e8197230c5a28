"""The console's pages of the configuration, with a real Artemis and an Atalanta node in one cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from atalanta.client import connect
from atalanta.client.management import BROKER
from atalanta.console.configuration.element_kinds import KINDS
from tests.console.console_rig import Browser, Page, logged_in
from tests.interop.harness.broker_xml import USERS, Cluster, Shape
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

PASSWORD = USERS["admin"][0]
ADDRESSES = '<address name="console.out"><anycast><queue name="console.out"/></anycast></address>'


def shaping(index: int, ports: list[int]) -> Shape:
    return Shape(Cluster((ports[1 - index],)), addresses=ADDRESSES, connectors=(("other", ports[1 - index]),))


@pytest.fixture(scope="module")
def pair(brokers: Lineup) -> Iterator[tuple[BrokerProcess, BrokerProcess]]:
    """A real Artemis and an Atalanta node."""
    artemis, ours = brokers.cluster("artemis+atalanta", shaping)
    for node in (artemis, ours):
        node.launch()
    for node in (artemis, ours):
        node.await_ready()
    yield artemis, ours
    for node in (artemis, ours):
        node.close()


class ArtemisPages:
    """What an operator does at the Artemis node."""

    def __init__(self, user: Browser, place: str) -> None:
        self.user = user
        self.place = place

    async def change(self, do: str, kind: str, name: str, **values: str) -> Page:
        """Fills in a form, looks at what it would do, and confirms. Returns the page of the result."""
        form = await self.user.get(f"/element/form?do={do}&kind={kind}&name={name}")
        given = {"node": self.place, **{f"v.{field.replace('_', '-')}": value for field, value in values.items()}}
        page = await self.user.submit(form, "/element/change", step="preview", **given)
        if do not in ("start", "stop"):
            page = await self.user.submit(page, "/element/change", step="confirmed")
        else:
            page = await self.user.submit(form, "/element/change", step="confirmed", node=self.place)
        assert "done" in page.words(), page.words()
        return page

    async def element(self, kind: str, name: str) -> Page:
        return await self.user.get(f"/element?kind={kind}&name={name}")


async def asked(place: str, operation: str, *parameters: object) -> object:
    """Returns the answer of the broker to a management operation, as JSON."""
    async with connect(f"tcp://{place}?stay=true", user="admin", password=PASSWORD) as connection:
        return json.loads(str(await connection.management().call(BROKER, operation, *parameters)))


def test_a_real_artemis_is_seen_and_changed_as_far_as_its_management_reaches(
    pair: tuple[BrokerProcess, BrokerProcess],
) -> None:
    artemis, ours = (f"127.0.0.1:{node.port}" for node in pair)

    async def main() -> None:
        async with logged_in(artemis, ours, password=PASSWORD) as user:
            for kind in KINDS:
                page = await user.get(f"/configuration/{kind.name}")
                assert page.status == 200 and "Not everything is here" not in page.words(), page.words()
            pages = ArtemisPages(user, artemis)
            await pages.change("add", "bridge", "across", queue_name="console.out", static_connectors="other")
            page = await pages.element("bridge", "across")
            assert page.row("queue-name")[1] == "console.out" and page.row("static-connectors")[1] == "other"
            await pages.change("stop", "bridge", "across")
            assert "stopped" in (await pages.element("bridge", "across")).words()
            await pages.change("start", "bridge", "across")
            await pages.change("remove", "bridge", "across")
            assert (await pages.element("bridge", "across")).status == 404

            await pages.change("add", "divert", "aside", address="a", forwarding_address="b", filter="x = 1")
            await pages.change("change", "divert", "aside", forwarding_address="c")
            page = await pages.element("divert", "aside")
            assert [page.row(name)[1] for name in ("address", "forwarding-address", "filter")] == ["a", "c", "x = 1"]
            await pages.change("remove", "divert", "aside")

            await pages.change("add", "connector", "far", host="127.0.0.1", port="61699")
            assert (await pages.element("connector", "far")).row("port")[1] == "61699"
            await pages.change("remove", "connector", "far")
            assert (await pages.element("connector", "far")).status == 404

            await pages.change(
                "add", "address-setting", "console.set", max_delivery_attempts="3", address_full_policy="DROP"
            )
            found = await asked(artemis, "getAddressSettingsAsJSON", "console.set")
            assert isinstance(found, dict) and found["maxDeliveryAttempts"] == 3
            assert found["addressFullMessagePolicy"] == "DROP"
            await pages.change("add", "security-setting", "console.set", send="amq\nguests")
            roles = await asked(artemis, "getRolesAsJSON", "console.set")
            assert isinstance(roles, list)
            assert sorted(role["name"] for role in roles if role["send"]) == ["amq", "guests"]

            await pages.change("stop", "cluster-connection", "interop")
            assert "stopped" in (await pages.element("cluster-connection", "interop")).words()
            await pages.change("start", "cluster-connection", "interop")
            assert "stopped" not in (await pages.element("cluster-connection", "interop")).words()

    asyncio.run(main())
