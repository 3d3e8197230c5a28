"""The frames of a client that has logged in. A refusal is a BrokerError or ProtocolError: ERROR, then the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.acknowledgements import acknowledge, refuse
from atalanta.wire.stomp.sends import send
from atalanta.wire.stomp.subscribers import subscribe, unsubscribe
from atalanta.wire.stomp.transactions import abort, begin, commit

if TYPE_CHECKING:
    from atalanta.wire.stomp.frame import Frame
    from atalanta.wire.stomp.session import StompSession


def answer(session: StompSession, now: int, frame: Frame) -> bool:
    """Processes a frame. Returns False if it has to wait: it is given again when the input is released."""
    command = frame.command
    if command == "SEND":
        return send(session, now, frame)
    if command == "ACK":
        acknowledge(session, now, frame)
    elif command == "NACK":
        refuse(session, now, frame)
    elif command == "SUBSCRIBE":
        subscribe(session, now, frame)
    elif command == "UNSUBSCRIBE":
        unsubscribe(session, now, frame)
    elif command == "BEGIN":
        begin(session, frame)
    elif command == "COMMIT":
        commit(session, now, frame)
    elif command == "ABORT":
        abort(session, now, frame)
    elif command == "DISCONNECT":
        if session.waiting.lanes:  # the client believes that it has sent them
            session.stop_input()
            return False
        session.disconnect(now, frame.get("receipt"))
    else:
        raise ProtocolError(f"{command} on a connection that has logged in already")
    return True
