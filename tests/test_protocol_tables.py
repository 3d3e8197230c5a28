"""Tables by protocol: each protocol that is served is in each of them, also those to come."""

from __future__ import annotations

import ast

from atalanta.config.acceptors import SERVED_PROTOCOLS
from tests.source_tree import product

# Tables of other things that some protocols have, and where a protocol without an entry means "none".
PARTIAL = {"FRAME_SIZES": "options of activemq.xml"}


def tables() -> list[tuple[str, str, set[str]]]:
    """(file, name, keys) of the tables that have a served protocol as a key."""
    found = []
    for source in product():
        for node in ast.walk(source.tree):
            target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(node, ast.Assign):
                target = node.targets[0]
            value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
            if isinstance(target, ast.Name) and isinstance(value, ast.Dict):
                keys = {key.value for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
                if keys & set(SERVED_PROTOCOLS):
                    found.append((source.name, target.id, keys))
    return found


def test_each_served_protocol_is_in_each_table() -> None:
    known = tables()
    assert "FRAME_SIZES" in [name for _, name, _ in known]
    for file, name, keys in known:
        if name not in PARTIAL:
            assert set(SERVED_PROTOCOLS) <= keys, f"{name} in {file} has no entry for {set(SERVED_PROTOCOLS) - keys}"
