"""Members of a replicated group as real processes: what they cut, require, refuse, and tell."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from atalanta.client import Connection, Message, connect
from tests.app.group import LEASE, Group
from tests.app.load import loaded, send
from tests.broker_process import BrokerProcess, refused
from tests.certificates import PASSWORD, Authority
from tests.ports import free_port
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process



async def count(url: str) -> int:
    """Returns the number of messages in the queue."""
    async with asyncio.timeout(DEADLINE_S), connect(url) as connection:
        return int(str(await connection.management().get("queue.orders", "MessageCount")))


async def others(connection: Connection) -> None:
    """Sends further messages, all at once."""
    producer = await connection.producer("orders")
    await asyncio.gather(*[producer.send(Message(str(1_000_000 + number))) for number in range(20)])


def test_a_member_that_returns_cuts_what_was_never_confirmed(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(20)
            # What comes now is on one disk, and is not confirmed.
            group.backup.end(signal.SIGKILL)
            confirmed = len(load.confirmed)
            more = asyncio.create_task(others(load.connection))
            await asyncio.sleep(0.25)
            group.primary.end(signal.SIGKILL)
            assert len(load.confirmed) <= confirmed + 1
            group.backup.start()
            await load.past(20)
            await more
            group.primary.start()
            await asyncio.to_thread(group.backup.until_logged, "replica_in_sync")
            assert "replica_tail_cut" in group.primary.log()
            assert re.search(r"replica_tail_cut behind=\d+ bytes=\d+ files=cut-", group.primary.log()), "cut"
            await load.past(20)
            group.backup.end(signal.SIGKILL)
            await load.past(20)

    with Group(tmp_path, own=LEASE) as group:
        group.start()
        asyncio.run(main(group))


def test_with_two_required_members_nothing_is_confirmed_by_one(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(20)
            group.backup.end(signal.SIGKILL)
            await asyncio.to_thread(group.primary.until_logged, "replica_removed")
            confirmed = len(load.confirmed)
            await asyncio.sleep(1)
            assert len(load.confirmed) == confirmed
            assert "replicas_missing" in group.primary.log()
            group.backup.start()
            await load.past(20)

    with Group(tmp_path, own=LEASE + "min_in_sync = 2\n") as group:
        group.start()
        asyncio.run(main(group))


@pytest.mark.soak
def test_three_members_survive_the_loss_of_two_in_turn(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(20)
            left = list(group.members)
            for _ in range(2):
                active = next(each for each in left if each.role() == "active")
                active.end(signal.SIGKILL)
                left.remove(active)
                await load.past(20)
                until(lambda: any(each.role() == "active" for each in left), left[0].log)
                if len(left) > 1:  # the last one must be in sync before it can go on alone
                    successor = next(each for each in left if each.role() == "active")
                    await asyncio.to_thread(successor.until_logged, "replica_in_sync")

    with Group(tmp_path, backups=2, own=LEASE) as group:
        group.start()
        until(lambda: group.primary.log().count("replica_in_sync") == 2, group.primary.log)
        asyncio.run(main(group))


def test_management_and_metrics_tell_of_the_group_and_settings_follow(tmp_path: Path) -> None:
    port = free_port()

    def page(name: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=DEADLINE_S) as answer:
            return str(answer.read().decode())

    async def main(group: Group) -> None:
        async with asyncio.timeout(DEADLINE_S), connect(group.url) as connection:
            management = connection.management()
            assert await management.get("broker", "HAPolicy") == "Replication Primary w/lock manager"
            while not await management.get("broker", "ReplicaSync"):
                await asyncio.sleep(0.1)
            assert await management.get("broker", "SharedStore") is False
            assert await management.get("broker", "ActivationSequence") == 1
            assert "cluster_connector_failed" not in group.primary.log()  # the backup does not listen, as it should
            labels = r'\{broker="primary",replica="backup1-\w+",in_sync="1",asynchronous="0"\}'
            metrics = await asyncio.to_thread(page, "metrics")
            assert re.search(rf"artemis_replica_lag_records{labels} \d", metrics)
            assert re.search(rf"artemis_replica_lag_seconds{labels} \d", metrics)
            [replica] = json.loads(str(await management.get("broker", "ReplicationAsJSON")))["replicas"]
            assert replica["inSync"] and not replica["asynchronous"] and replica["member"].startswith("backup1-")
            while not any(each.backup_port == group.backup.port for each in connection.topology):
                await asyncio.sleep(0.05)
            await management.call("broker", "addAddressSettings", "stored.#", '{"maxDeliveryAttempts": 3}')
            until((group.backup.data / "journal" / "management-settings.xml").exists, group.backup.log)
            await management.call("broker", "forceFailover")
            await asyncio.to_thread(group.backup.until_role, "active")
            found = await management.call("broker", "getAddressSettingsAsJSON", "stored.a")
            assert '"maxDeliveryAttempts":3' in str(found).replace(" ", "")
            await asyncio.to_thread(group.primary.until_role, "passive")
            assert '"role": "passive"' in await asyncio.to_thread(page_of_passive)

    def page_of_passive() -> str:
        try:
            return page("health/ready")
        except urllib.error.HTTPError as error:
            return str(error.read().decode())

    with Group(tmp_path, own=LEASE) as group:
        group.primary.arguments = ("--web", f"127.0.0.1:{port}")
        group.start()
        asyncio.run(main(group))


def test_replica_sync_ends_with_the_backup_and_a_stop_without_a_successor_is_told(tmp_path: Path) -> None:
    """A script that restarts member after member takes an old `true` for the new process."""

    async def main(group: Group) -> None:
        url = f"tcp://127.0.0.1:{group.primary.port}"
        async with asyncio.timeout(DEADLINE_S), connect(url) as connection:
            management = connection.management()
            while not await management.get("broker", "ReplicaSync"):
                await asyncio.sleep(0.05)
            group.backup.kill_broker()
            assert not await management.get("broker", "ReplicaSync")

    with Group(tmp_path, own=LEASE) as group:
        group.start()
        asyncio.run(main(group))
        group.primary.until_logged("replica_removed")
        assert group.primary.end(signal.SIGTERM) == 0
        assert "stopped_without_successor" in group.primary.log()


def test_members_prove_the_password_of_the_cluster(tmp_path: Path) -> None:
    with Group(tmp_path) as group:
        xml = group.backup.broker_xml
        right = xml.read_text()
        xml.write_text(right.replace("secret", "guessed"))
        group.primary.start()
        group.primary.until_role("active")
        group.backup.start()
        group.primary.until_logged("replica_refused")
        group.backup.until_logged("replication_refused")
        assert "cluster-user and cluster-password" in group.backup.log()
        assert "replica_in_sync" not in group.primary.log()
        group.backup.end(signal.SIGTERM)
        xml.write_text(right)
        group.backup.start()
        group.primary.until_logged("replica_in_sync")


def test_from_one_node_to_a_group_and_not_back_by_mistake(tmp_path: Path) -> None:
    with Group(tmp_path, own=LEASE) as group:
        xml = group.primary.broker_xml
        member = xml.read_text()
        alone = re.sub(r"<ha-policy>.*</ha-policy>", "", member, flags=re.DOTALL)
        xml.write_text(alone)
        with BrokerProcess(xml) as broker:
            asyncio.run(send(f"tcp://127.0.0.1:{group.primary.port}", range(100)))
            assert broker.end(signal.SIGTERM) == 0
        xml.write_text(member)
        group.start()
        group.primary.end(signal.SIGKILL)
        group.backup.until_role("active")
        assert asyncio.run(count(group.url)) == 100
        xml.write_text(alone)
        with refused(xml) as broker:
            assert broker.wait() == 75
            assert "belongs to a member of a replicated group" in broker.log()


def test_members_follow_over_tls(tmp_path: Path) -> None:
    authority = Authority()
    store = authority.holder("server", "localhost", "127.0.0.1").key_store(tmp_path)
    shown = f"sslEnabled=true;keyStorePath={store};keyStorePassword={PASSWORD}"
    trusted = f"sslEnabled=true;trustStorePath={authority.trust_store(tmp_path)};trustStorePassword={PASSWORD}"
    with Group(tmp_path, own=LEASE) as group:
        for each in group.members:
            text = each.broker_xml.read_text()
            text = re.sub(r"(<acceptor [^>]*>[^<]*)", rf"\1?{shown}", text)
            each.broker_xml.write_text(re.sub(r"(<connector [^>]*>[^<]*)", rf"\1?{trusted}", text))
        group.start()
        group.primary.end(signal.SIGKILL)
        group.backup.until_role("active")
