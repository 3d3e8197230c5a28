"""Hashes are computed beside the loop: it goes on meanwhile, and hears of each result."""

from __future__ import annotations

import asyncio

from atalanta.kernel.security.password import StoredPassword, hash_password
from atalanta.runtime.process.event_loop import run
from tests.runtime.net.echo import Running, with_echo


def test_the_loop_goes_on_while_a_password_is_compared() -> None:
    stored = StoredPassword(hash_password("pw", b"salt", 300_000))
    turns = 0

    async def use(running: Running) -> None:
        nonlocal turns
        running.shell.passwords.verify(1, stored, "pw")
        running.shell.passwords.verify(2, stored, "wrong")
        assert not running.node.words("verified")
        while len(running.node.words("verified")) < 2:
            turns += 1
            await asyncio.sleep(0.001)

    _, node = run(with_echo(use))
    assert node.words("verified") == [("verified", 1, True), ("verified", 2, False)]
    assert turns > 10


def test_a_stop_does_not_wait_for_what_is_still_to_be_compared() -> None:
    stored = StoredPassword(hash_password("pw", b"salt", 100_000))

    async def use(running: Running) -> None:
        for token in range(1_000):
            running.shell.passwords.verify(token, stored, "pw")

    _, node = run(with_echo(use))
    assert len(node.words("verified")) < 1_000
