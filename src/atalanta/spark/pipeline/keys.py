"""The keys of a file: what is wrong with them, and the file as it is meant. So a wrong key hides no other problem."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Collection
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from atalanta.spark.pipeline.declaration import Declaration
from atalanta.spark.pipeline.document import Document
from atalanta.spark.pipeline.problems import Location, Problem, nearest

PASSES: Final = 8  # a mended key may be wrong in another way: no value has so many
# Values for keys that are missing; what would follow from them is not told.
STAND_INS: Final = {"column": "timestamp", "delay": "10 seconds", "sql": "SELECT 1", "closed": "true"}


class Keys:
    """The values of a document, mended. `unknown` has names of which nothing follows."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.values: dict[str, Any] = copy.deepcopy(document.values)
        self.problems: list[Problem] = []
        self.unknown: set[str] = set()
        self.nameless = False
        self._mended: set[Location] = set(document.unset)

    def declaration(self) -> Declaration | None:
        """Returns the file as it is meant; None if no source or no query is left."""
        for _ in range(PASSES):
            try:
                return Declaration.model_validate(self.values)
            except ValidationError as error:
                errors = error.errors(include_url=False)
                # Unknown keys first: one of them may be the key that is missing.
                for one in sorted(errors, key=lambda one: one["type"] != "extra_forbidden"):
                    self._take(one)
        return None

    def follows(self, name: str) -> bool:
        """Returns True if a missing name may be there in the file as it is meant."""
        return self.nameless or name in self.unknown

    def replace(self, location: Location, value: object) -> None:
        """Gives a key of a table another value."""
        self._at(location[:-1])[location[-1]] = value

    def _take(self, error: ErrorDetails) -> None:
        """Notes the problem of a key, and mends it."""
        location = location_of(error)
        if error["type"] == "missing" and location[-1] in self._at(location[:-1]):
            return
        if location not in self._mended:
            given = self._at(location[:-1])
            self.problems.append(key_problem(self.document, error, given))
        self._mended.add(location)
        if error["type"] == "extra_forbidden":
            self._rename(location)
        elif error["type"] == "missing":
            self._fill(location)
        else:
            self._remove(location)

    def _at(self, location: Location) -> Any:
        found: Any = self.values
        for part in location:
            found = found[part]
        return found

    def _rename(self, location: Location) -> None:
        """Gives an unknown key the name of the most similar one that the table does not have, or removes it."""
        table, key = self._at(location[:-1]), str(location[-1])
        value = table.pop(key)
        meant = difflib.get_close_matches(key, candidates(location, table), 1, 0.6)
        if meant and meant[0] not in table:
            table[meant[0]] = value
            self.document.rename(location, meant[0])

    def _remove(self, location: Location) -> None:
        """Removes a value of a wrong type or form. An entry of a list goes with the list."""
        if isinstance(location[-1], int):
            location = location[:-1]
        value = self._at(location[:-1]).pop(location[-1])
        self._mended.add(location)
        if location[-1] == "name":
            self.unknown.add(str(value))

    def _fill(self, location: Location) -> None:
        """Gives a table the key that it lacks. The whole file can lack its name, not its sources and queries."""
        table, key = self._at(location[:-1]), str(location[-1])
        if len(location) == 1:
            if key == "name":
                table[key] = "pipeline"
        elif key == "name":
            table[key] = f"unnamed_{location[0]}_{location[1]}"
            self.unknown.add(table[key])
            self.nameless = True
        elif key == "format":
            table[key] = likely_format(table)
        elif key in STAND_INS:
            table[key] = STAND_INS[key]
            self.unknown |= {str(table.get("name"))} if key == "sql" else set()
        else:  # `from`, or `query` of a compaction
            table[key] = "unnamed"
            self.unknown.add("unnamed")


def likely_format(table: dict[str, Any]) -> str:
    """Returns the format that the other keys of a query, or of a table to join with, belong to."""
    if "path" in table:
        return "parquet"
    if "table" in table:
        return "delta"
    return "atalanta" if "servers" in table.get("options", {}) else "console"


def location_of(error: ErrorDetails) -> Location:
    """Returns the keys and indexes to the value, without the types that pydantic has tried."""
    return tuple(part for part in error["loc"] if part not in {"str", "bool", "int", "float"})


def key_problem(document: Document, error: ErrorDetails, given: Collection[object]) -> Problem:
    """Returns the problem of a key that is unknown, missing or of a wrong type. `given` has the keys of its table."""
    location = location_of(error)
    name = str(location[-1]) if location else ""
    _, remedy = described(location)
    if error["type"] == "extra_forbidden":
        keys = candidates(location, given)
        return document.problem(location, f"unknown key '{name}'", nearest(name, keys))
    if error["type"] == "missing":
        place = f"[[{location[0]}]]" if len(location) > 1 else "the file"
        return document.problem(
            location[:-1], f"{place}: key '{name}' is missing", remedy or "add it"
        )
    said = error["msg"][:1].lower() + error["msg"][1:]
    return document.problem(location, f"key '{name}': {said}", remedy)


def candidates(location: Location, given: Collection[object]) -> list[str]:
    """Returns the keys that an unknown one may mean: those that its table does not have, if one of them is similar."""
    model, _ = described(location)
    keys = [field.alias or key for key, field in model.model_fields.items()]
    missing = [key for key in keys if key not in given]
    return missing if difflib.get_close_matches(str(location[-1]), missing, 1, 0.6) else keys


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
