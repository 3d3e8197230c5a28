"""The destinations that a frame names, with the temporary ones that this creates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.routing.uuid_namespace import uuid_text
from atalanta.kernel.security.resource_limits import check_name
from atalanta.kernel.sessions.subscription_queue import temporary_queue

if TYPE_CHECKING:
    from atalanta.wire.stomp.destination import Destination
    from atalanta.wire.stomp.frame import Frame
    from atalanta.wire.stomp.session import StompSession

ADVISORY_PREFIX: Final = "ActiveMQ.Advisory."


def all_destinations(session: StompSession, now: int, frame: Frame, kind: str) -> list[Destination]:
    """Returns the destinations of the frame; `kind`: the header that may choose their routing type."""
    names = session.names
    text = frame.required("destination")
    if "," not in text:
        check_name(text)
        make_temporary(session, now, text)
        return [names.find(text, frame.get(kind))]
    found: list[Destination] = []
    for part in names.parts_of(text):
        check_name(part)
        make_temporary(session, now, part)
        found.append(names.find(part, frame.get(kind)))
    return found


def make_temporary(session: StompSession, now: int, text: str) -> None:
    """Creates what is behind a `/temp-queue/` name, or `/temp-topic/`, when the connection first uses it."""
    routing_type = session.names.wanted_temporary(text)
    if routing_type >= 0:
        registry = session.kernel.services.queue_registry
        name = uuid_text(registry.ids.uuid())
        temporary_queue(session.kernel, now, name, routing_type)
        session.names.add_temporary(text, name, routing_type)
