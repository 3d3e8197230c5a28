"""Metrics and health over HTTP."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from atalanta.kernel.queue.spec import QueueSpec
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.management.management import ManagementService
from atalanta.management.status import PassiveStatus
from atalanta.web import connections
from atalanta.web.server import SCRAPES_MAX, WebServer
from tests.kernel.broker_rig import consume
from tests.management.management_rig import Desk

Samples = dict[tuple[str, str], float]


@asynccontextmanager
async def served(desk: Desk) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    server = WebServer(desk.management, "127.0.0.1", 0)
    place = await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield session, f"http://{place}"
    finally:
        await server.stop()


def get(desk: Desk, path: str) -> tuple[int, str]:
    async def ask() -> tuple[int, str]:
        async with served(desk) as (session, url), session.get(url + path) as response:
            return response.status, await response.text()

    return asyncio.run(ask())


def samples(text: str) -> Samples:
    """(name, queue or address or "") -> value."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = sample.labels
            assert "broker" in labels
            found[sample.name, labels.get("queue", labels.get("address", ""))] = sample.value
    return found


def test_metrics_have_the_names_and_labels_of_artemis() -> None:
    desk = Desk()
    desk.config.name = 'my "node"'
    desk.queue("work")
    desk.fill("work", 3)
    session = desk.session()
    consume(session, desk, "work", "number = 1")
    desk.settle()
    desk.management.status.disk_used = 0.25
    desk.trace.count("connections.refused", 2)
    status, text = get(desk, "/metrics")
    assert status == 200
    assert 'artemis_message_count{address="work",broker="my \\"node\\"",queue="work"} 3\n' in text
    assert "# TYPE artemis_message_count gauge\n" in text
    found = samples(text)
    assert found["artemis_delivering_message_count", "work"] == 1
    assert found["artemis_messages_added", "work"] == 3
    assert found["artemis_consumer_count", "work"] == 1
    assert found["artemis_routed_message_count", "work"] == 3
    assert found["artemis_address_size", "work"] > 0
    assert found["artemis_connection_count", ""] == 1
    assert found["artemis_disk_store_usage", ""] == 0.25
    assert found["artemis_address_memory_usage", ""] > 0
    assert found["atalanta_connections_refused_total", ""] == 2


def test_an_address_can_be_left_out() -> None:
    settings = AddressSettingsRepository()
    settings.add("quiet.#", {"enable_metrics": False})
    desk = Desk(settings=settings)
    desk.queue("quiet.one")
    desk.queue("loud")
    found = samples(get(desk, "/metrics")[1])
    assert ("artemis_message_count", "loud") in found
    assert ("artemis_message_count", "quiet.one") not in found


def test_health_follows_the_node() -> None:
    desk = Desk()
    assert get(desk, "/health/live")[0] == 200
    assert get(desk, "/health/ready")[0] == 200
    desk.broker.stopping = True
    status, text = get(desk, "/health/ready")
    assert status == 503 and '"stopping": true' in text
    assert get(desk, "/health/live")[0] == 200
    desk.management.status.started_at = 0
    desk.broker.stopping = False
    assert get(desk, "/health/ready")[0] == 503


def test_nothing_else_is_served() -> None:
    desk = Desk()
    assert get(desk, "/")[0] == 404
    assert get(desk, "/metrics/../etc/passwd")[0] == 404


@pytest.mark.timeout(120)
def test_a_scrape_of_ten_thousand_queues_delays_nobody() -> None:
    desk = Desk()
    for number in range(10_000):
        desk.broker.queue_registry.create(desk.now, QueueSpec(f"q{number}", f"a{number}", 1))
    longest = 0.0
    size = 0
    slices = desk.management.metrics()
    gc.collect()
    gc.freeze()  # as the running node has it
    while True:
        began = time.thread_time()
        text = next(slices, None)
        longest = max(longest, time.thread_time() - began)
        if text is None:
            break
        size += len(text)
    del desk, slices
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # as tests/conftest.py has it
    assert size > 5_000_000
    assert longest < 0.05


