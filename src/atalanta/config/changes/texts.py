"""The texts of the files that management may change: the main file, and atalanta.toml beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from atalanta.config.changes.difference import Hunk, hunks, undone, unified
from atalanta.config.changes.edit import changed_text
from atalanta.config.changes.elements import WrittenTree
from atalanta.config.changes.kinds import ElementKind, classic_kinds, kinds
from atalanta.config.changes.mask import masked_text
from atalanta.config.changes.network_tables import changed_tables
from atalanta.config.changes.request import ADD, Change, ChangeRefused
from atalanta.config.changes.source import Encoded, read_source
from atalanta.config.native.toml_file import SIZE_MAX_BYTES, own_file
from atalanta.config.problems import Report
from atalanta.config.xml.tree import XmlElement, is_classic, is_wildfly
from atalanta.files.regular import read_regular

# A larger file is not changed: each of its lines is compared.
FILE_BYTES_MAX: Final = 2 << 20
BROKER: Final = "broker.xml"
CLASSIC: Final = "activemq.xml"
WILDFLY: Final = "standalone.xml"


@dataclass(frozen=True)
class Texts:
    """The bytes of the files. `own` is None without an atalanta.toml; `tree` is the main file with its includes, as it
    is written; `form` is that of the main file; `digest` is of all files together."""

    path: Path
    main: bytes
    own_path: Path
    own: bytes | None
    tree: XmlElement | None
    form: str
    digest: str

    @classmethod
    def read(cls, path: Path, contents: Mapping[Path, bytes] | None = None) -> Texts:
        """Reads the files; `contents` has those that count as changed. ChangeRefused if they cannot be read."""
        given = contents or {}
        own_path = own_file(path)
        try:
            main = given[path] if path in given else read_regular(path, FILE_BYTES_MAX)
            own = given[own_path] if own_path in given else _read_own(own_path)
        except OSError as error:
            raise ChangeRefused(f"{path.name} cannot be read: {error.strerror or error}") from error
        for file, data, bytes_max in ((path, main, FILE_BYTES_MAX), (own_path, own or b"", SIZE_MAX_BYTES)):
            if len(data) > bytes_max:
                raise ChangeRefused(f"{file.name} is larger than {bytes_max} bytes: it is changed by hand only")
        return cls._of(path, main, own_path, own)

    @classmethod
    def _of(cls, path: Path, main: bytes, own_path: Path, own: bytes | None) -> Texts:
        report = Report()
        reader = WrittenTree(report, {}, contents={path: main})
        tree = reader.read(path)
        if tree is None:
            raise ChangeRefused("; ".join(str(each) for each in report.problems))
        form = WILDFLY if is_wildfly(tree) else CLASSIC if is_classic(tree) else BROKER
        digest = hashlib.sha256()
        for data in (main, b"" if own is None else own, *(_included(each) for each in reader.files if each != path)):
            digest.update(hashlib.sha256(data).digest())
        return cls(path, main, own_path, own, tree, form, digest.hexdigest())

    @property
    def kinds(self) -> dict[str, ElementKind]:
        """Returns the kinds that can be changed in a file of this form."""
        return kinds() if self.form == BROKER else classic_kinds() if self.form == CLASSIC else {}

    def of(self, path: Path) -> bytes | None:
        """Returns the bytes of one of the two files."""
        return self.own if path == self.own_path else self.main

    def changed(self, changes: list[Change]) -> Texts:
        """Returns the texts with these changes. ChangeRefused names the first one that is not possible."""
        found = self
        for change in changes:
            kind = self.kinds.get(change.kind)
            if kind is None:
                where = "" if self.form == BROKER else f" in an {self.form}"
                known = ", ".join(self.kinds)
                raise ChangeRefused(f"'{change.kind}' is not changed by management{where}, only: {known}")
            if change.action == ADD:
                check_name(change, kind)
            found = found._edited(change, kind)
        return Texts._of(self.path, found.main, self.own_path, found.own)

    def _edited(self, change: Change, kind: ElementKind) -> Texts:
        if kind.table:
            text = _utf8(self.own or b"", self.own_path)
            return replace(self, own=changed_tables(text, self.own_path.name, kind, change).encode())
        encoded, _ = read_source(self.main)
        self._check_included(change, kind)
        text = changed_text(encoded.text, self.path.name, kind, change)
        if len(text) > FILE_BYTES_MAX:
            raise ChangeRefused(f"{self.path.name} would be larger than {FILE_BYTES_MAX} bytes")
        return replace(self, main=encoded.data(text))

    def _check_included(self, change: Change, kind: ElementKind) -> None:
        """Refuses a change of what comes from another file."""
        for node in [] if self.tree is None else _below_core(self.tree):
            if Path(node.file) == self.path or node.name not in (kind.section, kind.name):
                continue
            name = Path(node.file).name
            elements = [node] if node.name == kind.name else list(node.all(kind.name))
            named = [each for each in elements if each.attributes.get(kind.key) == change.name]
            if named or (change.action == ADD and node.name == kind.section):
                line = named[0].line if named else node.line
                raise ChangeRefused(
                    f"<{kind.section or kind.name}> comes from the included {name}, line {line}: change {change.what}"
                    " there, and run `atalanta reload`"
                )

    def differences(self, after: Texts) -> str:
        """Returns the unified diffs from these texts to others, without passwords."""
        return "\n".join(
            found for found in (unified(file.name, self.text(file), after.text(file)) for file in self.files) if found
        )

    @property
    def files(self) -> tuple[Path, Path]:
        return self.path, self.own_path

    def text(self, path: Path) -> str:
        """Returns the text of a file, "" if there is none."""
        data = self.of(path)
        if data is None:
            return ""
        return _utf8(data, path) if path == self.own_path else Encoded.of(data).text

    def masked(self, path: Path) -> str:
        """Returns the text of a file without passwords."""
        return masked_text(self.text(path))

    def places(self, after: Texts) -> dict[str, list[Hunk]]:
        """Returns the changed lines by the name of the file."""
        found = {file.name: hunks(self.text(file), after.text(file)) for file in self.files}
        return {name: places for name, places in found.items() if places}

    def taken_back(self, places: dict[str, list[Hunk]]) -> Texts:
        """Returns the texts with the changed lines as they were. ChangeRefused if they are not there any more."""
        back = {file: undone(self.text(file), places.get(file.name, []), file.name) for file in self.files}
        encode: Callable[[str], bytes] = Encoded.of(self.main).data
        own = None if self.own is None else back[self.own_path].encode()
        return Texts._of(self.path, encode(back[self.path]), self.own_path, own)

    def contents_all(self) -> dict[Path, bytes]:
        """Returns the bytes of the files."""
        return {file: data for file in self.files if (data := self.of(file)) is not None}

    def contents(self, before: Texts) -> dict[Path, bytes]:
        """Returns the bytes of the files that differ from `before`."""
        found = {}
        for file in self.files:
            data = self.of(file)
            if data is not None and data != before.of(file):
                found[file] = data
        return found


def check_name(change: Change, kind: ElementKind) -> None:
    """Refuses the name of a new element that could be taken for a path. Matches of addresses have other signs."""
    name = change.name
    if not name.isprintable():
        raise ChangeRefused("a name has no control characters")
    if kind.key == "name" and (".." in name or "/" in name or "\\" in name):
        raise ChangeRefused(f"'{name}' cannot be the name of a {kind.name}: it has '..', '/' or '\\'")


def _below_core(tree: XmlElement) -> list[XmlElement]:
    core = tree if tree.name == "core" else next(tree.all("core"), None)
    if core is None:
        return []
    return [node for section in core.children for node in (section, *section.children)]


def _included(path: Path) -> bytes:
    try:
        return read_regular(path, FILE_BYTES_MAX)
    except OSError:
        return b""


def _read_own(path: Path) -> bytes | None:
    try:
        return read_regular(path, SIZE_MAX_BYTES)
    except FileNotFoundError:
        return None


def _utf8(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ChangeRefused(f"{path.name} is not UTF-8: {error}") from error
