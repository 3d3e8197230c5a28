"""The check of a pipeline file without Spark: keys, types, names, options and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

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
from atalanta.spark.pipeline.problems import Location, PipelineError, Problem, nearest

FILE_OPTIONS: Final = ("passwordfile", "truststorepath", "keystorepath", "crlpath")


class Pipeline:
    """A checked file. `document` has the places of what Spark may find wrong later."""

    def __init__(self, document: Document, declaration: Declaration) -> None:
        self.document = document
        self.declaration = declaration


def read_pipeline(path: Path, variables: Mapping[str, str] | None = None) -> Pipeline:
    """Reads and checks a file. `variables` replaces the environment. Raises PipelineError with all problems."""
    document = read_document(path, variables)
    try:
        declaration = Declaration.model_validate(document.values)
    except ValidationError as error:
        found = [key_problem(document, one) for one in error.errors(include_url=False)]
        raise PipelineError(dict.fromkeys(found)) from error
    problems = [
        *name_problems(document, declaration),
        *option_problems(document, declaration),
        *file_problems(document, declaration),
        *query_problems(document, declaration),
        *compaction_problems(document, declaration),
    ]
    if problems:
        raise PipelineError(dict.fromkeys(problems))
    return Pipeline(document, declaration)


def key_problem(document: Document, error: ErrorDetails) -> Problem:
    """Returns the problem of a key that is unknown, missing or of a wrong type."""
    location: Location = tuple(
        part for part in error["loc"] if part not in {"str", "bool", "int", "float"}
    )
    name = str(location[-1]) if location else ""
    model, remedy = described(location)
    if error["type"] == "extra_forbidden":
        keys = [field.alias or key for key, field in model.model_fields.items()]
        return document.problem(location, f"unknown key '{name}'", nearest(name, keys))
    if error["type"] == "missing":
        place = f"[[{location[0]}]]" if len(location) > 1 else "the file"
        return document.problem(
            location[:-1], f"{place}: key '{name}' is missing", remedy or "add it"
        )
    said = error["msg"][:1].lower() + error["msg"][1:]
    return document.problem(location, f"key '{name}': {said}", remedy)


def described(location: Location) -> tuple[type[BaseModel], str]:
    """Returns the model around a location, and the description of its last key."""
    model: type[BaseModel] = Declaration
    remedy = ""
    for part in location:
        if isinstance(part, int):
            continue
        fields = {field.alias or key: field for key, field in model.model_fields.items()}
        if part not in fields:
            break
        remedy = fields[part].description or ""
        inner = models_in(fields[part].annotation)
        if inner is None or part == location[-1]:
            break
        model = inner
    return model, remedy


def models_in(annotation: Any) -> type[BaseModel] | None:
    """Returns the model that an annotation such as `list[Model]` or `Model | None` has."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = [models_in(one) for one in getattr(annotation, "__args__", ())]
    return next((one for one in found if one is not None), None)


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


def option_problems(document: Document, declaration: Declaration) -> list[Problem]:
    """Returns options that the source or the sink refuses, and queues that two sources read as one group."""
    problems = []
    readers: dict[tuple[str, str], str] = {}
    inputs: list[tuple[Location, Input, str]] = []
    inputs += [(("source", at), one, one.format) for at, one in enumerate(declaration.source)]
    inputs += [(("table", at), one, one.format) for at, one in enumerate(declaration.table)]
    for location, one, format_name in inputs:
        if format_name != "atalanta":
            continue
        problem = refused(document, location, one.options, read_options)
        if problem is not None:
            problems.append(problem)
        elif location[0] == "source":
            options = read_options(texts(one.options))
            other = readers.setdefault((options.queue, options.group), one.name)
            if other != one.name:
                text = f"sources '{other}' and '{one.name}' read queue {options.queue} as group {options.group}"
                remedy = (
                    "a queue feeds one query: give each a queue of its own on a multicast address"
                )
                problems.append(document.problem(location, text, remedy))
    for at, query in enumerate(declaration.query):
        if query.format == "atalanta":
            problem = refused(document, ("query", at), query.options, write_options)
            problems += [problem] if problem is not None else []
    return problems


def refused(
    document: Document,
    location: Location,
    options: Options,
    parse: Callable[[Mapping[str, str]], object],
) -> Problem | None:
    """Returns the problem that the connector has with the options, at the line of the option that it names."""
    try:
        parse(texts(options))
    except OptionError as error:
        found = re.search(r"options? (\w+)", str(error))
        named = [key for key in options if found is not None and key.lower() == found[1].lower()]
        remedy = "the options are in docs/guide/spark.md"
        return document.problem((*location, "options", *named), str(error), remedy)
    return None


def file_problems(document: Document, declaration: Declaration) -> list[Problem]:
    """Returns files on this machine that are missing: those of options, and those of static tables."""
    problems = []
    missing = "no such file; relative paths begin at the working directory"
    for kind in ("source", "table", "query"):
        for at, one in enumerate(getattr(declaration, kind)):
            for key, value in one.options.items():
                if key.lower() in FILE_OPTIONS and not Path(str(value)).is_file():
                    location = (kind, at, "options", key)
                    problems.append(
                        document.problem(location, f"{key} '{value}': {missing}", "create it")
                    )
    for at, table in enumerate(declaration.table):
        path = table.path
        if path is not None and "://" not in path and not any(mark in path for mark in "*?[{"):
            if not Path(path.removeprefix("file:")).exists():
                text = f"path '{path}': {missing}"
                problems.append(document.problem(("table", at, "path"), text, "create it"))
    return problems


def query_problems(document: Document, declaration: Declaration) -> list[Problem]:
    """Returns queries without a source, a target or a checkpoint, and checkpoints of two queries."""
    problems = []
    views = [source.name for source in declaration.source] + [
        step.name for step in declaration.step
    ]
    checkpoints: dict[str, str] = {}
    for at, query in enumerate(declaration.query):
        if query.source not in views:
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


def compaction_problems(document: Document, declaration: Declaration) -> list[Problem]:
    """Returns compactions of other formats, and those of Parquet without one partition column and a second folder."""
    problems = []
    queries = {query.name: query for query in declaration.query}
    for at, compaction in enumerate(declaration.compaction):
        query = queries.get(compaction.query)
        location = ("compaction", at, "query")
        if query is None:
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
