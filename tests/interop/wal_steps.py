"""A driver of the write-ahead source at a real broker that kills itself at one step: without Spark, so without a JVM.

python -m tests.interop.wal_steps SERVER QUEUE LOCATION STEP
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from atalanta.spark.gateway.core_gateway import connection_to
from atalanta.spark.gateway.gateway import Credentials
from atalanta.spark.wal.location import ArrowDraft, LocalDraft
from atalanta.spark.wal.wal_node import CoreNode
from atalanta.spark.wal.web_hdfs import WebHdfsDraft
from tests.interop.harness.jms import PASSWORD, USER
from tests.spark.wal.query_rig import Query

STEPS = (
    "before prepare", "after prepare", "copied", "after publish", "before commit", "after commit",
    "before offset log", "before batch commit",
)  # fmt: skip


class SteppedNode(CoreNode):
    """A connection that calls `kill` around the steps of a branch."""

    kill: Callable[[str], None]

    def prepare(self) -> None:
        self.kill("before prepare")
        super().prepare()
        self.kill("after prepare")

    def commit(self, folder_id: str, branch: str) -> bool:
        self.kill("before commit")
        committed = super().commit(folder_id, branch)
        self.kill("after commit")
        return committed


class RealServers:
    """The servers of the options."""

    def __init__(self, names: str) -> None:
        self.names = names
        self.kill: Callable[[str], None] = lambda step: None

    def __call__(self, server: str, credentials: Credentials) -> SteppedNode:
        node = SteppedNode(server, connection_to(server, credentials))
        node.kill = lambda step: self.kill(step)
        return node


def query_at(server: str, queue: str, location: str, **more: str) -> Query:
    """Returns a query at the broker, with the login of the harness."""
    options = {"queue": queue, "user": USER, "password": PASSWORD, "nodeTimeout": "30s"} | more
    return Query(location, RealServers(server), **options)


def kill_in_publish(kind: Any, kill: Callable[[str], None]) -> None:
    """Adds the steps of a file's publication. `copied`: an object store has copied and not deleted yet."""
    publish = kind.publish

    def stepped(draft: Any, name: str) -> None:
        if name.endswith(".wal"):
            if isinstance(draft, ArrowDraft):
                draft.system.copy_file(f"{draft.folder}/{draft.name}", f"{draft.folder}/{name}")
                kill("copied")
            publish(draft, name)
            kill("after publish")
        else:
            publish(draft, name)

    kind.publish = stepped


def main(server: str, queue: str, location: str, wanted: str) -> None:
    def kill(step: str) -> None:
        if step == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    for kind in (LocalDraft, ArrowDraft, WebHdfsDraft):
        kill_in_publish(kind, kill)
    query = query_at(server, queue, location)
    query.servers.kill = kill
    query.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
