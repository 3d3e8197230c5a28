"""Operations on the configuration files of the node: what stands in them, a change, its undo. Only in Atalanta.

The process reads, checks and writes the files, and the reply follows. Parameters and results are JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.settings.configuration_request import (
    CHANGE,
    DOWNLOAD,
    HISTORY,
    LIST,
    PREVIEW,
    UNDO,
    ConfigurationAnswer,
    ConfigurationOutcome,
    ConfigurationRequest,
)
from atalanta.management.request.call import LATER, Call, Operations, Parameters, text_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.ports import Process
    from atalanta.management.operations.permissions import Allows
    from atalanta.management.request.replies import Replies

WAITING_MAX: Final = 20
# The resources of the kinds of elements that run.
RESOURCES: Final = {
    "broadcast-group": "broadcastgroup",
    "discovery-group": "discoverygroup",
    "cluster-connection": "clusterconnection",
    "bridge": "bridge",
    "network-connector": "network",
    "acceptor": "acceptor",
}
# Whether a resource is started; None for one that the node does not have.
Started = Callable[[Call, str], "bool | None"]


class ConfigurationOperations:
    """The operations of the resource `broker` on the configuration. `waiting` has the calls by token."""

    def __init__(self, process: Process, replies: Replies, allows: Allows, started: Started) -> None:
        self.process = process
        self.replies = replies
        self.allows = allows
        self.started = started
        self.waiting: dict[int, tuple[Call, ConfigurationRequest]] = {}
        self.last_token = 0
        self.operations: Operations = {
            "listConfiguration": [("", self.list_configuration)],
            "previewConfiguration": [("s", self.preview)],
            "changeConfiguration": [("s", self.change)],
            "listConfigurationChanges": [("", self.list_changes)],
            "undoConfiguration": [("s", self.undo)],
            "downloadConfiguration": [("", self.download)],
        }

    def list_configuration(self, call: Call, given: Parameters) -> object:
        """Returns the elements of the files with their parameters, and whether they can be changed."""
        return self._begin(call, LIST)

    def preview(self, call: Call, given: Parameters) -> object:
        """Returns what a change would do. Nothing is written."""
        return self._begin(call, PREVIEW, text_of(given, 0))

    def change(self, call: Call, given: Parameters) -> object:
        """Changes the files and applies them."""
        return self._begin(call, CHANGE, text_of(given, 0))

    def list_changes(self, call: Call, given: Parameters) -> object:
        """Returns the last changes, the newest first."""
        return self._begin(call, HISTORY)

    def undo(self, call: Call, given: Parameters) -> object:
        """Takes a change back."""
        return self._begin(call, UNDO, text_of(given, 0))

    def download(self, call: Call, given: Parameters) -> object:
        """Returns the text of the file with all changes."""
        return self._begin(call, DOWNLOAD)

    def _begin(self, call: Call, kind: str, text: str = "") -> object:
        if len(self.waiting) >= WAITING_MAX:
            raise BrokerError(ILLEGAL_STATE, f"{WAITING_MAX} requests about the configuration are under way")
        user = remote = ""
        if call.session is not None:
            user, remote = call.session.identity.user, call.session.client.remote
        request = ConfigurationRequest(kind, text, user, remote)
        self.last_token += 1
        self.process.operate_configuration(self.last_token, request)
        self.waiting[self.last_token] = (call, request)
        return LATER

    def finished(self, now: int, token: int, answer: ConfigurationAnswer) -> None:
        """Sends the reply of the request `token`, and tells its events."""
        call, request = self.waiting.pop(token)
        if answer.outcome is not None:
            self._tell(request.user, answer.outcome)
        if answer.why:
            self.replies.refuse(now, call, answer.why)
            return
        result = answer.result
        if request.kind == LIST and isinstance(result, dict):
            result["permitted"] = self.allows(call.session, "broker", "changeConfiguration")
            elements = result.get("elements")
            for element in elements if isinstance(elements, list) else []:
                element["state"] = self._state(call, str(element["kind"]), str(element["name"]))
        self.replies.send(now, call, encode_json(result), True, False)

    def _tell(self, user: str, outcome: ConfigurationOutcome) -> None:
        """Logs who did what."""
        event = self.replies.trace.event
        by, changes, undone = outcome.by, outcome.changes, outcome.undone
        not_written, later = outcome.why_not_written, outcome.after_restart
        if outcome.refused:
            event(
                "configuration_change_refused", {"user": user, "from": by, "changes": changes, "why": outcome.refused}
            )
        elif undone:
            event(
                "configuration_change_undone",
                {
                    "user": user, "from": by, "changes": changes, "id": undone, "not_written": not_written,
                    "after_restart": later,
                },
            )  # fmt: skip
        else:
            event(
                "configuration_changed",
                {"user": user, "from": by, "changes": changes, "not_written": not_written, "after_restart": later},
            )

    def _state(self, call: Call, kind: str, name: str) -> str:
        """Returns "started" or "stopped"; "" for what does not run, "absent" for what the node has not."""
        resource = RESOURCES.get(kind)
        if resource is None:
            return ""
        started = self.started(call, f"{resource}.{name}")
        return "absent" if started is None else "started" if started else "stopped"
