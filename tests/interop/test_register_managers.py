"""The register of a highly available group in a real etcd and a real ZooKeeper: lost requests and answers, stopped and
killed servers."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import random
import signal
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from atalanta.ha.register import CompareAndSet
from atalanta.ha.voter import Outcome
from atalanta.runtime.ha.managers.etcd_manager import EtcdManager
from atalanta.runtime.ha.managers.manager import Found, Manager, ManagerAnswer, ManagerUnavailable
from atalanta.runtime.ha.managers.zookeeper_manager import ZooKeeperManager
from tests.certificates import Authority
from tests.interop.harness.register_servers import RegisterServer, Relay
from tests.runtime.ha.managers.manager_contract import Counting, check_contract, register

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
KINDS = ("etcd", "zookeeper")
SETTLE_SECONDS = 60.0
TIMEOUT_SECONDS = 2.0
# By default kazoo would dial once within the 13 s behind these.
AWAY_SECONDS = 14.0
SOON_SECONDS = 5.0


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegisterServer]:
    """A server that runs; each test has a register of its own."""
    made = RegisterServer(request.param, tmp_path_factory.mktemp(request.param))
    made.start()
    yield made
    made.kill()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return "/atalanta/" + str(request.node.name).partition("[")[0]


def manager(kind: str, port: int, name: str, timeout_s: float = TIMEOUT_SECONDS) -> Manager:
    if kind == "etcd":
        return EtcdManager([f"http://127.0.0.1:{port}"], name, timeout_s=timeout_s)
    return ZooKeeperManager(f"127.0.0.1:{port}", name, timeout_s=timeout_s)


@asynccontextmanager
async def relayed(server: RegisterServer, name: str) -> AsyncIterator[tuple[Manager, Relay]]:
    """A manager whose connections go over a relay."""
    relay = Relay(server.port)
    await relay.start()
    made = manager(server.kind, relay.port, name)
    try:
        yield made, relay
    finally:
        await made.close()
        await relay.close()


async def read(made: Manager) -> Found | None:
    """Reads, and tries again while the server is away."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        try:
            return await made.read()
        except ManagerUnavailable:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)


async def made_first(made: Manager) -> ManagerAnswer:
    answer = await made.compare_and_set(CompareAndSet(0, register(1)))
    assert answer.outcome is Outcome.DONE, answer
    return answer


def test_contract(server: RegisterServer, name: str) -> None:
    async def run() -> None:
        both = [manager(server.kind, server.port, name) for _ in range(2)]
        await check_contract(*both)
        for each in both:
            await each.close()

    asyncio.run(run())


def test_an_answer_that_is_lost_is_unknown_and_reading_settles_it(server: RegisterServer, name: str) -> None:
    async def run() -> None:
        async with relayed(server, name) as (made, relay):
            first = await made_first(made)
            value = register(2)
            relay.lose = "answer"
            answer = await made.compare_and_set(CompareAndSet(first.version, value))
            assert answer.outcome is Outcome.UNKNOWN and answer.why, answer
            found = await read(made)
            assert found is not None and found.version > first.version and found.register == value

    asyncio.run(run())


def test_a_request_that_is_lost_is_unknown_and_is_sent_again(server: RegisterServer, name: str) -> None:
    async def run() -> None:
        async with relayed(server, name) as (made, relay):
            first = await made_first(made)
            value = register(2)
            relay.lose = "request"
            answer = await made.compare_and_set(CompareAndSet(first.version, value))
            assert answer.outcome is Outcome.UNKNOWN and answer.why, answer
            before = await read(made)
            assert before is not None and before.version == first.version
            again = await made.compare_and_set(CompareAndSet(first.version, value))
            assert again.outcome is Outcome.DONE
            assert await read(made) == Found(again.version, value)

    asyncio.run(run())


def test_a_server_that_is_stopped_in_the_middle(server: RegisterServer, name: str) -> None:
    """The request waits in the stopped server and is carried out after its manager has given up."""

    async def run() -> None:
        made = manager(server.kind, server.port, name)
        first = await made_first(made)
        value = register(2)
        server.send(signal.SIGSTOP)
        try:
            answer = await made.compare_and_set(CompareAndSet(first.version, value))
            assert answer.outcome is Outcome.UNKNOWN and answer.why, answer
            with pytest.raises(ManagerUnavailable):
                await made.read()
        finally:
            server.send(signal.SIGCONT)
        deadline = time.monotonic() + SETTLE_SECONDS
        found = await read(made)
        while found is None or found.version == first.version:
            await made.compare_and_set(CompareAndSet(first.version, value))
            found = await read(made)
            assert time.monotonic() < deadline
        assert found.register == value
        await made.close()

    asyncio.run(run())


def test_a_server_that_was_away_is_found_soon(server: RegisterServer, name: str) -> None:
    """However long it was away: somebody waits for a takeover. No call waits for its return: it would be sent then."""

    async def run() -> float:
        made = manager(server.kind, server.port, name)
        await made_first(made)
        server.kill()
        end = time.monotonic() + AWAY_SECONDS
        reads = 0
        while time.monotonic() < end:
            with pytest.raises(ManagerUnavailable):
                await made.read()
            reads += 1
            await asyncio.sleep(0.2)
        assert reads > 3 * AWAY_SECONDS / TIMEOUT_SECONDS, "they wait"
        await asyncio.to_thread(server.start)
        begin = time.monotonic()
        await read(made)
        await made.close()
        return time.monotonic() - begin

    assert asyncio.run(run()) < SOON_SECONDS