def test_who_leaves_in_the_middle_of_a_scrape_is_forgotten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    for number in range(3_000):
        desk.broker.queue_registry.create(desk.now, QueueSpec(f"q{number}", f"a{number}", 1))

    async def leave() -> int:
        async with served(desk) as (_, url):
            host, port = url.removeprefix("http://").split(":")
            for _ in range(6):
                _, writer = await asyncio.open_connection(host, int(port))
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
                writer.transport.abort()
                await asyncio.sleep(0.05)
            async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
                return answer.status

    assert asyncio.run(leave()) == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_durable_delivering_and_scheduled_messages_have_figures_of_their_own() -> None:
    """Artemis' eight further meters: by count and size, durable ones apart."""
    desk = Desk()
    desk.queue("work")
    desk.queue("passing", durable=False)
    queue = desk.broker.queues["work"]
    desk.fill("work", 4)
    desk.fill("work", 3, durable=False)
    for number, reference in enumerate(queue.references):
        assert reference.durable is (number < 4)
    desk.fill("passing", 2)
    size = queue.references[0].size
    light = queue.references[-1].size
    session = desk.session()
    consume(session, desk, "work", "number = 2")
    desk.settle()
    assert queue.delivering_count == 2
    at_ms = desk.now // 1_000_000 + 60_000
    desk.fill("work", 1, _AMQ_SCHED_DELIVERY=at_ms)
    found = samples(get(desk, "/metrics")[1])
    later_size = queue.scheduled_bytes
    expected = {
        "durable_message_count": 5,
        "durable_persistent_size": 4 * size + later_size,
        "delivering_durable_message_count": 1,
        "delivering_persistent_size": size + light,
        "delivering_durable_persistent_size": size,
        "scheduled_message_count": 1,
        "scheduled_durable_message_count": 1,
        "scheduled_persistent_size": later_size,
        "scheduled_durable_persistent_size": later_size,
    }
    assert {name: found[f"artemis_{name}", "work"] for name in expected} == expected
    assert later_size > 0
    assert found["artemis_message_count", "passing"] == 2
    assert found["artemis_durable_message_count", "passing"] == 0
    attributes = {
        "DurableMessageCount": 5,
        "DeliveringSize": size + light,
        "DurableDeliveringSize": size,
        "DurableScheduledCount": 1,
        "ScheduledSize": later_size,
    }
    assert {name: desk.get("queue.work", name) for name in attributes} == attributes
    assert desk.ask("queue.work", "removeAllMessages") == 6
    assert samples(get(desk, "/metrics")[1])["artemis_scheduled_persistent_size", "work"] == 0


def test_a_server_without_a_node_is_live_but_not_ready() -> None:
    async def ask() -> None:
        desk = Desk()
        server = WebServer(None, "127.0.0.1", 0)
        url = f"http://{await server.start()}"
        try:
            async with aiohttp.ClientSession() as session:

                async def told(path: str) -> tuple[int, str]:
                    async with session.get(url + path) as response:
                        return response.status, await response.text()

                assert await told("/health/ready") == (503, '{"ready": false, "network_lost": false}')
                server.network_changed(True)
                assert await told("/health/ready") == (503, '{"ready": false, "network_lost": true}')
                assert (await told("/health/live"))[0] == 200
                assert (await told("/metrics"))[0] == 503
                server.role_changed("passive")
                status, text = await told("/metrics")
                assert status == 200 and 'atalanta_ha_role{role="passive"} 1\n' in text
                assert 'atalanta_ha_role{role="active"} 0\n' in text and "atalanta_ha_role_changes_total 0\n" in text
                server.show_passive(PassiveStatus("Replication Backup w/lock manager", False, True, 7, 3))
                status, text = await told("/metrics")
                assert "artemis_active 0\n" in text and "artemis_replica_sync 1\n" in text
                assert "artemis_epoch 7\n" in text and "atalanta_ha_behind_records 3\n" in text
                status, text = await told("/health/ready")
                assert status == 503 and json.loads(text) == {
                    "ready": False, "network_lost": True, "role": "passive", "Active": False, "Backup": True,
                    "HAPolicy": "Replication Backup w/lock manager", "SharedStore": False, "ReplicaSync": True,
                    "ActivationSequence": 7,
                }  # fmt: skip
                server.role_changed("active")
                server.show(desk.management)
                assert desk.management.status.web_started
                status, text = await told("/metrics")
                assert status == 200 and 'atalanta_ha_role{role="active"} 1\n' in text
                assert "atalanta_ha_role_changes_total 1\n" in text and "artemis_connection_count" in text
                assert text.count("# TYPE artemis_active") == 1
        finally:
            await server.stop()
        assert not desk.management.status.web_started

    asyncio.run(ask())


HALF = b"GET /health/live HTTP/1.1\r\nHost: a\r\n"


def test_half_requests_take_no_place_from_others() -> None:
    async def use() -> None:
        async with served(Desk()) as (session, url):
            host, _, port = url.removeprefix("http://").rpartition(":")
            halves = []
            for _ in range(connections.CONNECTIONS_MAX + 3):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(HALF)
                halves.append((reader, writer))
            async with session.get(url + "/health/live") as response:
                assert response.status == 200
            for reader, _ in halves[:4]:
                assert await reader.read() == b""
            for _, writer in halves:
                writer.close()

    asyncio.run(use())


def test_a_half_request_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECTION_S", 0.05)

    async def use() -> None:
        async with served(Desk()) as (_, url):
            host, _, port = url.removeprefix("http://").rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(HALF)
            assert await reader.read() == b""
            writer.close()

    asyncio.run(use())


def test_an_answer_that_nobody_reads_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECTION_S", 0.05)
    monkeypatch.setattr(ManagementService, "metrics", lambda self: iter(["x" * 1_000_000] * 100))

    async def use() -> None:
        async with served(Desk()) as (session, url):
            host, _, port = url.removeprefix("http://").rpartition(":")
            for _ in range(SCRAPES_MAX):
                reader, writer = await asyncio.open_connection(host, int(port), limit=1)
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
                await reader.readexactly(1)
            async with asyncio.timeout(20):
                status = 503
                while status == 503:
                    await asyncio.sleep(0.01)
                    async with session.get(url + "/metrics") as response:
                        status = response.status
            writer.close()

    asyncio.run(use())
