"""A real Artemis in a process of its own."""

from __future__ import annotations

import os
import subprocess

from .node import BrokerFailed, BrokerProcess
from .tools import SMALL_JVM, artemis_home, java


class ArtemisNode(BrokerProcess):
    """An instance made by `artemis create`, with the harness's broker.xml."""

    kind = "artemis"
    jvm_options: tuple[str, ...] = ()

    def _create(self) -> None:
        command = [str(artemis_home() / "bin" / "artemis"), "create", str(self.folder), "--silent"]
        command += ["--user", "admin", "--password", "admin", "--require-login", "--nio"]
        command += ["--host", "127.0.0.1", "--default-port", str(self.port), "--no-web"]
        command += ["--no-autotune", "--no-amqp-acceptor", "--no-mqtt-acceptor"]
        command += ["--no-stomp-acceptor", "--no-hornetq-acceptor"]
        environment = {**os.environ, **self._environment()}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise BrokerFailed(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")

    def _command(self) -> list[str]:
        return [str(self.folder / "bin" / "artemis"), "run"]  # it execs the JVM: one process

    def _environment(self) -> dict[str, str]:
        arguments = ("-Xms64M", "-Xmx512M", *SMALL_JVM, "-Dlog4j2.disableJmx=true", *self.jvm_options)
        return {"JAVA_ARGS": " ".join(arguments), "JAVACMD": java()}

    def _ready(self) -> bool:
        return "AMQ221007" in self.log.read_text(errors="replace")  # "Server is now active"
