"""Requests about the configuration of a node, executed without the node: `rig.ask(CHANGE, …)`."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from atalanta.app.changes.requests import ConfigurationRequests
from atalanta.app.storage import Storage
from atalanta.config.broker_xml import read_broker_xml
from atalanta.kernel.settings.configuration_request import (
    CHANGE,
    DOWNLOAD,
    HISTORY,
    LIST,
    PREVIEW,
    UNDO,
    ConfigurationAnswer,
    ConfigurationRequest,
)
from atalanta.runtime.lifecycle.reloader import Reloaded

BROKER = """<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>shop</name>
    <security-enabled>false</security-enabled>
    <journal-directory>data</journal-directory>
    <cluster-user>u</cluster-user>
    <cluster-password>geheim</cluster-password>
    <connectors>
      <connector name="other">tcp://127.0.0.1:61617</connector>
    </connectors>
    <acceptors>
      <acceptor name="artemis">tcp://127.0.0.1:61616</acceptor>
    </acceptors>
    <bridges>
      <!-- to the other shop -->
      <bridge name="one">
        <queue-name>orders</queue-name>
        <user>u</user>
        <password>geheim too</password>
        <static-connectors>
          <connector-ref>other</connector-ref>
        </static-connectors>
      </bridge>
    </bridges>
  </core>
</configuration>
"""
OWN = "configuration-changes = true\n"


class Attempts:
    """A node's files, and the requests of its operators. `applied` are the configurations that the node got; it refuses
    one if `problem` says why."""

    def __init__(self, folder: Path, text: str = BROKER, own: str | None = OWN) -> None:
        self.path = folder / "broker.xml"
        if not self.path.exists():
            self.path.write_text(text)
            if own is not None:
                (folder / "atalanta.toml").write_text(own)
        (folder / "data").mkdir(exist_ok=True)
        self.applied: list[Reloaded] = []
        self.problem = ""
        self.last = ConfigurationAnswer()
        self.start()

    def start(self) -> None:
        """The node starts (again)."""
        self.requests = ConfigurationRequests(read_broker_xml(self.path), Storage(uuid.UUID(int=1), None))

    def ask(self, kind: str, text: str = "", user: str = "admin") -> Any:
        """The result, as JSON gives it."""
        attempt = self.requests.attempt(ConfigurationRequest(kind, text, user, "10.0.0.1:5"))
        found = attempt.begin()
        problem = ""
        if found is not None:
            problem = self.problem
            if not problem:
                self.applied.append(found)
        self.last = attempt.end(problem)
        return json.loads(json.dumps(self.last.result))

    def listing(self) -> Any:
        """What listConfiguration has."""
        return self.ask(LIST)

    def change(self, *changes: dict[str, object], digest: str | None = None, kind: str = CHANGE) -> Any:
        """The answer to a change; without a digest, of the files as they are."""
        if digest is None:
            digest = self.listing()["digest"]
        return self.ask(kind, json.dumps({"digest": digest, "changes": changes, "by": "192.168.7.7"}))

    def preview(self, *changes: dict[str, object]) -> Any:
        """The answer to a preview."""
        return self.change(*changes, kind=PREVIEW)

    def history(self) -> Any:
        """The last changes."""
        return self.ask(HISTORY)

    def undo(self, wanted: str, digest: str | None = None) -> Any:
        """The answer to an undo."""
        return self.ask(UNDO, json.dumps({"id": wanted, "digest": digest or self.listing()["digest"]}))

    def download(self) -> Any:
        """The file with all changes."""
        return self.ask(DOWNLOAD)



def added(bridge: str = "two", values: dict[str, object] | None = None) -> dict[str, object]:
    """A bridge that is added."""
    given = {"queue-name": "orders", "static-connectors": ["other"], **(values or {})}
    return {"action": "add", "kind": "bridge", "name": bridge, "values": given}
