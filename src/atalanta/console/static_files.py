"""The files that browsers get without a log-in: style and modules. They are read once, and served by their names."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class StaticFile:
    def __init__(self, content: bytes, kind: str) -> None:
        self.content = content
        self.kind = kind
        self.digest = hashlib.sha256(content).hexdigest()[:32]
        self.tag = f'"{self.digest}"'


@cache
def static_files() -> dict[str, StaticFile]:
    """Returns the files of the package's folder `static` by name. A request names one of these, or gets 404."""
    found = {}
    for entry in files("atalanta.console").joinpath("static").iterdir():
        kind = TYPES.get(f".{entry.name.rpartition('.')[2]}")
        if kind is not None:
            found[entry.name] = StaticFile(entry.read_bytes(), kind)
    return found
