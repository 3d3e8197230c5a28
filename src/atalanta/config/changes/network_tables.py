"""One change of a network connector: a table `[networks.NAME]` in the text of atalanta.toml, whose comments and order
stay."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any

from atalanta.cluster.networks.config import NetworkConnectorConfig
from atalanta.config.changes.kinds import ElementKind, Parameter, is_secret
from atalanta.config.changes.request import ADD, REMOVE, Change, ChangeRefused, Value
from atalanta.config.native.network_uri import read_uri
from atalanta.config.native.networks import DESTINATIONS, NETWORKS
from atalanta.wire.uri import UriError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


def changed_tables(text: str, file: str, kind: ElementKind, change: Change) -> str:
    """Returns the text of `file` with one change of a network connector. ChangeRefused names place and remedy."""
    import tomlkit  # Only a change of networks needs it.
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ChangeRefused(f"{file} is not TOML: {error}") from error
    edit = _TableEdit(document, file, kind, change)
    if change.action == REMOVE:
        edit.remove()
    elif change.action == ADD:
        edit.add()
    else:
        edit.change()
    return tomlkit.dumps(document)


def has_secrets(uri: str) -> bool:
    """Returns whether an option in a network's uri names a file or a password. UriError."""
    return any(is_secret(name) for bridge in read_uri(uri).bridges for target in bridge for name, _ in target.params)


class _TableEdit:
    """The edit of one table of the document."""

    def __init__(self, document: TOMLDocument, file: str, kind: ElementKind, change: Change) -> None:
        self.document: Any = document
        self.file = file
        self.kind = kind
        self.asked = change
        self.networks: Any = self.document.get(NETWORKS)
        self.present = self.networks is not None and change.name in self.networks

    def remove(self) -> None:
        self._check_present()
        del self.networks[self.asked.name]
        if not self.networks:
            del self.document[NETWORKS]

    def add(self) -> None:
        import tomlkit

        if self.present:
            raise ChangeRefused(f"there is a {self.asked.what} already in {self.file}")
        if not self.asked.values.get("uri"):
            raise ChangeRefused(f"{self.asked.what} needs uri")
        if self.networks is None:
            self.document[NETWORKS] = tomlkit.table(is_super_table=True)
            self.networks = self.document[NETWORKS]
        table = tomlkit.table()
        self._set(table)
        if list(self.document)[-1] != NETWORKS:
            table.add(tomlkit.nl())
        self.networks.append(self.asked.name, table)

    def change(self) -> None:
        self._check_present()
        self._set(self.networks[self.asked.name])

    def _check_present(self) -> None:
        if not self.present:
            raise ChangeRefused(f"there is no {self.asked.what} in {self.file}")

    def _set(self, table: Any) -> None:
        for name, value in self.asked.values.items():
            parameter = self.kind.parameter(name)
            if parameter is None:
                raise ChangeRefused(f"{self.asked.what}: there is no parameter '{name[:80]}'")
            if name == self.kind.key:
                if value != self.asked.name:
                    raise ChangeRefused(f"{self.asked.what}: a name does not change: add another one, remove this one")
                continue
            self._check(parameter, value, table)
            if value is None:
                table.pop(name, None)
            else:
                table[name] = _toml_value(parameter, value)

    def _check(self, parameter: Parameter, value: Value, table: Any) -> None:
        if not parameter.editable:
            raise ChangeRefused(
                f"{self.asked.what}: {parameter.name} is not changed by management: write it in {self.file}, and run"
                " `atalanta reload`"
            )
        if parameter.required and not value:
            raise ChangeRefused(f"{self.asked.what} needs {parameter.name}")
        if parameter.name != "uri":
            return
        for uri in (value, table.get("uri", "")):
            try:
                secret = isinstance(uri, str) and uri != "" and has_secrets(uri)
            except UriError as error:
                raise ChangeRefused(f"{self.asked.what}: uri: {error}") from error
            if secret:
                raise ChangeRefused(
                    f"{self.asked.what}: its uri names a file or a password: write it in {self.file}, and run"
                    " `atalanta reload`"
                )


def _toml_value(parameter: Parameter, value: Value) -> object:
    text = ",".join(value) if isinstance(value, list) else value or ""
    if parameter.name in DESTINATIONS:
        return text
    kind = next(entry for entry in _entries() if entry.metadata["xml"] == parameter.name).metadata["kind"]
    try:
        if kind == "int":
            return int(text)
        if kind == "float":
            return float(text)
    except ValueError:
        raise ChangeRefused(f"{parameter.name}: '{text[:60]}' is not a number") from None
    if kind == "bool":
        if text not in ("true", "false"):
            raise ChangeRefused(f"{parameter.name}: '{text[:60]}' is neither true nor false")
        return text == "true"
    return text


def _entries() -> list[Field[Any]]:
    return [entry for entry in fields(NetworkConnectorConfig) if entry.metadata]
