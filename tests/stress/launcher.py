"""A process with the broker imported, which forks a node for each request: a start takes 0.1 s instead of 0.8 s.

Requests are lines of JSON on stdin: {"start": {...}} is answered by the process id, {"poll": id} by the exit status or
null. At the end of stdin all nodes are killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import Any

import atalanta.app.running_node
import atalanta.app.store.activation
import atalanta.cli.run  # noqa: F401
from atalanta.cli import main
from tests.stress.faults import Faults, Plan


def node(broker_xml: str, log: str, out: str, words: list[str], plan: dict[str, Any] | None) -> None:
    """Runs `atalanta run` in this process, which was just forked."""
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        file = os.open(path, flags, 0o640)
        os.dup2(file, number)
        os.close(file)
    if plan is not None:
        values: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in plan.items()}
        Faults(Plan(**values)).plant()
    sys.argv = ["atalanta", "run", broker_xml, *words]
    main.main()


def serve() -> None:
    """Answers requests until stdin ends."""
    running: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        answer: int | None
        if "start" in request:
            answer = os.fork()
            if answer == 0:
                status = 1
                try:
                    node(**request["start"])
                except SystemExit as end:
                    status = end.code if isinstance(end.code, int) else 1
                finally:
                    with contextlib.suppress(OSError, ValueError):
                        sys.stdout.flush()
                    os._exit(status)
            running.add(answer)
        else:
            found, status = os.waitpid(request["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if found else None
            running.discard(found)
        print(json.dumps(answer), flush=True)
    for each in sorted(running):
        os.kill(each, signal.SIGKILL)


if __name__ == "__main__":
    serve()
