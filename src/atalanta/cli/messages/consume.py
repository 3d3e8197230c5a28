"""The command `atalanta consume`: a message is acknowledged only after it is written."""

from __future__ import annotations

import sys
import time
import uuid
from typing import BinaryIO, Final

import typer

from atalanta.cli.messages.destination import Destination, parse_destination
from atalanta.cli.messages.json_lines import line_of_message, type_name
from atalanta.cli.messages.unknown_queue import CREATION, unknown_queue, unknown_topic
from atalanta.cli.output.escape import escaped_text
from atalanta.cli.output.outcome import FAILED, USAGE, Refused, reported
from atalanta.client import (
    ClientError,
    Connection,
    Consumer,
    Property,
    QueueDoesNotExist,
    QueueExists,
    ReceivedMessage,
    run,
)
from atalanta.client.message import MULTICAST
from atalanta.message.encoding.buffer import DecodeError
from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.texts import messages

ACKNOWLEDGE_EVERY: Final = 100
LARGE_BYTES: Final = (
    1 << 20
)  # messages with more are acknowledged one by one, so that few are in files


class ConsumeJob:
    """The options of a run; `form` is text, headers, raw or json."""

    def __init__(self, target: BrokerLogin, destination: str) -> None:
        self.target = target
        self.destination = parse_destination(destination)
        self.count: int | None = None
        self.timeout_s: float | None = None
        self.selector: str | None = None
        self.acknowledge = "auto"
        self.durable: str | None = None
        self.client_id: str | None = None
        self.create = False
        self.members: str | None = None  # "all"; None: the node of the URL
        self.form = "text"
        self.received = 0
        self.seconds = 0.0

    def check(self) -> None:
        """Checks that the options fit together; Refused (2)."""
        if self.durable is not None and not self.destination.is_topic:
            raise Refused("--durable is for a topic: topic://name", USAGE)
        if self.client_id is not None and self.durable is None:
            raise Refused("--client-id is for --durable", USAGE)
        if self.members is not None and self.destination.is_topic:
            raise Refused("--members is for a queue: each member has its own subscriptions", USAGE)
        if self.members is not None and self.create:
            raise Refused("--members creates no queue: leave --create out", USAGE)


def run_consume(job: ConsumeJob, quiet: bool) -> None:
    """Receives, then prints a summary on stderr; status 1 if --count was not reached."""
    with reported():
        job.check()
        try:
            run(receive_all(job))
        except KeyboardInterrupt:
            summarize(job, quiet)
            raise
        summarize(job, quiet)
    if job.count is not None and job.received < job.count:
        raise typer.Exit(FAILED)


def summarize(job: ConsumeJob, quiet: bool) -> None:
    """Prints the number of messages and the rate on stderr."""
    if not quiet and job.form != "raw":
        line = f"received {messages(job.received)}"
        if job.received > 1 and job.seconds > 0:
            line += f" in {job.seconds:.2f} s ({job.received / job.seconds:,.0f}/s)"
        typer.echo(line, err=True)


async def receive_all(job: ConsumeJob) -> None:
    """Receives until the count is reached, or until no message comes for the given time. The rate begins with the
    first."""
    started = last_at = 0.0
    async with job.target.connect(job.client_id, large_files=True) as connection:
        consumer = await open_consumer(connection, job)
        writer = MessagePrinter(job)
        try:
            while job.count is None or job.received < job.count:
                if not consumer.buffered:
                    await writer.acknowledge()
                message = await consumer.receive(job.timeout_s)
                if message is None:
                    break
                last_at = time.monotonic()
                started = started or last_at
                job.received += 1
                await writer.write(message)
        finally:
            job.seconds = last_at - started
            await writer.acknowledge()
        await consumer.close()


