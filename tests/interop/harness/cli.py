"""The command line of a real Artemis distribution."""

from __future__ import annotations

import os
import subprocess

from .broker_xml import USERS
from .node import BrokerProcess
from .tools import SMALL_JVM, artemis_home, java

COMMAND_SECONDS = 90.0


class ArtemisCli:
    """`artemis` against one broker, as admin at first; every call is a JVM of its own."""

    def __init__(self, node: BrokerProcess) -> None:
        self.node = node
        # "artemis user" needs an instance folder.
        self._java = " ".join(("-Xmx256M", *SMALL_JVM, f"-Dartemis.instance={node.folder}"))
        self._url = ["--url", f"tcp://127.0.0.1:{node.port}"]
        self.login("admin", USERS["admin"][0])

    def login(self, user: str, password: str) -> None:
        """The credentials of the next commands."""
        self._options = [*self._url, "--user", user, "--password", password]

    def __call__(self, command: str, *arguments: str) -> str:
        """All that the command prints; it does not say by its status whether it worked."""
        return self.bare(*command.split(), *self._options, *arguments)

    def bare(self, *words: str) -> str:
        """All that a command without URL and credentials prints."""
        done = subprocess.run(
            [str(artemis_home() / "bin" / "artemis"), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
            env={**os.environ, "JAVACMD": java(), "JAVA_ARGS": self._java},
        )
        return done.stdout
