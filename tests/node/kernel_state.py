"""The state of a broker as lines of text: what two nodes with the same past must have in common."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator

from atalanta.kernel.broker.broker import Broker

PLAIN = (int, float, str, bytes, bool, type(None), bytearray)
# Counters for operators, caches that are made anew, and positions in a turn. Numbers that are taken need not be used.
PASSING = {
    "trace", "failures", "command", "now", "timers", "ids", "security", "permissions", "implied", "connections_total",
    "sessions_total", "logins_total", "logins_refused", "routed", "_number", "next_id", "observers", "config",
    "settings", "_memo", "position", "turn", "freed", "journal", "pages", "files", "large_files", "next_turn",
    "request_handlers", "connected", "dirty", "_cache", "flush_timer", "_rules", "timer_set", "reader", "number",
    "keep_alives", "last", "pulls", "_connections", "done", "copies",
}  # fmt: skip


def state_lines(broker: Broker) -> list[str]:
    """Returns one line for each value that is reachable from the broker: its path and the value.

    Left out are what the journal port and the world outside keep, and what PASSING names.
    """
    return [*_walk("broker", broker, {}), f"journal.last = {broker.journal.last}"]


def _walk(path: str, value: object, seen: dict[int, str]) -> Iterator[str]:
    if isinstance(value, PLAIN):
        yield f"{path} = {value!r}"
        return
    if isinstance(value, types.FunctionType | types.MethodType | types.BuiltinFunctionType | type):
        return
    known = seen.get(id(value))
    if known is not None:
        yield f"{path} is {known}"
        return
    seen[id(value)] = path
    if isinstance(value, dict):
        yield f"{path} has {len(value)}"
        for number, (key, entry) in enumerate(value.items()):
            name = repr(key) if isinstance(key, PLAIN) else str(number)
            yield from _walk(f"{path}[{name}]", entry, seen)
    elif isinstance(value, list | tuple | deque):
        yield f"{path} has {len(value)}"
        for number, entry in enumerate(value):
            yield from _walk(f"{path}[{number}]", entry, seen)
    elif type(value).__module__.startswith("atalanta."):
        for name, entry in sorted(_attributes(value).items()):
            if name not in PASSING:
                yield from _walk(f"{path}.{name}", entry, seen)


def _attributes(value: object) -> dict[str, object]:
    found: dict[str, object] = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(value, name):
                found[name] = getattr(value, name)
    return found