def test_counters_while_the_server_is_killed_stopped_and_cut_off(server: RegisterServer, name: str) -> None:
    async def run() -> Counting:
        counting = Counting()
        over = asyncio.Event()
        chance = random.Random(2018)
        async with relayed(server, name) as (first, one), relayed(server, name) as (second, two):
            writers = [
                asyncio.ensure_future(counting.write(each, str(at), over.is_set))
                for at, each in enumerate((first, second))
            ]
            for fault in ("answer", "kill", "request", "stop", "cut", "kill", "answer"):
                await asyncio.sleep(chance.uniform(0.3, 0.8))
                relay = chance.choice((one, two))
                if fault == "kill":
                    server.kill()
                    await asyncio.to_thread(server.start)
                elif fault == "stop":
                    server.send(signal.SIGSTOP)
                    await asyncio.sleep(1.0)
                    server.send(signal.SIGCONT)
                elif fault == "cut":
                    relay.cut()
                else:
                    relay.lose = fault
            await read(first)
            await asyncio.sleep(1.0)
            over.set()
            await asyncio.gather(*writers)
            counting.check(await read(first))
        return counting

    counting = asyncio.run(run())
    assert len(counting.confirmed) > 20 and counting.unknown, counting.whys
    print(f"{len(counting.confirmed)} confirmed, {len(counting.unknown)} unknown, {counting.conflicts} conflicts")


# --- users and certificates --------------------------------------------------------------------------


def test_zookeeper_with_a_user(tmp_path: Path) -> None:
    async def run() -> None:
        own = ZooKeeperManager(f"127.0.0.1:{keeper.port}", "/guarded", "broker", "right", timeout_s=5)
        await made_first(own)
        for user, password in (("", ""), ("broker", "wrong")):
            stranger = ZooKeeperManager(f"127.0.0.1:{keeper.port}", "/guarded", user, password, timeout_s=5)
            with pytest.raises(ManagerUnavailable, match="NoAuth"):
                await stranger.read()
            answer = await stranger.compare_and_set(CompareAndSet(1, register(2)))
            assert answer.outcome is Outcome.UNKNOWN and "NoAuth" in answer.why
            await stranger.close()
        found = await own.read()
        assert found is not None and found.register.epoch == 1
        await own.close()

    keeper = RegisterServer("zookeeper", tmp_path)
    keeper.start()
    try:
        asyncio.run(run())
    finally:
        keeper.kill()


def test_etcd_with_a_user_and_tls(tmp_path: Path) -> None:
    authority = Authority()
    certificate = authority.holder("etcd", "127.0.0.1").key_pem(tmp_path)
    server = RegisterServer("etcd", tmp_path, "--cert-file", str(certificate), "--key-file", str(certificate))
    context = ssl.create_default_context(cafile=str(authority.trust_pem(tmp_path)))
    url = f"https://127.0.0.1:{server.port}"

    def post(path: str, **body: object) -> None:
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=20)
        connection.request("POST", f"/v3/auth/{path}", json.dumps(body))
        response = connection.getresponse()
        assert response.status == http.client.OK, response.read()
        connection.close()

    async def run() -> None:
        own = EtcdManager([url], "guarded", "broker", "right", context)
        first = await made_first(own)
        # Tokens of this kind do not outlive the server: it logs in again by itself.
        server.kill()
        await asyncio.to_thread(server.start)
        second = await own.compare_and_set(CompareAndSet(first.version, register(2)))
        assert second.outcome is Outcome.DONE, second
        for stranger, why in (
            (EtcdManager([url], "guarded", "broker", "wrong", context), "authentication failed"),
            (EtcdManager([url], "guarded", tls=context), "user name is empty"),
            (EtcdManager([url], "another key", "broker", "right", context), "permission denied"),
            (EtcdManager([url], "guarded", "broker", "right"), "CERTIFICATE_VERIFY_FAILED"),
        ):
            with pytest.raises(ManagerUnavailable, match=why):
                await stranger.read()
            answer = await stranger.compare_and_set(CompareAndSet(second.version, register(3)))
            assert answer.outcome is Outcome.UNKNOWN and why in answer.why, answer
        found = await own.read()
        assert found is not None and found.version == second.version

    server.start()
    try:
        key = base64.b64encode(b"guarded").decode()
        post("user/add", name="root", password="of all")
        post("user/grant", user="root", role="root")
        post("role/add", name="guardian")
        post("role/grant", name="guardian", perm={"permType": "READWRITE", "key": key})
        post("user/add", name="broker", password="right")
        post("user/grant", user="broker", role="guardian")
        post("enable")
        asyncio.run(run())
    finally:
        server.kill()


def test_etcd_goes_to_another_endpoint(tmp_path: Path) -> None:
    async def run() -> None:
        keeper.start()
        made = EtcdManager(["http://127.0.0.1:1", f"http://127.0.0.1:{keeper.port}"], "key", timeout_s=2)
        assert await made.read() is None
        await made_first(made)
        keeper.kill()
        with pytest.raises(ManagerUnavailable, match="127.0.0.1:1 cannot be connected"):
            await made.read()

    keeper = RegisterServer("etcd", tmp_path)
    try:
        asyncio.run(run())
    finally:
        keeper.kill()
