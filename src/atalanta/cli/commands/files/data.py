"""`atalanta data`: reads a data folder without a node and without changes, and imports exports of nodes and of Artemis.
The work is in cli/data/."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atalanta.cli.options import DEFAULT_URL, Json, Password, Quiet, Selector, Url, User

STATUSES = (
    "Exit status: 0 done; 1 members are different; 2 wrong arguments; 65 damaged, or written by another node or "
    "version; 66 no such folder or queue; 73 the output file exists; 74 cannot be read; 75 a node uses the folder."
)

application = typer.Typer(
    help="Read the data folder of a stopped node, without changing it; import an export.",
    no_args_is_help=True,
    epilog=STATUSES,
)

Folder = Annotated[
    Path,
    typer.Argument(help="a broker.xml, the journal folder, or a folder above it", show_default=False),
]
WhileRunning = Annotated[
    bool, typer.Option("--while-running", help="read while a node writes: the result may be out of date")
]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="its name", show_default=False)]
Queues = Annotated[
    list[str] | None, typer.Option("--queue", help="only this one; may be given several times")
]
Count = Annotated[int, typer.Option(min=1, help="largest number of messages")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="a new file  [default: stdout]", metavar="FILE"),
]


@application.command()
def show(folder: Folder, while_running: WhileRunning = False, json_output: Json = False) -> None:
    """The journal in figures, and the queues with their messages.

    \b
    atalanta data show broker/data
    """
    from atalanta.cli.data.inspect import run_show

    run_show(folder, while_running, json_output)


@application.command()
def messages(
    folder: Folder,
    queue: QueueName,
    count: Count = 100,
    selector: Selector = None,
    while_running: WhileRunning = False,
    json_output: Json = False,
) -> None:
    """The messages of one queue, as `atalanta browse` shows them."""
    from atalanta.cli.data.inspect import run_messages

    run_messages(folder, queue, count, selector, while_running, json_output)


@application.command()
def export(
    folder: Folder,
    queues: Queues = None,
    output: Output = None,
    while_running: WhileRunning = False,
) -> None:
    """Addresses, queues and messages as JSON lines; `atalanta data import` puts them into a running node.

    \b
    atalanta data export broker/data -o all.jsonl
    atalanta data import all.jsonl --url tcp://other:61616
    atalanta data export broker/data --queue orders | atalanta produce orders --file - --json-lines

    With --queue only messages are written.
    """
    from atalanta.cli.data.inspect import run_export

    run_export(folder, queues or [], output, while_running)


@application.command()
def verify(folder: Folder, while_running: WhileRunning = False, json_output: Json = False) -> None:
    """Read everything and check every checksum."""
    from atalanta.cli.data.inspect import run_verify

    run_verify(folder, while_running, json_output)


@application.command()
def compare(
    first: Folder,
    second: Annotated[Path, typer.Argument(help="the same of another member", show_default=False)],
    json_output: Json = False,
) -> None:
    """Two members of a replicated group, both stopped: up to which record their journals are equal, byte for byte.

    \b
    atalanta data compare primary/data backup/data

    One that is behind the other is no difference. Exit status 1: both have records that the other lacks, or a page file
    is different.
    """
    from atalanta.cli.data.compare import run_compare

    run_compare(first, second, json_output)


@application.command("import")
def import_messages(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="of `atalanta data export`, or XML of `artemis data exp`", show_default=False
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="say what would be sent where and what would be created; send nothing")
    ] = False,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Send the messages of an export to the queues that they were in, on a running node.

    \b
    atalanta data export broker/data -o all.jsonl        (the node is stopped)
    artemis data exp --output export.xml                 (Artemis is stopped)
    atalanta data import all.jsonl --dry-run
    atalanta data import export.xml --user admin

    Missing addresses and queues are created. The user needs the permission manage. A second import sends only what the
    first one did not: the node remembers the newest id-cache-size messages of each address (20,000), also those that
    were consumed since.
    """
    from atalanta.cli.data.import_messages import run_import
    from atalanta.cli.operator_login import operator_login

    run_import(file, operator_login(url, user, password), dry_run, json_output, quiet)
