"""A short run of every fuzz target (`make soak` runs a million inputs each), and of the machinery itself."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lxml import etree

from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.session import CreateSessionV2
from tests.fuzz.engine import Fuzzer
from tests.fuzz.memory import STATM
from tests.fuzz.mutator import FrameMutator, cut
from tests.fuzz.node_targets import NodeTarget
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS
from tests.fuzz.xml_mutator import XmlMutator, elements
from tests.wire.core.server.server_rig import queue_request

# Conversations and files take longer; the others run COUNT inputs.
COUNT = 2000
FEW = {
    "node": 150, "client": 300, "openwire server": 300, "stomp": 300, "management": 400, "records": 800, "damage": 40,
    "broker.xml": 100, "users": 300, "core in order": 40, "openwire in order": 40, "stomp in order": 40,
}  # fmt: skip


@pytest.mark.parametrize("name", list(TARGETS))
def test_no_input_breaks_a_decoder(name: str, tmp_path: Path) -> None:
    outcome = Fuzzer(TARGETS[name](), 7).run(FEW.get(name, COUNT))
    places = [f"{finding.why} {finding.save(tmp_path)}" for finding in outcome.findings]
    assert not places, "\n".join(places)
    assert outcome.inputs > FEW.get(name, COUNT)


def test_a_stranger_who_logs_in_and_breaks_the_protocol_in_one_piece_is_no_finding() -> None:
    login = CreateSessionV2(name="s", session_channel=10, version=136, user="admin", password="admin")
    frames = [codec.encode(login, 1), codec.encode(queue_request("orders", None, 1), 10)]
    NodeTarget().run(b"\x00\x00" + b"".join(frames) + b"\x00\x00\x00\x09\xff" + bytes(8))


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


class Greedy(Target):
    """Takes much for one input only, in blocks that it fills or does not even touch."""

    name = "greedy"

    def __init__(self, size: int = 0, filled: bool = False) -> None:
        self.size = size
        self.filled = filled
        self.inputs = 0

    def seeds(self) -> list[bytes]:
        return [b"a"]

    def run(self, data: bytes) -> None:
        self.inputs += 1
        if self.inputs == 30:
            self.taken = data
        if self.inputs >= 30 and data == self.taken:
            (b"\1" if self.filled else b"\0") * self.size if self.filled else bytearray(self.size)


@pytest.mark.skipif(not STATM.exists(), reason="needs /proc")
def test_a_block_that_is_never_touched_is_found_though_memory_is_not_measured() -> None:
    outcome = Fuzzer(Greedy(1 << 30), 1).run(60)
    assert "MemoryError" in outcome.findings[0].why


def test_what_takes_many_pages_is_looked_at_whatever_the_process_has_freed_before() -> None:
    for _ in range(2):  # glibc keeps blocks of this size once it got one back
        bytearray(b"\1") * (16 << 20)
    outcome = Fuzzer(Greedy(4 << 20, True), 1).run(60)
    assert outcome.looked_at >= 1


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


def test_guided_runs_keep_what_went_a_new_way(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--out", str(tmp_path)]
    root = Path(__file__).resolve().parent.parent.parent
    environment = dict(os.environ, PYTHONPATH=f"{root / 'src'}{os.pathsep}{root}")
    command += ["--count", "300", "--target", "selectors", "--seed", "3"]
    told = subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True).stdout
    kept = sorted(path.name for path in (tmp_path / "selectors").iterdir())
    assert " branches" in told and len(kept) > 3


def test_xml_stays_well_formed_for_the_most_part() -> None:
    data = b"<a x='1'><b>t</b><c y='2'/><b><d>u</d></b></a>"
    assert [data[one.begin : one.begin + 2] for one in elements(data)] == [b"<a", b"<b", b"<c", b"<b", b"<d"]
    mutator = XmlMutator(1000, (b"<",), (b"e", b"f"), (b"v",))
    source = random.Random(1)
    good = 0
    for _ in range(300):
        try:
            etree.fromstring(mutator.change(source, data, [data]))
        except etree.XMLSyntaxError:
            continue
        good += 1
    assert good > 200
