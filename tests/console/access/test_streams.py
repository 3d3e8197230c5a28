"""Streams of events: so many for each user, and for all."""

from __future__ import annotations

import contextlib

import pytest

from atalanta.console.access.streams import (
    STREAMS_MAX,
    STREAMS_OF_A_USER_MAX,
    LiveStreams,
    StreamsTaken,
)
from atalanta.console.pages.live import event_of


def test_a_user_takes_a_share_and_gives_it_back() -> None:
    streams = LiveStreams()
    with contextlib.ExitStack() as stack:
        for _ in range(STREAMS_OF_A_USER_MAX):
            stack.enter_context(streams.opened("ann"))
        with pytest.raises(StreamsTaken):
            stack.enter_context(streams.opened("ann"))
        with streams.opened("ben"):
            assert len(streams) == STREAMS_OF_A_USER_MAX + 1
    assert len(streams) == 0
    with contextlib.ExitStack() as stack:
        for number in range(STREAMS_MAX):
            stack.enter_context(streams.opened(f"user{number}"))
        with pytest.raises(StreamsTaken):
            stack.enter_context(streams.opened("ann"))


def test_no_text_begins_an_event_of_its_own() -> None:
    sent = event_of("part", "a\n\nevent: end\rdata: x\r\n\r\nid: 1").decode()
    assert sent.count("\n\n") == 1 and sent.endswith("\n\n")
    assert [line.partition(":")[0] for line in sent.strip().split("\n")] == ["event", *["data"] * 5]
