"""Messages sent by an operator (AbstractControl.sendMessage)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, SECURITY, BrokerError
from atalanta.kernel.security.security import SEND
from atalanta.management.request.call import Call, Parameters, flag_of, number_of, optional_text
from atalanta.message.codec import text_body
from atalanta.message.message import TEXT, Message

if TYPE_CHECKING:
    from atalanta.kernel.ports import Ids
    from atalanta.kernel.publish.publisher import Publisher


class MessageSender:
    """Sends the messages that an operator writes."""

    def __init__(self, ids: Ids, publisher: Publisher) -> None:
        self.ids = ids
        self.publisher = publisher

    def send(self, call: Call, target: str, given: Parameters) -> object:
        """(headers, type, body, durable, user, password [, createMessageId]): sends a message, returns its id.

        A text body is plain text, any other body is base64. The caller needs the permission to send to `target`. Other
        credentials than the session's own are refused.
        """
        body = optional_text(given, 2)
        self.check(call, target, optional_text(given, 4))
        kind = number_of(given, 1)
        if not 0 <= kind <= 6:
            raise BrokerError(ILLEGAL_STATE, f"there is no message type {kind}")
        encoded = b""
        if body is not None:
            encoded = text_body(body) if kind == TEXT else binary_body(body)
        now_ms = call.now // 1_000_000
        message = Message.create(target, encoded, kind, flag_of(given, 3), now_ms, 4)
        headers = given[0]
        if isinstance(headers, dict):
            for name, value in headers.items():
                message.properties.put(str(name), None if value is None else str(value))
        message.properties_changed()
        if len(given) > 6 and flag_of(given, 6):
            message.user_id = self.ids.uuid()
        self.publisher.publish(call.now, message, None, 0)
        return str(int(message.id))

    def check(self, call: Call, target: str, user: str | None) -> None:
        """Raises BrokerError if the caller may not send to `target`, or not as `user`."""
        session = call.session
        if session is None:
            return
        identity = session.identity
        if user is not None and user != identity.user:
            raise BrokerError(
                SECURITY, f"a message is sent as the session's user {identity.user}, not as {user}"
            )
        session.check(SEND, target)


def binary_body(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:  # binascii.Error, or characters beyond ASCII
        raise BrokerError(ILLEGAL_STATE, f"the body is not base64: {error}") from error
