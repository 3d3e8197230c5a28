"""Nodes that answer the console from memory: Atalanta nodes with a configuration, and real Artemis nodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from atalanta.client import ManagementFailed
from atalanta.console.access.sessions import UserCredentials
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.place import NodePlace

READS = ("listConfiguration", "listConfigurationChanges", "listNetworkTopology", "listPermittedOperations")
PARAMETERS = {
    "bridge": [
        {"name": "name", "required": True},
        {"name": "queue-name", "meaning": "the queue that is read", "required": True},
        {"name": "forwarding-address", "meaning": "the address there"},
        {"name": "retry-interval", "default": "2000", "unit": "ms", "meaning": "the pause"},
        {"name": "ha", "default": "false", "values": ["true", "false"]},
        {"name": "static-connectors", "meaning": "names of connectors", "list": True},
        {"name": "password", "editable": False},
    ],
    "broadcast-group": [
        {"name": "group-address"},
        {"name": "broadcast-period", "default": "2000", "unit": "ms"},
        {"name": "connector-ref", "list": True},
    ],
    "security-setting": [{"name": "match"}, {"name": "send", "list": True}],
}


def element(kind: str, name: str, **more: object) -> dict[str, object]:
    """Returns an element as a node lists it."""
    return {
        "kind": kind, "name": name, "line": 7, "values": {}, "from": "file", "state": "", "used_by": [], "fixed": "",
        "file": "broker.xml", **more,
    }  # fmt: skip


def bridge(name: str = "b", **values: str) -> dict[str, object]:
    """Returns a started bridge."""
    given = {"queue-name": "q", "static-connectors": "east,west", "password": "hidden", **values}
    return element("bridge", name, values=given, state="started")


@dataclass
class FakeNode:
    """A node. What it is asked is in `asked`. `users` without `edit` may not change anything."""

    name: str
    elements: list[dict[str, object]] = field(default_factory=list)
    writable: bool = True
    off: str = ""  # why it takes no changes
    ours: bool = True
    answers: dict[tuple[str, str], object] = field(default_factory=dict)  # (resource, operation or attribute)
    viewers: tuple[str, ...] = ("viewer",)
    changes: list[dict[str, object]] = field(default_factory=list)
    refusal: str = ""  # of every change
    problems: list[dict[str, object]] = field(default_factory=list)
    asked: list[tuple[str, str, list[object]]] = field(default_factory=list)
    undone: list[dict[str, object]] = field(default_factory=list)

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.elements).encode()).hexdigest()

    def posted(self, operation: str) -> list[dict[str, object]]:
        """Returns the requests of one operation."""
        return [json.loads(str(given[0])) for _, each, given in self.asked if each == operation]

    def answer(self, user: str, resource: str, what: str, given: list[object]) -> object:
        """Returns the answer to an operation or attribute."""
        self.asked.append((resource, what, given))
        if (resource, what) in self.answers:
            answer = self.answers[resource, what]
            if isinstance(answer, Exception):
                raise answer
            return answer
        if what == "listPermittedOperations" and self.ours:
            return [] if user in self.viewers else given[1]
        if self.ours:
            if user in self.viewers and what not in READS:
                raise ManagementFailed(resource, what, refused(user, f"mops.{resource}.{what}"))
            own: dict[str, Callable[[list[object]], object]] = {
                "listConfiguration": lambda given: json.dumps(self.configuration(user)),
                "previewConfiguration": lambda given: json.dumps(self.previewed(json.loads(str(given[0])))),
                "changeConfiguration": lambda given: json.dumps(self.changed(user, json.loads(str(given[0])))),
                "listConfigurationChanges": lambda given: json.dumps(self.changes),
                "undoConfiguration": lambda given: json.dumps(self.taken_back(json.loads(str(given[0])))),
                "downloadConfiguration": lambda given: json.dumps({"file": "broker.xml", "text": "<core/>"}),
                "start": lambda given: None,
                "stop": lambda given: None,
                "FailureReason": lambda given: "",
            }
            if what in own:
                return own[what](given)
        raise ManagementFailed(resource, what, f"AMQ229067: Cannot find resource with name {resource}")

    # -- an Atalanta node -----------------------------------------------------------------------
    def configuration(self, user: str) -> dict[str, object]:
        return {
            "file": "broker.xml",
            "form": "broker.xml",
            "digest": self.digest,
            "changeable": not self.off,
            "writable": self.writable and not self.off,
            "why": self.off or ("" if self.writable else "the file is read-only"),
            "permitted": user not in self.viewers,
            "elements": self.elements,
            "parameters": PARAMETERS,
        }

    def previewed(self, request: dict[str, object]) -> dict[str, object]:
        if request["digest"] != self.digest:
            return {"refused": "the file has changed since you read it", "difference": "-old line\n+new line"}
        found = {
            "digest": "next",
            "difference": f"--- broker.xml\n+++ broker.xml\n+<!-- {json.dumps(request['changes'])} -->",
            "problems": self.problems,
            "now": ["bridge b starts"],
            "after_restart": ["acceptor a: members come in there"],
            "written": self.writable,
            "why_not_written": "" if self.writable else "the file is read-only",
            "refused": self.refusal,
            "picture": {
                "before": {"links": [{"kind": "bridge", "name": "old", "from": "queue q", "to": "east"}]},
                "after": {"links": [{"kind": "bridge", "name": "fresh", "from": "queue r", "to": "west"}]},
            },
        }
        return found

    def changed(self, user: str, request: dict[str, object]) -> dict[str, object]:
        found = self.previewed(request)
        if not found.get("refused"):
            changes = request["changes"]
            assert isinstance(changes, list)
            before = json.dumps(self.elements)
            for change in changes:
                self.apply(change)
            row = {
                "id": str(len(self.changes) + 1), "at": 1_764_500_000_000, "user": user, "from": request["by"],
                "changes": changes, "difference": found["difference"], "undone": False, "before": before,
            }  # fmt: skip
            self.changes.insert(0, row)
            found["digest"] = self.digest
        return found

    def apply(self, change: dict[str, object]) -> None:
        kind, name, values = str(change["kind"]), str(change["name"]), change.get("values") or {}
        assert isinstance(values, dict)
        known = [each for each in self.elements if (each["kind"], each["name"]) == (kind, name)]
        if change["action"] == "remove":
            self.elements = [each for each in self.elements if each not in known]
        elif change["action"] == "add":
            self.elements = [*self.elements, element(kind, name, values=values, state="started")]
        else:
            old = known[0]["values"]
            assert isinstance(old, dict)
            known[0]["values"] = {**old, **values}

    def taken_back(self, request: dict[str, object]) -> dict[str, object]:
        if request["digest"] != self.digest:
            return {"refused": "the file has changed since you read it", "difference": "-old line\n+new line"}
        row = next(each for each in self.changes if each["id"] == request["id"])
        row["undone"] = True
        self.elements = json.loads(str(row["before"]))
        return {"digest": self.digest, "difference": "-gone", "now": ["as before"], "written": True}


def refused(user: str, address: str) -> str:
    """Returns the text of a refusal."""
    return f"AMQ229032: User: {user} does not have permission='EDIT' on address {address}"


class FakeClusterNode(ClusterNode):
    """A node of the console whose answers come from a FakeNode."""

    def __init__(self, fake: FakeNode, place: NodePlace, credentials: UserCredentials) -> None:
        super().__init__(place, credentials)
        self.fake = fake
        self.user = credentials.user
        self.id, self.name, self.ours, self.version = f"id-{fake.name}", fake.name, fake.ours, "1"

    async def connection(self) -> None:  # type: ignore[override]
        """Opens nothing."""

    async def call(self, resource: str, operation: str, *parameters: object) -> object:
        return self.fake.answer(self.user, resource, operation, list(parameters))

    async def get(self, resource: str, attribute: str) -> object:
        return self.fake.answer(self.user, resource, attribute, [])


def install(monkeypatch: pytest.MonkeyPatch, *nodes: FakeNode) -> list[str]:
    """Has the console talk to these nodes, and returns their places."""
    places = {f"127.0.0.1:{1 + number}": node for number, node in enumerate(nodes)}

    def made(place: NodePlace, credentials: UserCredentials) -> ClusterNode:
        return FakeClusterNode(places[place.at], place, credentials)

    monkeypatch.setattr("atalanta.console.nodes.cluster.ClusterNode", made)
    return list(places)