class MessagePrinter:
    """Writes messages to stdout; `acknowledge` acknowledges the written messages."""

    def __init__(self, job: ConsumeJob) -> None:
        self._form = job.form
        self._individual = job.acknowledge == "individual"
        self._none = job.acknowledge == "none"
        self._out = sys.stdout.buffer
        self._terminal = sys.stdout.isatty()
        self._waiting: list[ReceivedMessage] = []

    async def write(self, message: ReceivedMessage) -> None:
        write_shown(self._out, message, self._form, self._terminal)
        self._waiting.append(message)
        if len(self._waiting) >= ACKNOWLEDGE_EVERY or message.body_bytes > LARGE_BYTES:
            await self.acknowledge()

    async def acknowledge(self) -> None:
        """Flushes, then acknowledges. Messages that were not flushed (the reader has closed the pipe) stay in the
        queue."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        self._out.flush()
        if self._none:
            return
        for message in waiting if self._individual else waiting[-1:]:
            await message.acknowledge()


def write_shown(out: BinaryIO, message: ReceivedMessage, form: str, terminal: bool) -> None:
    """Writes one message. A raw body may be larger than memory; text for a terminal is escaped."""
    if form == "json":
        out.write(line_of_message(message).encode("utf-8", "surrogatepass") + b"\n")
    elif form == "raw":
        text = text_of(message)
        if text is None:
            message.write_to(out)
        else:
            out.write(text.encode("utf-8", "surrogatepass"))
    else:
        shown = readable(message)
        if form == "headers":
            shown = f"{header_line(message)}\n{shown}"
        if terminal:
            shown = escaped_text(shown)
        out.write(shown.encode("utf-8", "replace") + b"\n")


def text_of(message: ReceivedMessage) -> str | None:
    """Returns the text of a text message; None for other messages, and for a body without text."""
    try:
        return message.text
    except DecodeError:
        return None


def entries_of(message: ReceivedMessage) -> dict[str, Property] | None:
    """Returns the entries of a map message; None for others."""
    try:
        return message.map
    except DecodeError:
        return None


def readable(message: ReceivedMessage) -> str:
    """Formats a body for people: text, the entries of a map, bytes as UTF-8 if they are valid."""
    try:
        text = text_of(message)
        if text is not None:
            return text
        entries = entries_of(message)
        if entries is not None:
            return pairs(entries)
        body = message.body
    except ClientError:  # too large for memory, or said to be compressed
        return f"<{message.body_bytes} bytes>"
    try:
        decoded = body.decode("utf-8")
    except UnicodeDecodeError:
        decoded = ""
    if body and decoded.isprintable():
        return decoded
    return f"<{len(body)} bytes>"


def pairs(properties: dict[str, Property]) -> str:
    """Formats `a=1, b=text`; bytes by their number."""
    shown = {
        name: f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)
        for name, value in properties.items()
    }
    return ", ".join(f"{name}={value}" for name, value in shown.items())


def header_line(message: ReceivedMessage) -> str:
    """Formats `-- 12 orders text priority=4 durable … name=value`."""
    words = [f"-- {message.message_id} {message.address} {type_name(message.type)}"]
    words.append(f"priority={message.priority}")
    words.append("durable" if message.durable else "non-durable")
    if message.redelivered:
        words.append(f"delivery={message.delivery_count}")
    return " ".join(words) + (" " + pairs(message.properties) if message.properties else "")


async def open_consumer(connection: Connection, job: ConsumeJob) -> Consumer:
    """Opens the consumer of a queue, or of a subscription, which is created if needed.

    Only `--create` creates a queue, or the topic of a subscription.
    """
    destination = job.destination
    mode = "cumulative" if job.acknowledge == "auto" else "individual"  # with none, nothing is kept to acknowledge
    if job.members is not None:
        return await connection.consumer(destination.name, job.selector, ack=mode, members=job.members)
    if not destination.is_topic:
        connection.options.auto_create_queues = job.create
        try:
            return await connection.consumer(
                destination.name, job.selector, ack=mode, routing=destination.routing
            )
        except QueueDoesNotExist:
            raise await unknown_queue(connection, destination.name, CREATION) from None
    if not (job.create or (await connection.query_address(destination.name)).exists):
        raise await unknown_topic(connection, destination.name)
    queue = await subscribe(connection, destination, job)
    return await connection.consumer(f"{destination.name}::{queue}", ack=mode)


async def subscribe(connection: Connection, topic: Destination, job: ConsumeJob) -> str:
    """Returns the subscription's queue; its selector is the queue's filter, as with JMS."""
    if job.durable is not None:
        try:
            return await connection.create_subscription(topic.name, job.durable, job.selector)
        except QueueExists as error:
            raise Refused(
                f"{error.text}; delete it with `atalanta queue delete`, or choose another name"
            ) from None
    queue = str(uuid.uuid4())
    await connection.create_queue(
        queue, topic.name, MULTICAST, filter=job.selector, temporary=True
    )
    return queue
