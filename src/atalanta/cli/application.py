"""The typer application: every command with its arguments. The work is done in the other modules of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atalanta.cli.commands import address, ha, pipeline, queue
from atalanta.cli.commands.bench import bench
from atalanta.cli.commands.console import console as console_command
from atalanta.cli.commands.consume import browse, consume
from atalanta.cli.commands.doctor import STATUSES as DOCTOR_STATUSES
from atalanta.cli.commands.doctor import doctor
from atalanta.cli.commands.drain import drain
from atalanta.cli.commands.files import data, user
from atalanta.cli.commands.files.check import check
from atalanta.cli.commands.files.convert import convert
from atalanta.cli.commands.files.create import create
from atalanta.cli.commands.files.plan import plan, rehearse
from atalanta.cli.commands.produce import produce
from atalanta.cli.commands.rebalance import rebalance
from atalanta.cli.commands.topology import topology
from atalanta.cli.options import STATUSES
from atalanta.cli.output.version import version_lines

application = typer.Typer(
    name="atalanta",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
# The panels of `--help`, in the order of their first commands.
NODE = "A node and its files"
MESSAGES = "Messages and queues of a broker"
CLUSTER = "A running cluster"
SPARK = "Spark"


def show_version(wanted: bool) -> None:
    """Prints the lines of `atalanta version` and ends, if `wanted`."""
    if wanted:
        version()
        raise typer.Exit


@application.callback()
def options(
    version_wanted: Annotated[
        bool,
        typer.Option(
            "--version", callback=show_version, is_eager=True, help="say which version runs here, and end"
        ),
    ] = False,
) -> None:
    """A clustered message broker for users of ActiveMQ Artemis."""


@application.command(rich_help_panel=NODE)
def run(
    broker_xml: Annotated[
        Path,
        typer.Argument(
            help="an Artemis broker.xml, or a folder with etc/broker.xml", show_default=False
        ),
    ],
    log_level: Annotated[
        str, typer.Option(help="debug, info, warning or error", metavar="LEVEL")
    ] = "info",
    log_json: Annotated[
        bool, typer.Option("--log-json", help="the log as one JSON object a line")
    ] = False,
    web: Annotated[
        str | None,
        typer.Option(
            help="serve /metrics and /health on this address, such as 127.0.0.1:8161",
            metavar="HOST:PORT",
        ),
    ] = None,
    console: Annotated[
        bool,
        typer.Option(
            "--console",
            help="serve the console beside the node, as a process of its own, on 127.0.0.1:8161; [console] of "
            "atalanta.toml has its options",
        ),
    ] = False,
    console_listen: Annotated[
        str | None,
        typer.Option(help="the same, on this address", metavar="HOST:PORT"),
    ] = None,
    no_guard: Annotated[
        bool,
        typer.Option(
            "--no-guard",
            help="a node of a replicated group runs without the parent process that proves its end to the others: they "
            "wait for the end of its lease",
        ),
    ] = False,
    alone: Annotated[
        bool,
        typer.Option(
            "--alone",
            help="there are no other brokers, though this activemq.xml says so in a way that is not known here",
        ),
    ] = False,
) -> None:
    """Run one node in the foreground, until SIGTERM or SIGINT."""
    # Imported here: `atalanta version` must work even if a module of the broker cannot be imported.
    from atalanta.cli.run import run_in_foreground

    listen = "" if console and console_listen is None else console_listen
    status = run_in_foreground(
        broker_xml, log_level, web, log_json, not no_guard, alone=alone, console=listen
    )
    raise typer.Exit(status)


application.command(rich_help_panel=NODE)(create)
application.command(rich_help_panel=NODE)(check)
application.command(rich_help_panel=NODE)(plan)
application.command(rich_help_panel=NODE)(rehearse)
application.command(rich_help_panel=NODE)(convert)
application.add_typer(user.application, name="user", rich_help_panel=NODE)
application.add_typer(data.application, name="data", rich_help_panel=NODE)
application.add_typer(ha.application, name="ha", rich_help_panel=NODE)
application.command(rich_help_panel=MESSAGES, epilog=STATUSES)(produce)
application.command(rich_help_panel=MESSAGES, epilog=STATUSES)(consume)
application.command(rich_help_panel=MESSAGES, epilog=STATUSES)(browse)
application.add_typer(queue.application, name="queue", rich_help_panel=MESSAGES)
application.add_typer(address.application, name="address", rich_help_panel=MESSAGES)
application.command(rich_help_panel=MESSAGES, epilog=STATUSES)(bench)
application.command(rich_help_panel=CLUSTER, epilog=DOCTOR_STATUSES)(doctor)
application.command(rich_help_panel=CLUSTER, epilog=DOCTOR_STATUSES)(topology)
application.command("console", rich_help_panel=CLUSTER)(console_command)
application.command(rich_help_panel=CLUSTER, epilog=STATUSES)(rebalance)
application.command(rich_help_panel=CLUSTER, epilog=STATUSES)(drain)
application.add_typer(ha.application, name="ha", rich_help_panel=CLUSTER)
application.add_typer(pipeline.application, name="pipeline", rich_help_panel=SPARK)


@application.command(rich_help_panel=NODE)
def version() -> None:
    """Say which version and which build runs here."""
    for line in version_lines():
        typer.echo(line)
