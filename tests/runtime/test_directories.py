"""Directories are asked beside the loop: it goes on meanwhile, and one that is away delays nobody for long."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from atalanta.cluster.inputs import NodeInputs
from atalanta.kernel.security.directory import DirectoryAnswer, DirectoryConfig
from atalanta.kernel.security.directory_logins import ASKED_MAX
from atalanta.runtime import directories
from atalanta.runtime.directories import ThreadDirectories
from tests.runtime.driven import driver_of
from tests.waiting import reached

FIRST = DirectoryConfig(("ldap://first:389",))
OTHER = DirectoryConfig(("ldap://second:389",))
Answering = Callable[[DirectoryConfig, str], DirectoryAnswer]


class Answers(NodeInputs):
    def __init__(self) -> None:
        self.by_token: dict[int, DirectoryAnswer] = {}

    def on_looked_up(self, now: int, token: int, answer: DirectoryAnswer) -> None:
        self.by_token[token] = answer


class Clients:
    """Makes clients that answer as the test says, and counts them."""

    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.made = 0
        self.closed = 0
        self.lock = threading.Lock()

    def __call__(self, directory: DirectoryConfig) -> FakeClient:
        with self.lock:
            self.made += 1
        return FakeClient(self, directory)


class FakeClient:
    def __init__(self, clients: Clients, directory: DirectoryConfig) -> None:
        self.clients = clients
        self.directory = directory

    def look_up(self, user: str, password: str | None) -> DirectoryAnswer:
        return self.clients.answering(self.directory, user)

    def close(self) -> None:
        with self.clients.lock:
            self.clients.closed += 1


def answered(answering: Answering, use: Callable[[ThreadDirectories, Answers, Clients], object]) -> Answers:
    """Runs `use`, a coroutine function, in a loop with directories that answer so."""

    async def run() -> Answers:
        node, clients = Answers(), Clients(answering)
        asked = ThreadDirectories(asyncio.get_running_loop(), driver_of(node), clients)
        try:
            done = use(asked, node, clients)
            assert asyncio.iscoroutine(done)
            await done
        finally:
            asked.close()
        return node

    return asyncio.run(run())


def yes(directory: DirectoryConfig, user: str) -> DirectoryAnswer:
    return DirectoryAnswer(True, (user,))


def test_each_question_gets_its_answer() -> None:
    async def use(asked: ThreadDirectories, node: Answers, clients: Clients) -> None:
        for token in range(100):
            asked.look_up(token, FIRST, f"user {token}", "secret")
        await reached(lambda: len(node.by_token) == 100)
        assert 1 <= clients.made <= ASKED_MAX

    node = answered(yes, use)
    assert all(answer.roles == (f"user {token}",) for token, answer in node.by_token.items())


def test_the_loop_and_other_directories_go_on_while_one_is_silent() -> None:
    release = threading.Event()

    def silent(directory: DirectoryConfig, user: str) -> DirectoryAnswer:
        if directory == FIRST:
            release.wait(60)
        return yes(directory, user)

    async def use(asked: ThreadDirectories, node: Answers, clients: Clients) -> None:
        for token in range(10):
            asked.look_up(token, FIRST, "anna", "secret")
        asked.look_up(10, OTHER, "anna", "secret")
        await reached(lambda: 10 in node.by_token)
        assert list(node.by_token) == [10]
        release.set()
        await reached(lambda: len(node.by_token) == 11)

    answered(silent, use)


def test_who_waits_for_a_directory_that_is_away_is_answered_at_once() -> None:
    attempts: list[float] = []

    def away(directory: DirectoryConfig, user: str) -> DirectoryAnswer:
        attempts.append(time.monotonic())
        return DirectoryAnswer(False, problem="away")

    async def use(asked: ThreadDirectories, node: Answers, clients: Clients) -> None:
        for token in range(1_000):
            asked.look_up(token, FIRST, "anna", "secret")
        await reached(lambda: len(node.by_token) == 1_000)

    node = answered(away, use)
    assert all(answer.problem == "away" for answer in node.by_token.values())
    first = attempts[0]
    assert len([at for at in attempts if at - first < directories.RETRY_S]) <= ASKED_MAX


def test_a_directory_is_asked_again_after_a_while() -> None:
    said = ["away", ""]

    def once_away(directory: DirectoryConfig, user: str) -> DirectoryAnswer:
        problem = said.pop(0) if said else ""
        return DirectoryAnswer(not problem, problem=problem)

    async def use(asked: ThreadDirectories, node: Answers, clients: Clients) -> None:
        def asks() -> bool:
            asked.look_up(len(node.by_token), FIRST, "anna", "secret")
            return any(answer.accepted for answer in node.by_token.values())

        await reached(asks)

    answered(once_away, use)


def test_a_client_that_fails_refuses_that_login_only() -> None:
    def broken(directory: DirectoryConfig, user: str) -> DirectoryAnswer:
        if user == "odd":
            raise RuntimeError("secret")
        return yes(directory, user)

    async def use(asked: ThreadDirectories, node: Answers, clients: Clients) -> None:
        asked.look_up(1, FIRST, "odd", "secret")
        await reached(lambda: 1 in node.by_token)
        asked.look_up(2, FIRST, "anna", "secret")
        await reached(lambda: 2 in node.by_token)

    node = answered(broken, use)
    odd = node.by_token[1]
    assert not odd.accepted and not odd.problem and "RuntimeError" in odd.why and "secret" not in odd.why
    assert node.by_token[2].accepted


def test_who_asks_while_there_are_no_threads_is_answered_and_later_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(asked: ThreadDirectories, node: Answers, clients: Clients) -> None:
        def start(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            for token in range(2 * ASKED_MAX):
                asked.look_up(token, FIRST, "anna", "secret")
        await reached(lambda: len(node.by_token) == 2 * ASKED_MAX)
        asked.look_up(100, FIRST, "anna", "secret")
        await reached(lambda: 100 in node.by_token)

    node = answered(yes, use)
    assert node.by_token[0].problem == "can't start new thread" and "TasksMax" in node.by_token[0].remedy
    assert node.by_token[100].accepted


def test_the_end_waits_for_no_answer() -> None:
    release = threading.Event()

    def silent(directory: DirectoryConfig, user: str) -> DirectoryAnswer:
        release.wait(60)
        return yes(directory, user)

    async def use(asked: ThreadDirectories, node: Answers, clients: Clients) -> None:
        for token in range(10):
            asked.look_up(token, FIRST, "anna", "secret")
        await reached(lambda: clients.made == ASKED_MAX)
        begin = time.monotonic()
        asked.close()
        assert time.monotonic() - begin < 5
        release.set()
        await reached(lambda: clients.closed == ASKED_MAX)

    node = answered(silent, use)
    assert node.by_token == {}
