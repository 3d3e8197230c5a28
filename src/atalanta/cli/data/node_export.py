"""The JSON lines of `atalanta data export`: definitions first, then one message a line.

    {"export": {"version", "node_id"}}                the first line, if all queues were exported
    {"export_address": {"name", "routing_types", "auto_created"}}
    {"export_queue": {"name", "address", "routing_type", "filter" …}}     names of QueueKind and of create_queue
    {"message_id", "queue", "address", "text" …}      as `browse --json` (cli/messages/json_lines.py)

Lines of messages alone, as of `consume --json`, are read as well: queues then get the attributes of the address
settings.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from atalanta.cli.data.export import IDENTITY_BYTES, Binding, ExportedAddress
from atalanta.cli.messages.json_lines import ADDRESS, EXPORT, QUEUE, message_of_object, object_of
from atalanta.cli.messages.source import LINE_BYTES_MAX
from atalanta.cli.output.outcome import Refused
from atalanta.client import Message, QueueKind
from atalanta.client.message import ANYCAST, MULTICAST, ROUTING_NAMES
from atalanta.runtime.process.exit_codes import BAD_DATA

if TYPE_CHECKING:
    from atalanta.cli.data.folder import FolderContents
    from atalanta.kernel.queue.queue import Queue

VERSION: Final = 1
KIND_NAMES: Final = tuple(each.name for each in fields(QueueKind) if each.name != "last_value")


@dataclass
class NodeMessage:
    """A message of such a line; `source` is the node id of the export, or "" without one."""

    given: dict[str, object]
    queues: list[str]
    source: str
    place: str
    body: BinaryIO | None = None

    @property
    def address(self) -> str | None:
        """Returns the address without the queue of an FQQN."""
        return str(self.given["address"]).partition("::")[0]

    @property
    def routing(self) -> str | None:
        found = self.given.get("routing_type")
        return str(found) if found in ROUTING_NAMES else None

    def message(self) -> Message:
        message = message_of_object(self.given, self.place)
        user_id = self.given.get("user_id")
        if user_id is not None:
            try:
                message.user_id = uuid.UUID(str(user_id))
            except ValueError as error:
                raise Refused(f"{self.place}: user_id: {error}", BAD_DATA) from error
        return message

    def identity(self, queue: str) -> bytes:
        """Returns an id of the message in that queue: a node uses no message id twice. Without a node: its content."""
        found: list[object] = [self.source, self.given["message_id"], queue]
        if not self.source:
            found.append(sorted((name, value) for name, value in self.given.items() if name != "delivery_count"))
        return blake2b(json.dumps(found).encode(), digest_size=IDENTITY_BYTES).digest()


class NodeExport:
    """Reads such lines."""

    def __init__(self, path: Path) -> None:
        self.addresses: dict[str, ExportedAddress] = {}
        self.bindings: dict[str, Binding] = {}
        self.source = ""
        self._path = path

    def messages(self) -> Iterator[NodeMessage]:
        """Iterates over the messages in the order of the file. Refused (65) names the line."""
        number = 0
        with self._path.open("rb") as file:
            while line := file.readline(LINE_BYTES_MAX + 1):
                number += 1
                place = f"{self._path}:{number}"
                if len(line) > LINE_BYTES_MAX:
                    raise Refused(f"{place}: a line of more than {LINE_BYTES_MAX} bytes", BAD_DATA)
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise Refused(f"{place}: not UTF-8: {error}", BAD_DATA) from error
                given = object_of(text, place)
                try:
                    found = self._line(given, place)
                except (KeyError, TypeError, ValueError) as error:
                    raise Refused(f"{place}: {type(error).__name__}: {error}", BAD_DATA) from error
                if found is not None:
                    yield found

    def _line(self, given: dict[str, object], place: str) -> NodeMessage | None:
        if EXPORT in given:
            head = _definition(given, EXPORT)
            if head["version"] != VERSION:
                why = f"an export of version {head['version']}, this program reads {VERSION}"
                raise Refused(f"{place}: {why}", BAD_DATA)
            self.source = str(head["node_id"])
            return None
        if ADDRESS in given:
            head = _definition(given, ADDRESS)
            types = head["routing_types"]
            if not isinstance(types, list) or not all(one in ROUTING_NAMES for one in types):
                raise ValueError(f"routing_types: {types}")
            self.addresses[str(head["name"])] = ExportedAddress(types, head.get("auto_created") is True)
            return None
        if QUEUE in given:
            binding = binding_of(_definition(given, QUEUE))
            self.bindings[binding.name] = binding
            return None
        for name in ("queue", "address", "message_id"):
            if name not in given:
                raise Refused(f"{place}: no message of an export: it has no {name}", BAD_DATA)
        queue = str(given["queue"])
        found = NodeMessage(given, [queue], self.source, place)
        if queue not in self.bindings:
            routing = MULTICAST if given.get("routing_type") == MULTICAST else ANYCAST
            self.bindings[queue] = Binding(queue, found.address or queue, routing)
        return found


def _definition(given: dict[str, object], name: str) -> dict[str, object]:
    found = given[name]
    if not isinstance(found, dict):
        raise TypeError(f"{name} is not a JSON object")
    return found


def binding_of(given: dict[str, object]) -> Binding:
    """Returns the definition of a queue. KeyError, TypeError or ValueError if it is not one of `queue_definition`."""
    routing, text = given["routing_type"], given.get("filter")
    if routing not in ROUTING_NAMES:
        raise ValueError(f"routing_type: {routing}")
    most = given.get("max_consumers", -1)
    if not isinstance(most, int):
        raise TypeError(f"max_consumers: {most}")
    kind = {name: given[name] for name in KIND_NAMES if given.get(name) is not None}
    return Binding(
        str(given["name"]),
        str(given["address"]),
        str(routing),
        None if text is None else str(text),
        most,
        given.get("purge_on_no_consumers") is True,
        given.get("auto_created") is True,
        QueueKind(last_value=given.get("last_value_key") is not None, **kind),  # type: ignore[arg-type]
    )


def definition_lines(data: FolderContents, queues: list[Queue]) -> Iterator[str]:
    """Iterates over the lines before the messages of an export of all queues."""
    yield _line_of(EXPORT, {"version": VERSION, "node_id": str(data.node_id)})
    addresses = data.broker.addresses
    for name in sorted(addresses):
        address = addresses[name]
        if address.internal or address.temporary or address.lsn == 0:
            continue
        types = [kind for kind, held in ((ANYCAST, address.anycast), (MULTICAST, address.multicast)) if held]
        definition = {"name": name, "routing_types": types, "auto_created": address.auto_created}
        yield _line_of(ADDRESS, definition)
    for queue in queues:
        yield _line_of(QUEUE, queue_definition(queue))


def queue_definition(queue: Queue) -> dict[str, object]:
    """Returns the attributes of a queue that a client can create."""
    spec = queue.spec
    found: dict[str, object] = {
        "name": queue.name,
        "address": spec.address,
        "routing_type": ROUTING_NAMES[spec.routing_type],
        "filter": spec.filter_text,
        "max_consumers": spec.max_consumers,
        "purge_on_no_consumers": spec.purge_on_no_consumers,
        "auto_created": spec.auto_created,
    }
    found.update((name, getattr(spec, name)) for name in KIND_NAMES)
    return {name: value for name, value in found.items() if value is not None}


def _line_of(name: str, definition: dict[str, object]) -> str:
    line = json.dumps({name: definition}, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "backslashreplace").decode("utf-8")
