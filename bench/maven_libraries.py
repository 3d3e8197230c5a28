"""Jars from Maven Central, for a pom.xml that copies what it depends on."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from bench.settings import CACHE
from tests.interop.harness.tools import ToolMissing


def libraries(pom: Path) -> Path:
    """The folder of jars; fetched at first, and when the pom has changed. Its build writes to .cache/bench/."""
    folder = CACHE / f"kafka-{pom.parent.name}" / "lib"
    stamp = folder / "digest"
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return folder
    if shutil.which("mvn") is None:
        raise ToolMissing("Kafka is fetched with Apache Maven: no mvn on PATH")
    shutil.rmtree(folder, ignore_errors=True)
    command = ["mvn", "-B", "-q", "-f", str(pom), "package"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        text = (done.stdout + done.stderr)[-3000:]
        raise ToolMissing(f"{' '.join(command)} failed:\n{text}")
    stamp.write_text(digest)
    return folder
