"""The settings of a Python worker of Spark."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys

import pytest

from atalanta.spark.environment import worker

# Buffers as a task has them: pieces of a chunk, the chunk, and its copy.
CHUNKS = """
import resource
from atalanta.spark.environment.worker import settle_worker

def chunks():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        pieces = [bytes(256 << 10) for _ in range(8)]
        chunk = b"".join(pieces)
        copy = chunk[1:]
        del pieces, chunk, copy
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = chunks()
settle_worker()
chunks()
print(first, chunks())
"""


def test_the_collector_passes_over_what_was_imported_once_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "_settled_in", 0)
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    worker.settle_worker()
    worker.settle_worker()
    assert frozen == [True]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_the_memory_of_a_chunk_is_used_again() -> None:
    done = subprocess.run([sys.executable, "-c", CHUNKS], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before > 10_000 and after < 1_000
