"""The manager `quorum` and its voters: the contract, logins, folders, and real processes that are killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from atalanta.ha.register import CompareAndSet
from atalanta.ha.voter import Kind, Outcome, VoterRequest, VoterState
from atalanta.runtime.disk.folder_lock import DataFolderError
from atalanta.runtime.ha.managers.manager import Found, ManagerUnavailable
from atalanta.runtime.ha.managers.quorum_manager import QuorumManager
from atalanta.runtime.ha.managers.voter_codec import PAYLOAD_SIZE_MAX, encode_request
from atalanta.runtime.ha.managers.voter_connection import (
    MAGIC,
    NONCE_SIZE,
    PROTOCOL,
    VoterConnectionError,
    connect_voter,
    password_key,
)
from atalanta.runtime.ha.managers.voter_folder import REGISTERS_MAX, VoterFolder
from atalanta.runtime.ha.managers.voter_server import VoterServer
from tests.runtime.ha.managers.manager_contract import Counting, check_contract, register
from tests.runtime.ha.managers.witness_process import PASSWORD, witnesses

HOST = "127.0.0.1"


@asynccontextmanager
async def voter(folder: Path, password: str = PASSWORD) -> AsyncIterator[tuple[VoterServer, int]]:
    """Runs a voter in this process; yields it and its port."""
    voters = VoterFolder(folder, new=not folder.exists())
    server = VoterServer(voters, password)
    try:
        yield server, await server.listen(HOST, 0)
    finally:
        await server.close()
        voters.close()


def manager(*ports: int, password: str = PASSWORD, name: str = "group", timeout_s: float = 10.0) -> QuorumManager:
    return QuorumManager([(HOST, port) for port in ports], name, password, os.urandom(8), timeout_s)


def test_contract(tmp_path: Path) -> None:
    async def run() -> None:
        async with voter(tmp_path / "1") as (_, a), voter(tmp_path / "2") as (_, b), voter(tmp_path / "3") as (_, c):
            managers = manager(a, b, c), manager(c, b, a)
            await check_contract(*managers)
            other = manager(a, b, c, name="another group")
            assert await other.read() is None
            for each in (*managers, other):
                await each.close()

    asyncio.run(run())


def test_a_value_outlives_its_voters_and_a_minority_confirms_nothing(tmp_path: Path) -> None:
    folders = [tmp_path / str(at) for at in range(3)]
    value = register(1)

    async def first() -> None:
        async with voter(folders[0]) as (_, a), voter(folders[1]) as (_, b), voter(folders[2]):
            writer = manager(a, b, 1)  # nobody listens at port 1
            assert (await writer.compare_and_set(CompareAndSet(0, value))).outcome is Outcome.DONE
            await writer.close()

    async def second() -> None:
        async with voter(folders[1]) as (_, b), voter(folders[2]) as (_, c):
            reader = manager(1, b, c)
            assert await reader.read() == Found(1, value)
            assert list(reader.silent()) == ["127.0.0.1:1"]  # the others are a majority
            await reader.close()
            alone = manager(1, 1 + 1, b, timeout_s=0.5)
            with pytest.raises(ManagerUnavailable, match="no majority.*127.0.0.1:1: "):
                await alone.read()
            answer = await alone.compare_and_set(CompareAndSet(1, register(2)))
            assert answer.outcome is Outcome.UNKNOWN and "127.0.0.1:2: " in answer.why
            await alone.close()
            assert await reader.read() == Found(1, value)
            await reader.close()

    asyncio.run(first())
    asyncio.run(second())


def test_nobody_without_the_password_is_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with voter(tmp_path / "1") as (_, port):
            for password in ("wrong", ""):
                stranger = manager(port, password=password, timeout_s=0.5)
                with pytest.raises(ManagerUnavailable, match="is the password right"):
                    await stranger.read()
                await stranger.close()
            friend = manager(port)
            assert await friend.read() is None
            await friend.close()

    asyncio.run(run())
    assert caplog.text.count("voter_connection_refused") == 1 and "wrong password" in caplog.text


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n" + b"x" * 80,
        MAGIC + (PROTOCOL + 1).to_bytes(2, "big") + bytes(NONCE_SIZE),
        MAGIC + PROTOCOL.to_bytes(2, "big") + bytes(NONCE_SIZE) + bytes(32)
        + encode_request("group", VoterRequest(Kind.ACCEPT, (9, b"x"), 1, b"forged")),
    ],
    ids=["stranger", "other version", "request before the proof"],
)  # fmt: skip
def test_a_voter_closes_the_connection_of_a_stranger(tmp_path: Path, sent: bytes) -> None:
    async def run() -> None:
        async with voter(tmp_path / "1") as (_, port):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(sent)
            async with asyncio.timeout(10):
                received = await reader.read(1000)
                while more := await reader.read(1000):
                    received += more
            assert len(received) == len(MAGIC) + 2 + NONCE_SIZE + 8, "the challenge and nothing else"
            writer.close()

    asyncio.run(run())
    assert not list((tmp_path / "1").glob("register.*"))


def test_a_voter_that_does_not_know_the_password_is_not_believed() -> None:
    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(MAGIC) + 2 + NONCE_SIZE)
        writer.write(MAGIC + PROTOCOL.to_bytes(2, "big") + bytes(NONCE_SIZE + 8))
        await reader.readexactly(32)
        writer.write(bytes(32))
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(impostor, HOST, 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(VoterConnectionError, match="does not know the password"):
            await connect_voter(HOST, port, password_key(PASSWORD))
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize("frame", ["changed", "too long"])
def test_a_bad_frame_ends_the_connection(tmp_path: Path, frame: str) -> None:
    async def run() -> None:
        async with voter(tmp_path / "1") as (_, port):
            connection = await connect_voter(HOST, port, password_key(PASSWORD))
            payload = encode_request("group", VoterRequest(Kind.ACCEPT, (9, b"x"), 1, b"forged"))
            if frame == "changed":
                connection.writer.write(len(payload).to_bytes(4, "big") + payload + bytes(32))
            else:
                connection.writer.write((PAYLOAD_SIZE_MAX + 1).to_bytes(4, "big"))
            async with asyncio.timeout(10):
                assert await connection.reader.read() == b""
            connection.writer.close()

    asyncio.run(run())
    assert not list((tmp_path / "1").glob("register.*"))


def test_two_names_of_one_voter_are_not_two_voters(tmp_path: Path) -> None:
    async def run() -> None:
        async with voter(tmp_path / "1") as (_, port):
            voters = [(HOST, port), ("localhost", port), (HOST, 1)]
            doubled = QuorumManager(voters, "group", PASSWORD, os.urandom(8), 1.0)
            with pytest.raises(ManagerUnavailable, match="it is the same voter as"):
                await doubled.read()
            await doubled.close()

    asyncio.run(run())
    with pytest.raises(ValueError, match="each once"):
        manager(1, 1)


def test_a_voter_that_cannot_write_answers_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with voter(tmp_path / "1") as (server, port):

            def full(_folder: VoterFolder, _name: str, _state: VoterState) -> None:
                raise OSError(28, "No space left on device")

            monkeypatch.setattr(VoterFolder, "store", full)
            writer = manager(port, timeout_s=0.5)
            answer = await writer.compare_and_set(CompareAndSet(0, register(1)))
            assert answer.outcome is Outcome.UNKNOWN
            with pytest.raises(ManagerUnavailable):
                await writer.read()
            await writer.close()
            assert isinstance(server.failed.exception(), OSError)

    asyncio.run(run())


def test_folders_of_voters(tmp_path: Path) -> None:
    folder = tmp_path / "voter"
    with pytest.raises(DataFolderError, match="--new"):
        VoterFolder(folder, new=False)
    opened = VoterFolder(folder, new=True)
    state = VoterState((5, b"p"), (4, b"a"), 3, b"value")
    opened.store("group", state)
    with pytest.raises(DataFolderError, match="in use"):
        VoterFolder(folder, new=False)
    opened.close()
    with pytest.raises(DataFolderError, match="without --new"):
        VoterFolder(folder, new=True)
    again = VoterFolder(folder, new=False)
    assert again.voter("group").state == state and again.voter_id == opened.voter_id
    for number in range(REGISTERS_MAX - 1):
        again.voter(str(number))
    with pytest.raises(Exception, match="the most it keeps"):
        again.voter("one more")
    again.close()
    file = next(folder.glob("register.*"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(DataFolderError, match="--copy-of"):
        VoterFolder(folder, new=False)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(DataFolderError, match="no folder of a voter"):
        VoterFolder(tmp_path / "other", new=True)


def test_a_new_voter_in_the_place_of_a_lost_one_knows_the_newest(tmp_path: Path) -> None:
    """The newest is the one with the highest accepted ballot, not the one with the highest version."""
    folders = [tmp_path / name for name in ("a", "b")]
    chosen = VoterState((6, b"q"), (6, b"q"), 3, b"confirmed")
    for folder, state in zip(folders, (VoterState((9, b"p"), (5, b"p"), 4, b"refused"), chosen), strict=True):
        opened = VoterFolder(folder, new=True)
        opened.store("group", state)
        opened.close()
    with pytest.raises(DataFolderError, match="no folder of a voter"):
        VoterFolder(tmp_path / "c", True, [tmp_path])
    fresh = VoterFolder(tmp_path / "c", True, folders)
    assert fresh.voter("group").state == chosen
    fresh.close()


# --- real processes ----------------------------------------------------------------------------------


@pytest.mark.process
def test_counters_while_witnesses_are_killed(tmp_path: Path) -> None:
    """Two writers; one witness at a time is killed at a random point and starts again."""

    async def run() -> Counting:
        ports = [each.port for each in made]
        managers = [manager(*ports, timeout_s=3.0) for _ in range(2)]
        counting = Counting()
        over = asyncio.Event()
        writers = [
            asyncio.ensure_future(counting.write(each, str(at), over.is_set))
            for at, each in enumerate(managers)
        ]
        chance = random.Random(18)
        for _ in range(3):
            await asyncio.sleep(chance.uniform(0.05, 0.3))
            victim = chance.choice(made)
            victim.kill()
            await asyncio.sleep(chance.uniform(0.05, 0.3))
            victim.start()
            await asyncio.to_thread(victim.wait_ready)
        over.set()
        await asyncio.gather(*writers)
        counting.check(await managers[0].read())
        for each in managers:
            await each.close()
        return counting

    with witnesses(tmp_path) as made:
        counting = asyncio.run(run())
    assert len(counting.confirmed) > 20
    assert len(counting.unknown) < len(counting.confirmed) / 4, "one of three does not hinder"


@pytest.mark.soak
@pytest.mark.process
@pytest.mark.parametrize("seed", range(5))
def test_counters_while_any_witness_is_killed_or_stopped(tmp_path: Path, seed: int) -> None:
    """Two writers; up to all witnesses are away at once."""

    async def run() -> Counting:
        managers = [manager(*[each.port for each in made], timeout_s=0.5) for _ in range(2)]
        counting = Counting()
        over = asyncio.Event()
        writers = [
            asyncio.ensure_future(counting.write(each, str(at), over.is_set))
            for at, each in enumerate(managers)
        ]
        chance = random.Random(seed)
        for _ in range(20):
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            victims = chance.sample(made, chance.randint(1, 3))
            stopped = chance.random() < 0.5
            for each in victims:
                if stopped:
                    each.send(signal.SIGSTOP)
                else:
                    each.kill()
            await asyncio.sleep(chance.uniform(0.0, 1.5))
            for each in victims:
                if stopped:
                    each.send(signal.SIGCONT)
                else:
                    each.start()
                    await asyncio.to_thread(each.wait_ready)
        over.set()
        await asyncio.gather(*writers)
        last = manager(*[each.port for each in made], timeout_s=30)
        counting.check(await last.read())
        for used in (*managers, last):
            await used.close()
        return counting

    with witnesses(tmp_path) as made:
        counting = asyncio.run(run())
    assert len(counting.confirmed) > 20 and counting.unknown
    print(f"{len(counting.confirmed)} confirmed, {len(counting.unknown)} unknown, {counting.conflicts} conflicts")


@pytest.mark.process
def test_a_stopped_majority_makes_the_outcome_unknown_and_reading_settles_it(tmp_path: Path) -> None:
    async def run() -> None:
        first = manager(*[each.port for each in made], timeout_s=1.0)
        start = await first.compare_and_set(CompareAndSet(0, register(1)))
        assert start.outcome is Outcome.DONE
        for each in made[:2]:
            each.send(signal.SIGSTOP)
        value = register(2)
        answer = await first.compare_and_set(CompareAndSet(1, value))
        assert answer.outcome is Outcome.UNKNOWN and "no majority" in answer.why
        with pytest.raises(ManagerUnavailable):
            await first.read()
        for each in made[:2]:
            each.send(signal.SIGCONT)
        # The request may be carried out now: repeated unchanged until it is settled.
        deadline = time.monotonic() + 30
        while answer.outcome is Outcome.UNKNOWN and time.monotonic() < deadline:
            answer = await first.compare_and_set(CompareAndSet(1, value))
        assert (answer.outcome, answer.version) == (Outcome.DONE, 2)
        second = manager(*[each.port for each in made])
        assert await second.read() == Found(2, value)
        for used in (first, second):
            await used.close()

    with witnesses(tmp_path) as made:
        asyncio.run(run())
