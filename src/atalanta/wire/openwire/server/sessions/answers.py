"""The answers that an OpenWire client waits for, by the kernel's token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.wire.openwire.commands.producers import ProducerAck
from atalanta.wire.openwire.commands.responses import DataArrayResponse, IntegerResponse

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.wire.openwire.commands.identifiers import ProducerId
    from atalanta.wire.openwire.encoding.structure import Command, DataStructure
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput
    from atalanta.wire.waiting_requests import WaitingRequests

# Answers that wait for the disk before no more is read from the client, and when it is read again.
ANSWERS_MAX: Final = 1_000
ANSWERS_LOW: Final = 500
NO_RESULT: Final = -1


class Answer:
    """The answer to a command, after `parts` calls of `done`. `producer_id`: it is a ProducerAck of `size` bytes.

    `result` is that of a prepare, `data` that of a recovery.
    """

    def __init__(self, command_id: int) -> None:
        self.command_id = command_id
        self.parts: int = 1
        self.failed: bool = False
        self.producer_id: ProducerId | None = None
        self.size: int = 0
        self.result: int = NO_RESULT
        self.data: list[DataStructure] | None = None

    def confirm_bytes(self, producer_id: ProducerId, size: int) -> None:
        """Makes the answer a confirmation of a producer's bytes."""
        self.producer_id = producer_id
        self.size = size

    def count_done(self) -> bool:
        """Counts one part; returns True with the last one."""
        self.parts -= 1
        return self.parts == 0

    def fail(self) -> bool:
        """Records a refusal; returns True for the first one, which is answered."""
        first = not self.failed
        self.failed = True
        return first


class Answers:
    """The answers of one connection that are still to come. `aside`: requests that wait for room, each with its answer.
    """

    def __init__(self, connection: OpenWireOutput, aside: WaitingRequests) -> None:
        self.connection = connection
        self.aside = aside
        self.waiting: dict[int, Answer] = {}
        self.last_token: int = 0
        self.too_many: bool = False

    def token_for(self, command: Command) -> int:
        """Returns the token of a command; SILENT if the client wants no answer."""
        return self.add(Answer(command.command_id)) if command.response_required else SILENT

    def add(self, answer: Answer) -> int:
        """Returns the token of an answer. Above a limit the client's input is held."""
        self.last_token += 1
        self.waiting[self.last_token] = answer
        if len(self.waiting) - self.aside.count >= ANSWERS_MAX and not self.too_many:
            self.too_many = True
            self.connection.hold_input()
        return self.last_token

    def done(self, token: int) -> None:
        """Sends the answer, if it is complete."""
        answer = self.waiting.get(token)
        if answer is None or not answer.count_done():
            return
        self._remove(token)
        connection = self.connection
        if answer.failed:
            return
        if answer.producer_id is not None:
            connection.answer(ProducerAck(answer.producer_id, answer.size))
        elif answer.data is not None:
            connection.answer(DataArrayResponse(answer.data, answer.command_id))
        elif answer.result != NO_RESULT:
            connection.answer(IntegerResponse(answer.result, answer.command_id))
        else:
            connection.respond(answer.command_id)

    def refused(self, token: int, error: BrokerError) -> int:
        """Returns the number of the command to answer with the error, -1 if its client waits for no answer."""
        answer = self.waiting.get(token)
        if answer is None:
            return -1
        first = answer.fail()
        if answer.count_done():
            self._remove(token)
        return answer.command_id if first and answer.producer_id is None else -1

    def forget(self, token: int) -> None:
        """Forgets an answer: the command is refused at once."""
        if token in self.waiting:
            self._remove(token)

    def _remove(self, token: int) -> None:
        del self.waiting[token]
        if self.too_many and len(self.waiting) - self.aside.count <= ANSWERS_LOW:
            self.too_many = False
            self.connection.release_input()
