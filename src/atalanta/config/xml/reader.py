"""The generic XML reader: matches the options of a dataclass (kernel/option.py) with an XML node."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from typing import Any, Final

from atalanta.config.problems import Report, nearest
from atalanta.config.xml.tree import XmlElement
from atalanta.kernel.unseen_options import FixedValue

SIZE: Final = re.compile(r"(-?\d{1,19})\s*([kmgKMG]?)[iI]?[bB]?")
FACTORS: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
INT_MAX: Final = 2**63 - 1

Handler = Callable[[XmlElement], None]
Assign = Callable[[str, Any], None]


class BadValue(ValueError):
    """The text is not a valid value of its option."""


class OptionValues:
    """The destination of values: an instance of a described dataclass, or a dictionary of its attributes."""

    def __init__(self, described: type[Any], assign: Assign) -> None:
        self.assign = assign
        self.elements: dict[str, Field[Any]] = {}
        self.attributes: dict[str, Field[Any]] = {}
        for entry in fields(described):
            metadata = entry.metadata
            if not metadata:
                continue
            options = self.attributes if metadata["attribute"] else self.elements
            for name in (metadata["xml"], *metadata["also"]):
                options[name] = entry


def into(instance: Any) -> OptionValues:
    """Returns a target that sets attributes of `instance`."""
    return OptionValues(type(instance), lambda name, value: setattr(instance, name, value))


def into_mapping(described: type[Any], values: dict[str, Any]) -> OptionValues:
    """Returns a target that has only the values given in the file."""
    return OptionValues(described, values.__setitem__)


class _Unbuilt:
    """Elements that are known and not built: `silent` ones, those with one value that holds here, and lost ones."""

    def __init__(self, silent: Mapping[str, str], fixed: Mapping[str, FixedValue], lost: Mapping[str, str]) -> None:
        self.silent = silent
        self.fixed = fixed
        self.lost = lost
        self.known = (*silent, *fixed, *lost)

    def tell(self, node: XmlElement, report: Report) -> None:
        """Reports an element: a value that holds here needs no word."""
        if node.name in self.silent:
            report.without_effect(node.file, node.line, node.name, self.silent[node.name])
        elif node.name in self.lost:
            report.without_effect(node.file, node.line, node.name, self.lost[node.name], True)
        elif not self.fixed[node.name].holds(node.text):
            report.without_effect(node.file, node.line, node.name, self.fixed[node.name].otherwise, True)


class XmlReader:
    """Reads nodes into targets and reports unknown or invalid parts."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def read(
        self,
        node: XmlElement,
        targets: Sequence[OptionValues],
        handlers: Mapping[str, Handler] | None = None,
        without_effect: Mapping[str, str] | None = None,
        attributes: Sequence[str] = (),
        fixed: Mapping[str, FixedValue] | None = None,
        lost: Mapping[str, str] | None = None,
    ) -> None:
        """Reads children and attributes of `node`.

        handlers: element name -> reader of that element (lists, nested sections). without_effect: known names,
        and why no client sees that they have no effect. attributes: names that the caller reads itself. fixed: names
        that are harmless with one value. lost: services that the file asks for and does not get.
        """
        self._attributes(node, targets, attributes)
        unbuilt = _Unbuilt(without_effect or {}, fixed or {}, lost or {})
        self._children(node, targets, handlers or {}, unbuilt)
        if node.text:
            self.report.problem(
                node.file, node.line, f"unexpected text '{_short(node.text)}' in <{node.name}>"
            )

    def _attributes(self, node: XmlElement, targets: Sequence[OptionValues], extra: Sequence[str]) -> None:
        known = [name for target in targets for name in target.attributes]
        for name, text in node.attributes.items():
            target = _find(targets, name, True)
            if target is not None:
                self._assign(node, target, target.attributes[name], name, text)
            elif name not in extra:
                self.report.problem(
                    node.file,
                    node.line,
                    f"unknown attribute '{name}' of <{node.name}>",
                    nearest(name, [*known, *extra]),
                )

    def _children(
        self,
        node: XmlElement,
        targets: Sequence[OptionValues],
        handlers: Mapping[str, Handler],
        unbuilt: _Unbuilt,
    ) -> None:
        seen: set[str] = set()
        for child in node.children:
            handler = handlers.get(child.name)
            if handler is not None:
                handler(child)
                continue
            target = _find(targets, child.name, False)
            if target is not None:
                entry = target.elements[child.name]
                if entry.name in seen:
                    self.report.problem(
                        child.file, child.line, f"<{child.name}> is given twice in <{node.name}>"
                    )
                seen.add(entry.name)
                self._scalar(child, target, entry)
            elif child.name in unbuilt.known:
                unbuilt.tell(child, self.report)
            else:
                known = [name for each in targets for name in each.elements]
                self.unknown(child, node, [*known, *handlers, *unbuilt.known])

    def unknown(self, child: XmlElement, parent: XmlElement, known: Sequence[str]) -> None:
        """Reports an unknown element."""
        self.report.problem(
            child.file,
            child.line,
            f"unknown element <{child.name}> in <{parent.name}>",
            nearest(child.name, known),
        )

    def _scalar(self, child: XmlElement, target: OptionValues, entry: Field[Any]) -> None:
        for name in child.attributes:
            self.report.problem(
                child.file, child.line, f"unknown attribute '{name}' of <{child.name}>"
            )
        for inner in child.children:
            self.unknown(inner, child, [])
        self._assign(child, target, entry, child.name, child.text)

    def _assign(self, node: XmlElement, target: OptionValues, entry: Field[Any], name: str, text: str) -> None:
        try:
            value = convert(text, entry.metadata)
        except BadValue as error:
            self.report.problem(node.file, node.line, f"{name}: {error}")
            return
        target.assign(entry.name, value)
        if not entry.metadata["supported"] and value != entry.default:
            named = entry.metadata["named"]
            self.report.without_effect(node.file, node.line, name, f"no effect ({entry.metadata['why']})", named)


