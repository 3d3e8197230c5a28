"""The values of expressions in a standalone.xml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from atalanta.config.xml.properties import substitute

ENVIRONMENT: Final = "env."


class ExpressionValues(Mapping[str, str]):
    """Resolves expressions as WildFly does: `name`, `first,second` (the first with a value), `env.NAME`.

    A name is looked up in `given` (system properties, environment), then in the file's own
    `<system-properties>`. The last choice is NAME_IN_CAPITALS in the environment, since a shell can set no
    other: SHOP_PASSWORD for `shop.password`.
    """

    def __init__(self, given: Mapping[str, str], properties: Mapping[str, str]) -> None:
        self.given = given
        self.properties: dict[str, str] = {}
        for name, text in properties.items():
            try:
                self.properties[name] = substitute(text, self)
            except (KeyError, ValueError):
                continue  # the element that uses it reports the missing value

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
    """Returns SHOP_PASSWORD for `shop.password`."""
    return "".join(each if each.isalnum() else "_" for each in name).upper()
