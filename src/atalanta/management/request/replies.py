"""The replies to management requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.routing.uuid_namespace import uuid_text
from atalanta.management.request.json_text import encode_json
from atalanta.message.encoding.buffer import Writer
from atalanta.message.message import TEXT, Message

if TYPE_CHECKING:
    from atalanta.kernel.command_failures import CommandFailures
    from atalanta.kernel.ports import JournalPort, Trace
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.publish.publisher import Publisher
    from atalanta.management.request.call import Call

MANAGEMENT: Final = "management"
REPLY_BYTES_MAX: Final = 64 << 20


class Replies:
    """Sends each reply as a message to the request's reply address, if the request has one."""

    def __init__(
        self, journal: JournalPort, publisher: Publisher, plans: PlanWriter, trace: Trace, failures: CommandFailures
    ) -> None:
        self.failures = failures
        self.journal = journal
        self.publisher = publisher
        self.plans = plans
        self.trace = trace

    def report_failure(self, now: int, call: Call, error: Exception) -> None:
        """Answers a request at which the broker itself failed, before it changed anything."""
        self.refuse(now, call, self.failures.report(now, MANAGEMENT, call.operation, call.resource, error))

    def refuse(self, now: int, call: Call, why: str) -> None:
        """Sends the error text `why`."""
        self.trace.event("management_refused", {"resource": call.resource, "why": why})
        self.send(now, call, why, False, False)

    def is_awaited(self, call: Call) -> bool:
        """Returns whether the request has a reply address."""
        return isinstance(call.request.properties.get("JMSReplyTo"), str)

    def send(self, now: int, call: Call, result: object, succeeded: bool, changed: bool) -> None:
        """Sends the result. If `changed`, the change is on disk before."""
        reply_to = call.request.properties.get("JMSReplyTo")
        if not isinstance(reply_to, str):
            return
        encoded: str | None = None
        if result is not None:
            try:
                encoded = encode_json([result])
            except Exception as failure:
                succeeded = False
                encoded = encode_json([self.failures.report(now, MANAGEMENT, call.operation, call.resource, failure)])
        if encoded is not None and len(encoded) > REPLY_BYTES_MAX:
            succeeded = False
            encoded = encode_json([f"the answer is larger than {REPLY_BYTES_MAX} characters"])
        writer = Writer()
        writer.nullable_simple_string(encoded)
        address = strip_scheme(reply_to)
        reply = Message.create(address, writer.getvalue(), TEXT, False, now // 1_000_000, 4)
        reply.properties.put("_AMQ_OperationSucceeded", succeeded)
        reply.properties.put("JMSCorrelationID", correlation(call.request))
        reply.properties_changed()
        try:
            plan = self.publisher.prepare(now, reply)
        except BrokerError as error:
            self.trace.event("management_reply_lost", {"to": address, "why": error.text})
            return
        if changed:
            plan.after_lsn = self.journal.last
        self.plans.commit(plan, None, 0)


def correlation(request: Message) -> str | bytes:
    """Returns the request's correlation id, else its message id (ManagementServiceImpl.getCorrelationIdentity)."""
    given = request.properties.get("JMSCorrelationID")
    if isinstance(given, str | bytes):
        return given
    native = request.properties.get("NATIVE_MESSAGE_ID")
    if isinstance(native, str):
        return native
    user_id = request.user_id
    return "null" if user_id is None else uuid_text(user_id)


def strip_scheme(address: str) -> str:
    """Returns the core name of a reply address. JMS clients write it as `queue://name` and the like."""
    for scheme in ("queue://", "topic://", "temp-queue://", "temp-topic://"):
        if address.startswith(scheme):
            return address[len(scheme) :]
    return address
