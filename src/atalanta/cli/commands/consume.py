"""`atalanta consume` and `atalanta browse`: their arguments. The work is in cli/messages/consume.py."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from atalanta.cli.options import (
    DEFAULT_URL,
    DestinationName,
    Json,
    Password,
    Quiet,
    Selector,
    Url,
    User,
)


class ConsumedMembers(StrEnum):
    """The members of a cluster at which a queue is consumed."""

    ALL = "all"


class Acknowledge(StrEnum):
    """The time at which messages are acknowledged."""

    AUTO = "auto"
    INDIVIDUAL = "individual"
    NONE = "none"


Count = Annotated[int | None, typer.Option(min=1, help="end after this number of messages", show_default=False)]
Timeout = Annotated[
    float | None,
    typer.Option(min=0, help="end after this number of seconds without a message", show_default=False),
]
Ack = Annotated[
    Acknowledge,
    typer.Option(help="auto: acknowledge in batches after output; none: return the messages to the queue"),
]
Durable = Annotated[
    str | None,
    typer.Option(
        help="name of a durable subscription of the topic; created if it does not exist", metavar="NAME"
    ),
]
AtMembers = Annotated[
    ConsumedMembers | None,
    typer.Option("--members", help="consume the queue at every member of the cluster that has it", show_default=False),
]
ClientId = Annotated[str | None, typer.Option(help="client id of the durable subscription")]
Create = Annotated[bool, typer.Option("--create", help="create the queue or topic if it does not exist")]
Raw = Annotated[bool, typer.Option("--raw", help="write the bodies only, without separators")]
Headers = Annotated[bool, typer.Option("--headers", help="write a line with the headers before each message")]
Shown = Annotated[int, typer.Option(min=1, help="largest number of messages")]


def consume(
    destination: DestinationName,
    count: Count = None,
    timeout: Timeout = None,
    selector: Selector = None,
    ack: Ack = Acknowledge.AUTO,
    durable: Durable = None,
    client_id: ClientId = None,
    create: Create = False,
    members: AtMembers = None,
    headers: Headers = False,
    raw: Raw = False,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Receive messages and write them to stdout, until Ctrl-C, --count or --timeout.

    Text is written as it is, a line each; JSON has everything. From topic://name come the messages sent from now on,
    or with --durable those sent since the subscription was made.

    \b
    atalanta consume orders --count 10 --timeout 5
    atalanta consume orders --selector "cups > 1" --json
    atalanta consume orders --members all
    atalanta consume topic://news --durable reader --client-id desk
    """
    from atalanta.cli.messages.consume import ConsumeJob, run_consume
    from atalanta.cli.operator_login import operator_login
    from atalanta.cli.output.outcome import reported

    with reported():
        job = ConsumeJob(operator_login(url, user, password), destination)
        job.count, job.timeout_s, job.selector = count, timeout, selector
        job.acknowledge = ack.value
        job.durable, job.client_id, job.create = durable, client_id, create
        job.members = None if members is None else members.value
        job.form = "json" if json_output else "raw" if raw else "headers" if headers else "text"
        run_consume(job, quiet)


def browse(
    destination: DestinationName,
    count: Shown = 100,
    selector: Selector = None,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
    json_output: Json = False,
) -> None:
    """Look at the messages of a queue without taking them: a table, or --json lines.

    \b
    atalanta browse orders --selector "sugar" --count 20
    """
    from atalanta.cli.messages.browse import run_browse
    from atalanta.cli.operator_login import operator_login
    from atalanta.cli.output.outcome import reported

    with reported():
        run_browse(operator_login(url, user, password), destination, count, selector, json_output)
