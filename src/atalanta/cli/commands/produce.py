"""`atalanta produce`: its arguments. The work is in cli/messages/produce.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from atalanta.cli.options import (
    DEFAULT_URL,
    DestinationName,
    Json,
    Password,
    Quiet,
    Url,
    User,
)

SIZE_MAX: Final = 256 << 20
LONGEST_MS: Final = 100 * 366 * 86_400_000  # a century

Count = Annotated[
    int | None,
    typer.Option(min=1, help="number of messages [default: 1, or all lines of the file]", show_default=False),
]
Size = Annotated[
    int | None,
    typer.Option(
        min=0, max=SIZE_MAX, help="bytes messages of this size; for larger ones see --body-file"
    ),
]
Text = Annotated[str | None, typer.Option(help="text messages with this text")]
File = Annotated[
    Path | None,
    typer.Option(help="a text message for each line of this file; - is stdin", metavar="FILE"),
]
BodyFile = Annotated[
    Path | None,
    typer.Option(
        help="file with the body, of any size: it is streamed; - is stdin",
        metavar="FILE",
    ),
]
JsonLines = Annotated[
    bool,
    typer.Option("--json-lines", help="lines are JSON, as `consume --json` writes them"),
]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", "-p", help="name=value or name:type=value", metavar="PROPERTY"),
]
Priority = Annotated[int, typer.Option(min=0, max=9)]
Ttl = Annotated[
    int, typer.Option(min=0, max=LONGEST_MS, help="milliseconds until the messages expire; 0: never")
]
Delay = Annotated[
    int, typer.Option(min=0, max=LONGEST_MS, help="milliseconds until the messages can be received")
]
NonDurable = Annotated[bool, typer.Option("--non-durable", help="not durable: lost in a restart")]
Rate = Annotated[float, typer.Option(min=0, help="messages per second; 0: no limit")]
Connections = Annotated[int, typer.Option(min=1, max=1_000, help="number of concurrent connections")]
Window = Annotated[int, typer.Option(min=1, help="most unconfirmed messages of a connection")]
DuplicateId = Annotated[
    str | None,
    typer.Option(help="each gets the duplicate id PREFIX-1, PREFIX-2 …", metavar="PREFIX"),
]
Group = Annotated[str | None, typer.Option(help="message group (JMSXGroupID)")]
CorrelationId = Annotated[str | None, typer.Option(help="JMSCorrelationID")]
ReplyTo = Annotated[str | None, typer.Option(help="JMSReplyTo, as queue://name")]


def produce(
    destination: DestinationName,
    count: Count = None,
    size: Size = None,
    text: Text = None,
    file: File = None,
    body_file: BodyFile = None,
    json_lines: JsonLines = False,
    properties: Properties = None,
    priority: Priority = 4,
    ttl: Ttl = 0,
    delay: Delay = 0,
    non_durable: NonDurable = False,
    rate: Rate = 0.0,
    connections: Connections = 1,
    window: Window = 1_000,
    duplicate_id: DuplicateId = None,
    group: Group = None,
    correlation_id: CorrelationId = None,
    reply_to: ReplyTo = None,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Send messages; ends when the broker has confirmed them all.

    \b
    atalanta produce orders --text "one coffee" -p sugar=true -p cups:int=2
    atalanta produce topic://news --file lines.txt --rate 100
    tar cz photos | atalanta produce backups --body-file -
    atalanta consume old --json --timeout 1 | atalanta produce new --file - --json-lines
    """
    from atalanta.cli.messages.produce import ProduceJob, run_produce
    from atalanta.cli.messages.source import Template
    from atalanta.cli.messages.typed_properties import parse_properties
    from atalanta.cli.operator_login import operator_login
    from atalanta.cli.output.outcome import reported

    with reported():
        template = Template(
            properties=parse_properties(properties or []),
            priority=priority,
            ttl_ms=ttl,
            delay_ms=delay,
            durable=not non_durable,
            duplicate_prefix=duplicate_id,
            group_id=group,
            correlation_id=correlation_id,
            reply_to=reply_to,
        )
        template.body(count, size, text, file, json_lines, body_file)
        job = ProduceJob(operator_login(url, user, password), destination, template)
        job.rate, job.connections, job.window = rate, connections, window
        run_produce(job, json_output, quiet)
