"""The check of a pipeline file without Spark: keys, types, names, options and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from atalanta.spark.errors import OptionError
from atalanta.spark.options import read_options, write_options
from atalanta.spark.pipeline.declaration import (
    Declaration,
    Input,
    Options,
    Query,
    texts,
)
from atalanta.spark.pipeline.document import Document, read_document
from atalanta.spark.pipeline.keys import Keys
from atalanta.spark.pipeline.problems import Location, PipelineError, Problem, nearest

# Values for options without which the connector sees no others.
MISSING_OPTIONS: Final = {"servers": "localhost:61616", "queue": "queue", "address": "address"}
FILE_OPTIONS: Final = ("passwordfile", "truststorepath", "keystorepath", "crlpath")


class Pipeline:
    """A file. `document` has the places of what Spark may find wrong later; nothing follows from names in `unknown`."""

    def __init__(self, document: Document, declaration: Declaration, unknown: Collection[str] = ()) -> None:
        self.document = document
        self.declaration = declaration
        self.unknown = unknown


def read_pipeline(path: Path, variables: Mapping[str, str] | None = None) -> Pipeline:
    """Reads and checks a file. `variables` replaces the environment. Raises PipelineError with all problems."""
    pipeline, problems = examine(path, variables)
    if problems or pipeline is None:
        raise PipelineError(problems)
    return pipeline


def examine(
    path: Path, variables: Mapping[str, str] | None = None
) -> tuple[Pipeline | None, list[Problem]]:
    """Returns the file as it is meant, None if nothing is left of it, and all problems in the order of their lines.

    Raises PipelineError if the file cannot be read, or is neither TOML nor YAML.
    """
    document = read_document(path, variables)
    keys = Keys(document)
    declaration = keys.declaration()
    problems = [*document.problems, *keys.problems]
    if declaration is None:
        return None, in_order(problems)
    problems += option_problems(document, declaration, keys)
    problems += [
        *name_problems(document, declaration),
        *file_problems(document, declaration, keys),
        *query_problems(document, declaration, keys),
        *compaction_problems(document, declaration, keys),
    ]
    meant = keys.declaration() or declaration
    return Pipeline(document, meant, keys.unknown), in_order(problems)


def in_order(problems: list[Problem]) -> list[Problem]:
    return sorted(dict.fromkeys(problems), key=lambda one: one.line)


def name_problems(document: Document, declaration: Declaration) -> list[Problem]:
    """Returns names that are there twice: sources, tables and steps share the names of views."""
    problems = []
    for kinds in (("source", "table", "step"), ("query",)):
        seen: dict[str, str] = {}
        for kind in kinds:
            for at, one in enumerate(getattr(declaration, kind)):
                if one.name.lower() in seen:
                    text = f"{kind} '{one.name}': a {seen[one.name.lower()]} has this name"
                    problems.append(
                        document.problem((kind, at, "name"), text, "rename one of them")
                    )
                seen.setdefault(one.name.lower(), kind)
    return problems


def option_problems(document: Document, declaration: Declaration, keys: Keys) -> list[Problem]:
    """Returns options that the source or the sink refuses, and queues that two sources read as one group.

    `keys` gets the options as they are meant.
    """
    problems = []
    readers: dict[tuple[str, str], str] = {}
    inputs: list[tuple[Location, Input, str]] = []
    inputs += [(("source", at), one, one.format) for at, one in enumerate(declaration.source)]
    inputs += [(("table", at), one, one.format) for at, one in enumerate(declaration.table)]
    for location, one, format_name in inputs:
        if format_name != "atalanta":
            continue
        refused, meant = refused_options(document, location, one.options, read_options)
        keys.replace((*location, "options"), meant)
        problems += refused
        if not refused and meant == texts(one.options) and location[0] == "source":
            options = read_options(meant)
            other = readers.setdefault((options.queue, options.group), one.name)
            if other != one.name:
                text = f"sources '{other}' and '{one.name}' read queue {options.queue} as group {options.group}"
                remedy = (
                    "a queue feeds one query: give each a queue of its own on a multicast address"
                )
                problems.append(document.problem(location, text, remedy))
    for at, query in enumerate(declaration.query):
        if query.format == "atalanta":
            refused, meant = refused_options(document, ("query", at), query.options, write_options)
            keys.replace(("query", at, "options"), meant)
            problems += refused
    return problems


def refused_options(
    document: Document,
    location: Location,
    options: Options,
    parse: Callable[[Mapping[str, str]], object],
) -> tuple[list[Problem], dict[str, str]]:
    """Returns all problems that the connector has with the options, at their lines, and the options as they are meant.

    The connector tells one at a time: so each refused option gets the name that was meant, or is left out. A value
    with a variable that is not set is a problem already.
    """
    problems: list[Problem] = []
    left_out = {key.lower() for key in options if (*location, "options", key) in document.unset}
    meant = {key: value for key, value in texts(options).items() if key.lower() not in left_out}
    for _ in range(2 * len(options) + len(MISSING_OPTIONS) + 1):
        try:
            parse(meant)
            return problems, meant
        except OptionError as error:
            found = re.search(r"options? (\w+)", str(error))
            name = found[1] if found is not None else ""
            named = [key for key in meant if key.lower() == name.lower()]
            if name.lower() not in left_out:
                at = (*location, "options", *(key for key in named if key in options))
                remedy = "the options are in docs/guide/spark.md"
                problems.append(document.problem(at, str(error), remedy))
            left_out.add(name.lower())
            if named:
                value = meant.pop(named[0])
                similar = re.search(r"did you mean (\w+)\?", str(error))
                if similar is not None and similar[1] not in meant:
                    meant[similar[1]] = value
            elif name in MISSING_OPTIONS:
                meant[name] = MISSING_OPTIONS[name]
            else:
                break
    return problems, meant


def file_problems(document: Document, declaration: Declaration, keys: Keys) -> list[Problem]:
    """Returns files on this machine that are missing: those of options, and those of static tables.

    `keys` gets the names of such tables.
    """
    problems = []
    missing = "no such file; relative paths begin at the working directory"
    for kind in ("source", "table", "query"):
        for at, one in enumerate(getattr(declaration, kind)):
            for key, value in one.options.items():
                location = (kind, at, "options", key)
                if location in document.unset:
                    continue
                if key.lower() in FILE_OPTIONS and not Path(str(value)).is_file():
                    problems.append(
                        document.problem(location, f"{key} '{value}': {missing}", "create it")
                    )
    for at, table in enumerate(declaration.table):
        path = table.path
        if ("table", at, "path") in document.unset:
            keys.unknown.add(table.name)
        elif path is not None and "://" not in path and not any(mark in path for mark in "*?[{"):
            if not Path(path.removeprefix("file:")).exists():
                keys.unknown.add(table.name)
                text = f"path '{path}': {missing}"
                problems.append(document.problem(("table", at, "path"), text, "create it"))
    return problems


def query_problems(document: Document, declaration: Declaration, keys: Keys) -> list[Problem]:
    """Returns queries without a source, a target or a checkpoint, and checkpoints of two queries."""
    problems = []
    views = [source.name for source in declaration.source] + [
        step.name for step in declaration.step
    ]
    checkpoints: dict[str, str] = {}
    for at, query in enumerate(declaration.query):
        if query.source not in views and not keys.follows(query.source):
            text = f"query '{query.name}': there is no source or step '{query.source}'"
            problems.append(
                document.problem(("query", at, "from"), text, nearest(query.source, views))
            )
        text, remedy = target_problem(query)
        if text:
            said = f"query '{query.name}': {text}"
            problems.append(document.problem(("query", at), said, remedy))
        checkpoint = declaration.checkpoint(query)
        if checkpoint is None:
            if query.format != "console":
                text = f"query '{query.name}' has no checkpoint"
                remedy = "add 'checkpoints' at the top of the file: the folder of all checkpoints"
                problems.append(document.problem(("query", at), text, remedy))
            continue
        other = checkpoints.setdefault(checkpoint.rstrip("/"), query.name)
        if other != query.name:
            text = f"queries '{other}' and '{query.name}' have the same checkpoint"
            problems.append(
                document.problem(("query", at, "checkpoint"), text, "a folder for each")
            )
    return problems


def target_problem(query: Query) -> tuple[str, str]:
    """Returns text and remedy if the query has no target, two, or one that its format does not have."""
    given = [key for key in ("path", "table") if getattr(query, key) is not None]
    wanted = {"parquet": ["path"], "delta": ["path", "table"], "iceberg": ["table"]}.get(
        query.format, []
    )
    if not wanted and given:
        return f"format {query.format} has no '{given[0]}'", f"remove '{given[0]}'"
    if wanted and (len(given) != 1 or given[0] not in wanted):
        return f"format {query.format} needs {' or '.join(wanted)}", "one of them, and nothing else"
    return "", ""


def compaction_problems(document: Document, declaration: Declaration, keys: Keys) -> list[Problem]:
    """Returns compactions of other formats, and those of Parquet without one partition column and a second folder."""
    problems = []
    queries = {query.name: query for query in declaration.query}
    for at, compaction in enumerate(declaration.compaction):
        query = queries.get(compaction.query)
        location = ("compaction", at, "query")
        if query is None:
            if keys.follows(compaction.query):
                continue
            text = f"there is no query '{compaction.query}'"
            problems.append(document.problem(location, text, nearest(compaction.query, queries)))
        elif query.format in ("delta", "iceberg"):
            if compaction.path is not None:
                text = f"format {query.format} is compacted in place"
                place = ("compaction", at, "path")
                problems.append(document.problem(place, text, "remove 'path'"))
        elif query.format != "parquet" or len(query.partition_by) != 1:
            text = f"query '{query.name}' is not Parquet with one column in partition_by"
            remedy = "other targets: Delta and Iceberg tables"
            problems.append(document.problem(location, text, remedy))
        elif compaction.path is None:
            text = f"compaction of query '{query.name}': key 'path' is missing"
            remedy = "add the folder of the second table"
            problems.append(document.problem(location, text, remedy))
        elif same_folder(compaction.path, str(query.path)):
            text = "the compacted table has the folder of the query"
            problems.append(document.problem(("compaction", at, "path"), text, "another folder"))
    return problems


def same_folder(path: str, other_path: str) -> bool:
    """Returns True if one folder is, or is in, the other."""
    one, other = (f"{text.rstrip('/')}/" for text in (path, other_path))
    return one.startswith(other) or other.startswith(one)
