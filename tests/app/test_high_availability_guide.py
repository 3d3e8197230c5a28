"""The example of docs/guide/high-availability.md, as it is written there, with other ports."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

import pytest

from atalanta.client import Message, connect
from tests.app.pair import PairProcess
from tests.broker_process import free_port
from tests.source_tree import ROOT

PAGE = ROOT / "docs" / "guide" / "high-availability.md"


@pytest.mark.process
def test_the_pair_of_the_guide_survives_a_kill(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    ports = {"61616": str(free_port()), "61617": str(free_port())}

    def own(page: str) -> str:
        return re.sub("61616|61617", lambda found: ports[found.group()], page)

    files = re.findall(r"```xml\n(<configuration.*?)```", text, re.DOTALL)
    assert len(files) == 2
    both = []
    for name, file in zip(("primary", "backup"), files, strict=True):
        etc = tmp_path / name / "etc"
        etc.mkdir(parents=True)
        (etc / "broker.xml").write_text(own(file))
        both.append(PairProcess(etc / "broker.xml", 0))
    found = re.search(r"^    (\(tcp://.*)$", text, re.MULTILINE)
    assert found is not None
    url = own(found.group(1))

    async def send() -> None:
        async with connect(url) as connection:
            producer = await connection.producer("orders", routing="anycast")
            await producer.send(Message("one coffee"))

    async def receive() -> str | None:
        async with connect(url) as connection:
            message = await (await connection.consumer("orders", ack="auto")).receive(30)
            return None if message is None else message.text

    primary, backup = both
    try:
        primary.start()
        primary.until_role("active")
        assert primary.lines() == [own("ready role=active artemis=127.0.0.1:61616")]
        backup.start()
        backup.until_role("passive")
        assert backup.lines() == ["ready role=passive"]
        asyncio.run(send())
        primary.end(signal.SIGKILL)
        backup.until_role("active")
        assert asyncio.run(receive()) == "one coffee"
    finally:
        for each in both:
            each.__exit__(None, None, None)
