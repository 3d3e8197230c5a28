"""A journal folder as the last release with format version 7 has written it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.store.journal_rig import Rig, config

# Two segments with blocks, and a third that is prepared.
VECTOR = Path(__file__).parents[1] / "golden" / "vectors" / "journal-version-7.json.gz"


def version_7() -> tuple[Rig, list[bytes]]:
    """Returns a disk with the folder of version 7, and the payloads in it."""
    rig = Rig(config(4096))
    for name, content in json.loads(gzip.decompress(VECTOR.read_bytes())).items():
        rig.disk.files[name] = bytearray.fromhex(content)
    payloads = [f"record {n}.{part}".encode() * 20 for n in range(15) for part in range(1 + n % 3)]
    return rig, payloads
