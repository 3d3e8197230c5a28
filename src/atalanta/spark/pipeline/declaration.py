"""The keys of a pipeline file and their types, for pydantic. The descriptions are the remedies of its errors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
INTERVAL = r"^[1-9]\d* (milliseconds?|seconds?|minutes?|hours?|days?)$"
AVAILABLE_NOW = "available_now"
TRIGGER = rf"^{AVAILABLE_NOW}$|{INTERVAL}"

Name = Annotated[
    str,
    Field(
        pattern=NAME, description="a name of letters, digits and _, in quotes: it is a view in SQL"
    ),
]
Text = Annotated[str, Field(min_length=1, description="a text in quotes")]
Options = dict[str, str | bool | int | float]


class Table(BaseModel):
    """The base of all tables: unknown keys and other types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Watermark(Table):
    """The watermark of an event time."""

    column: Text
    delay: str = Field(pattern=INTERVAL, description="such as '10 seconds'")


class Input(Table):
    """Rows that Spark reads: `path` for files, `options` as in Spark."""

    name: Name
    path: Text | None = None
    schema_text: Text | None = Field(
        None, alias="schema", description="columns as in SQL, such as 'text string, carrier string'"
    )
    options: Options = Field({}, description="a table of texts, numbers, true or false")


class StreamSource(Input):
    """A stream, `format` of Spark."""

    format: Text = "atalanta"
    watermark: Watermark | None = None


class StaticTable(Input):
    """A table that is read when the pipeline starts, to be joined with."""

    format: Text


class Step(Table):
    """An SQL statement over sources, tables and earlier steps."""

    name: Name
    sql: Text
    watermark: Watermark | None = None


class Query(Table):
    """The sink of a source or step."""

    name: Name
    source: Name = Field(alias="from", description="the name of a source or step")
    format: Literal["atalanta", "parquet", "delta", "iceberg", "console"] = Field(
        description="atalanta, parquet, delta, iceberg or console"
    )
    path: Text | None = Field(None, description="the folder of a parquet or delta table")
    table: Text | None = Field(
        None, description="the name of a delta or iceberg table in the catalog"
    )
    partition_by: list[Name] = Field([], description="a list of column names")
    mode: Literal["append", "update", "complete"] = Field(
        "append", description="append, update or complete"
    )
    trigger: str = Field(
        "10 seconds",
        pattern=TRIGGER,
        description=f"'{AVAILABLE_NOW}', or an interval such as '10 seconds'",
    )
    checkpoint: Text | None = None
    options: Options = Field({}, description="a table of texts, numbers, true or false")


class CompactionTable(Table):
    """Fewer files for the closed partitions of a query: of Parquet in a second table, of Delta and Iceberg in place."""

    query: Name
    path: Text | None = Field(None, description="the folder of the second table, for Parquet only")
    closed: Text = Field(description="an SQL condition, such as 'day < current_date()'")


class PageTable(Table):
    """The page and the metrics. `listen` is host:port; port 0 is a free one."""

    listen: str = Field(
        "127.0.0.1:4041",
        pattern=r"^[^\s:]+:\d{1,5}$",
        description="host:port, such as '127.0.0.1:4041'",
    )


class Declaration(Table):
    """A whole file."""

    name: Name
    checkpoints: Text | None = Field(None, description="the folder of all checkpoints")
    on_failure: Literal["stop", "continue"] = Field(
        "stop", description="stop: all queries end when one fails; continue: the others go on"
    )
    master: Text = Field("local[*]", description="Spark's master; spark-submit overrides it")
    spark: Options = Field({}, description="a table of Spark's settings")
    page: PageTable | None = None
    source: list[StreamSource] = Field(min_length=1, description="[[source]]: at least one")
    table: list[StaticTable] = []
    step: list[Step] = []
    query: list[Query] = Field(min_length=1, description="[[query]]: at least one")
    compaction: list[CompactionTable] = []

    def checkpoint(self, query: Query) -> str | None:
        """Returns the folder of a query's checkpoint, None if neither the query nor the file names one."""
        if query.checkpoint is not None or self.checkpoints is None:
            return query.checkpoint
        return f"{self.checkpoints.rstrip('/')}/{query.name}"


def texts(options: Options) -> dict[str, str]:
    """Returns options as Spark wants them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
