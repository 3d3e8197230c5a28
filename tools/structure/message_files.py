"""The files of a node that one message enters, by sys.setprofile over two simulated nodes.

A client publishes one durable message of 2 bytes and waits for the answer; a consumer acknowledges
it. Counted are the files of the package in which a function of a node runs, from the first input of
the message until its acknowledgement is durable; simulator, runtime and the clients' own code are
left out. Needs the interpreted package: functions of a compiled one are invisible to a profile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

LEFT_OUT = ("sim/", "runtime/")
INPUTS = ("on_", "flush")  # methods of a node by which everything enters
SETTLE_SECONDS = 0.2  # virtual; acknowledgements are durable long before, and no keep-alive is due


class Recorder:
    """Files below `source` that run while a node handles an input, and the number of calls in them."""

    def __init__(self, source: Path) -> None:
        self.prefix = f"{source}/"
        self.files: dict[str, int] = {}

    def watch(self, node: Any) -> None:
        """Wraps every input of a node of the simulator."""
        for name in dir(node):
            if name.startswith(INPUTS) and callable(getattr(node, name)):
                setattr(node, name, self._wrapped(getattr(node, name)))

    def _wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*arguments: Any) -> Any:
            sys.setprofile(self._profile)
            try:
                return call(*arguments)
            finally:
                sys.setprofile(None)

        return recorded

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(self.prefix):
            name = frame.f_code.co_filename.removeprefix(self.prefix)
            if not name.startswith(LEFT_OUT):
                self.files[name] = self.files.get(name, 0) + 1


def trace(root: Path, nodes: int) -> dict[str, int]:
    """Calls by file for one message in a cluster of one node or two: published at the first, consumed at the last."""
    source = root / "src" / "atalanta"
    for path in (str(root), str(source.parent)):
        if path not in sys.path:
            sys.path.insert(0, path)
    from tests.cluster.cluster_rig import Rig

    rig = Rig()
    hosts = rig.cluster(nodes)
    first, last = hosts[0], hosts[-1]
    consumer = rig.consuming(last, known_at=first if nodes > 1 else None)
    sender = rig.client(first)
    # A first message: the credit of senders and links comes once.
    sender.publish("orders", b"hi")
    rig.until(lambda: consumer.bodies and sender.answers)
    rig.run(SETTLE_SECONDS)
    recorder = Recorder(source)
    for host in hosts:
        recorder.watch(host.node)
    sender.publish("orders", b"hi")
    rig.until(lambda: len(consumer.bodies) == 2 and len(sender.answers) == 2)
    rig.run(SETTLE_SECONDS)
    return dict(sorted(recorder.files.items()))
