"""Management requests of a client, over CORE."""

from __future__ import annotations

import json

from atalanta.message.encoding.buffer import Writer
from atalanta.message.message import Message
from atalanta.wire.core.packets.message import SendMessage
from tests.wire.core.server.server_rig import Client, Server


def request(operation: str, *parameters: object) -> SendMessage:
    writer = Writer()
    writer.nullable_simple_string(json.dumps(list(parameters)))
    message = Message.create("activemq.management", writer.getvalue(), 0, False, 0, 4)
    message.properties.put("_AMQ_ResourceName", "broker")
    message.properties.put("_AMQ_OperationName", operation)
    message.properties.put("JMSReplyTo", "answers")
    message.properties_changed()
    return SendMessage(message, requires_response=True, correlation=-77, sender_id=0)


def ask(operator: Client, operation: str, *parameters: object) -> object:
    """The answer, which comes to the operator's queue."""
    operator.receive()
    operator.send(request(operation, *parameters))
    operator.server.settle()
    (body,) = operator.bodies()
    return json.loads(body)[0]


def attribute_of(operator: Client, resource: str, attribute: str) -> object:
    """The value, which comes to the operator's queue."""
    message = Message.create("activemq.management", b"", 0, False, 0, 4)
    message.properties.put("_AMQ_ResourceName", resource)
    message.properties.put("_AMQ_Attribute", attribute)
    message.properties.put("JMSReplyTo", "answers")
    message.properties_changed()
    operator.receive()
    operator.send(SendMessage(message, requires_response=True, correlation=-78, sender_id=0))
    operator.server.settle()
    (body,) = operator.bodies()
    return json.loads(body)[0]


def operator_of(server: Server) -> Client:
    operator = server.login("admin")
    operator.create_queue("answers", routing_type=0)
    operator.consume("answers")
    return operator
