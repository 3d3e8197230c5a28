"""A short run of every fuzz target (`make soak` runs a million inputs each), and of the machinery itself."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.fuzz.engine import Fuzzer
from tests.fuzz.mutator import FrameMutator, cut
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

# Conversations and files take longer; the others run COUNT inputs.
COUNT = 2000
FEW = {"node": 150, "client": 300, "management": 400, "records": 800, "broker.xml": 100, "users": 300}


@pytest.mark.parametrize("name", list(TARGETS))
def test_no_input_breaks_a_decoder(name: str, tmp_path: Path) -> None:
    outcome = Fuzzer(TARGETS[name](), 7).run(FEW.get(name, COUNT))
    places = [f"{finding.why} {finding.save(tmp_path)}" for finding in outcome.findings]
    assert not places, "\n".join(places)
    assert outcome.inputs > FEW.get(name, COUNT)


class Fragile(Target):
    """Has every fault there is, behind a few bytes that must be found."""

    name = "fragile"
    refusals = (ValueError,)
    base_bytes = 100_000
    words = (b"key", b"big", b"slow")
    seconds = 0.01

    def seeds(self) -> list[bytes]:
        return [b"abc"]

    def run(self, data: bytes) -> None:
        if data.startswith(b"key"):
            raise KeyError(data)
        if b"big" in data:
            bytearray(2_500_000)
        if data.startswith(b"slow"):
            end = time.thread_time() + 0.02
            while time.thread_time() < end:
                pass
        raise ValueError(data)


def test_each_kind_of_fault_is_found_once() -> None:
    outcome = Fuzzer(Fragile(), 1).run(3_000)
    whys = sorted(finding.why.split(":")[0].split(" ")[0] for finding in outcome.findings)
    assert whys == ["Traceback", "large", "slow"]


class Remembering(Target):
    """Breaks at the third input of its life with a 1 in it."""

    name = "remembering"

    def seeds(self) -> list[bytes]:
        return [b"1"]

    def fresh(self) -> None:
        self.ones = 0

    def run(self, data: bytes) -> None:
        self.ones += b"1" in data
        assert self.ones < 3


def test_what_needs_several_inputs_is_found_with_all_of_them() -> None:
    outcome = Fuzzer(Remembering(), 1).run(100)
    target = Remembering()
    target.fresh()
    with pytest.raises(AssertionError):
        for data in outcome.findings[0].history:
            target.run(data)


def test_a_stream_is_cut_into_its_frames_and_what_is_no_frame() -> None:
    frame = (10).to_bytes(4, "big") + bytes(9) + b"x"
    assert cut(frame + frame + b"rest") == [frame, frame, b"rest"]
    assert cut(b"\xff" * 20) == [b"\xff" * 20]
    assert FrameMutator(10, 1, [frame]).size_max == 10
