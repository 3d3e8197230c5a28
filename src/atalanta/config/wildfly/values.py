"""What the expressions of a standalone.xml stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from atalanta.config.xml.properties import substitute

ENVIRONMENT: Final = "env."


class ExpressionValues(Mapping[str, str]):
    """As WildFly resolves them: `name`, `first,second` (the first that has a value), `env.NAME`.

    A name is looked for among `given` (system properties, environment), then in the file's own
    `<system-properties>`, then as NAME_IN_CAPITALS in the environment, since a shell can set no
    other: SHOP_PASSWORD for `shop.password`.
    """

    def __init__(self, given: Mapping[str, str], properties: Mapping[str, str]) -> None:
        self.given = given
        self.properties: dict[str, str] = {}
        for name, text in properties.items():
            try:
                self.properties[name] = substitute(text, self)
            except (KeyError, ValueError):
                continue  # who uses it is told that it has no value

    def __getitem__(self, name: str) -> str:
        for each in name.split(","):
            found = self._one(each.strip())
            if found is not None:
                return found
        raise KeyError(name)

    def _one(self, name: str) -> str | None:
        if name.startswith(ENVIRONMENT):
            return self.given.get(name.removeprefix(ENVIRONMENT))
        for values in (self.given, self.properties):
            if name in values:
                return values[name]
        return self.given.get(in_capitals(name))

    def __iter__(self) -> Iterator[str]:
        yield from self.given
        yield from (name for name in self.properties if name not in self.given)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def in_capitals(name: str) -> str:
    """`shop.password` as SHOP_PASSWORD."""
    return "".join(each if each.isalnum() else "_" for each in name).upper()