def convert(text: str, metadata: Mapping[str, Any]) -> Any:
    """Converts `text` to the value of an option; BadValue has the reason."""
    text = text.strip()
    choices = metadata["choices"]
    if choices is not None:
        if text.upper() not in choices:
            raise BadValue(f"'{_short(text)}' is none of {', '.join(choices)}")
        return choices[text.upper()]
    kind = metadata["kind"]
    if kind == "bool":
        return boolean(text)
    if kind == "str":
        return text
    if kind == "pattern":
        return _pattern(text)
    value: int | float
    if metadata["unit"] == "bytes":
        value = size(text)
    else:
        value = _number(text, kind)
    minimum = metadata["minimum"]
    maximum = metadata["maximum"]
    if minimum is not None and value < minimum:
        raise BadValue(f"{text} is less than {minimum}")
    above = metadata["above"]
    if above is not None and value <= above:
        raise BadValue(f"{text} is not above {above}")
    if maximum is not None and value > maximum:
        raise BadValue(f"{text} is more than {maximum}")
    return value


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadValue(f"'{_short(text)}' is not a regular expression: {error}") from None
    return text


def boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("true", "1"):
        return True
    if lowered in ("false", "0"):
        return False
    raise BadValue(f"'{_short(text)}' is neither true nor false")


def size(text: str) -> int:
    """Parses bytes: `10485760`, `10M`, `10MB`, `10MiB` (all powers of 1024, as in Artemis)."""
    found = SIZE.fullmatch(text)
    if found is None:
        raise BadValue(f"'{_short(text)}' is not a size such as 10485760, 10M or 10MiB")
    value = int(found.group(1)) * FACTORS[found.group(2).lower()]
    if abs(value) > INT_MAX:
        raise BadValue(f"'{_short(text)}' is too large")
    return value


def _number(text: str, kind: str) -> int | float:
    try:
        value = int(text) if kind == "int" and len(text) < 25 else float(text)
    except ValueError:
        raise BadValue(f"'{_short(text)}' is not a number") from None
    if kind == "int" and (not isinstance(value, int) or abs(value) > INT_MAX):
        raise BadValue(f"'{_short(text)}' is not a whole number of 64 bits")
    if value != value:
        raise BadValue(f"'{_short(text)}' is not a number")
    return value


def _find(targets: Sequence[OptionValues], name: str, attribute: bool) -> OptionValues | None:
    for target in targets:
        if name in (target.attributes if attribute else target.elements):
            return target
    return None


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
