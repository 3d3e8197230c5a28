"""An unexpected exception at every place that a command passes (kernel/command.py).

Before the command has begun to change the kernel the exception costs its connection: afterwards the node is as if the
client had closed the connection in the place of the command, and serves on. Later it ends the node, as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from atalanta.runtime.process.build import compiled_modules
from tests.node import planted_conversations as conversations

pytestmark = [
    pytest.mark.skipif(bool(compiled_modules()), reason="needs the interpreted build"),
    pytest.mark.timeout(600),  # For machines that have other things to do.
]


@pytest.fixture(scope="module")
def small_process() -> Iterator[ProcessPoolExecutor]:
    """A process that has not collected the suite: some thousand copies of it are made, and cost by its size."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as made:
        yield made


def test_core_login(small_process: ProcessPoolExecutor) -> None:
    small_process.submit(conversations.core_login).result()


def test_core_commands(small_process: ProcessPoolExecutor) -> None:
    small_process.submit(conversations.core_commands).result()


def test_management(small_process: ProcessPoolExecutor) -> None:
    """What only reads answers an error, so that the connection stays; nothing of it ends the node."""
    small_process.submit(conversations.management).result()


def test_stomp_commands(small_process: ProcessPoolExecutor) -> None:
    small_process.submit(conversations.stomp_commands).result()


def test_openwire_commands(small_process: ProcessPoolExecutor) -> None:
    small_process.submit(conversations.openwire_commands).result()


def test_a_large_message_whose_file_is_synced(small_process: ProcessPoolExecutor) -> None:
    """It is published in an input that is not of its connection; the rest of that one waits."""
    small_process.submit(conversations.a_large_message_whose_file_is_synced).result()


def test_a_login_that_waited_for_a_client_id(small_process: ProcessPoolExecutor) -> None:
    """It goes on in a timer."""
    small_process.submit(conversations.a_login_that_waited_for_a_client_id).result()
