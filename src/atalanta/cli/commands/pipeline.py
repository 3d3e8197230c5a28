"""`atalanta pipeline`: its arguments. The work is in cli/pipeline/run.py."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from atalanta.cli.output import USAGE, ended

PACKAGES: Final = ("pyspark", "pyarrow", "prometheus_client", "pydantic", "yaml")


class FileFirst(TyperGroup):
    """The commands; `pipeline FILE` is `pipeline run FILE`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


application = typer.Typer(
    cls=FileFirst,
    help="Declared Spark pipelines: `atalanta pipeline FILE` runs one.",
    no_args_is_help=True,
    epilog="Exit status: 0 done; 1 a query failed, or the file has problems; 2 wrong arguments; 66 no such file; "
    "69 the page's address cannot be bound.",
)

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="a .toml, .yaml or .yml file", show_default=False)
]


def needed() -> None:
    """Ends the command if the packages of pipelines are missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        text = f"pipelines need more packages: pip install '.[pipeline]' in the checkout ({', '.join(missing)})"
        raise ended(text, USAGE)


@application.command()
def run(
    file: File,
    json_output: Annotated[
        bool, typer.Option("--json", help="each batch as one line of JSON")
    ] = False,
) -> None:
    """Run the queries of a file until SIGTERM or SIGINT, or until one fails."""
    needed()
    from atalanta.cli.pipeline.run import run_pipeline

    run_pipeline(file, json_output)


@application.command()
def check(file: File) -> None:
    """Check a file: keys, options, files, and its SQL in Spark. Starts no query."""
    needed()
    from atalanta.cli.pipeline.run import check_pipeline

    check_pipeline(file)


@application.command()
def compact(file: File) -> None:
    """Compact closed partitions: of Parquet into a second table, of Delta and Iceberg in place."""
    needed()
    from atalanta.cli.pipeline.run import compact_pipeline

    compact_pipeline(file)
