"""One change of an element in the text of a broker.xml."""

from __future__ import annotations

import re
from typing import Final
from xml.sax.saxutils import escape

from atalanta.config.changes.address_text import HOST, PORT, with_part
from atalanta.config.changes.kinds import ElementKind, Parameter, Place, is_secret
from atalanta.config.changes.request import ADD, REMOVE, Change, ChangeRefused, Value
from atalanta.config.changes.source import Tag, XmlSource, quoted

PLACEHOLDER: Final = "${"
INCLUDE: Final = "include"
CORES: Final = ("core", "broker")
URI: Final = "uri"
OPTION: Final = re.compile(r"[?&;]\s*([^=&;?()]+)=")
BY_HAND: Final = "change it there, and run `atalanta reload`"


def changed_text(text: str, file: str, kind: ElementKind, change: Change) -> str:
    """Returns the text of `file` with one change. ChangeRefused names the place and the remedy."""
    edit = ElementEdit(text, file, kind, change.name)
    if change.action == ADD:
        edit.add(change)
    elif change.action == REMOVE:
        edit.remove()
    else:
        edit.change(change.values)
    return edit.source.text


class ElementEdit:
    """The edit of one element. `source` is the text so far."""

    def __init__(self, text: str, file: str, kind: ElementKind, name: str) -> None:
        self.source = XmlSource(text)
        self.file = file
        self.kind = kind
        self.name = name
        self.what = f"{kind.name} '{name}'"

    # --- where ------------------------------------------------------------------------------------

    def core(self) -> Tag:
        """Returns the `<core>` or Classic's `<broker>` of the text. ChangeRefused if it is in another file."""
        root = self.source.root
        core = root if root.name in CORES else next(root.all(*CORES), None)
        if core is None:
            raise ChangeRefused(f"{self.file} has no <core> of its own: {self.what} is in an included file, {BY_HAND}")
        return core

    def sections(self) -> list[Tag]:
        """Returns the elements that may hold elements of this kind."""
        core = self.core()
        if not self.kind.section:
            return [core]
        return [*core.all(self.kind.section), *([core] if self.kind.without_section else [])]

    def elements(self) -> list[Tag]:
        """Returns the elements of this kind in the text."""
        names = (self.kind.tag, *self.kind.also)
        return [each for section in self.sections() for each in section.all(*names)]

    def element(self) -> Tag:
        """Returns the element. ChangeRefused if it is not in this text once."""
        found = [each for each in self.elements() if each.attributes.get(self.kind.key) == self.name]
        if not found:
            raise ChangeRefused(f"there is no {self.what} in {self.file}")
        if len(found) > 1:
            lines = ", ".join(str(each.line) for each in found)
            raise ChangeRefused(f"{self.what} is several times in {self.file}, in lines {lines}: keep one of them")
        return found[0]

    def _place(self, tag: Tag) -> str:
        return f"{self.file}, line {tag.line}"

    def own_element(self) -> Tag:
        """Returns the element, if it can be changed: no part of it is a placeholder, or in another file."""
        tag = self.element()
        if PLACEHOLDER in self.source.text[tag.start : tag.end]:
            raise ChangeRefused(
                f"{self.what} has a placeholder ${{…}}, which is not written as what it stands for"
                f" ({self._place(tag)}): {BY_HAND}"
            )
        inner = [tag]
        while inner:
            each = inner.pop()
            if each.name == INCLUDE and each is not tag:
                raise ChangeRefused(f"{self.what} includes another file ({self._place(each)}): {BY_HAND}")
            inner += each.children
        return tag

    # --- changes ----------------------------------------------------------------------------------

    def remove(self) -> None:
        """Removes the element, and its section if nothing else is in it."""
        tag = self.own_element()
        self.source = XmlSource(self.source.removed(tag))
        for section in self.sections() if self.kind.section else []:
            inside = self.source.text[section.inner : section.closing]
            if section.name == self.kind.section and not inside.strip() and section.start < tag.start < section.end + 1:
                self.source = XmlSource(self.source.removed(section))
                return

    def add(self, change: Change) -> None:
        """Adds the element behind the last one of its kind. ChangeRefused if there is one of that name."""
        core = self.core()
        if not self.kind.section and any(True for _ in core.all(self.kind.tag)):
            raise ChangeRefused(f"there is a {self.kind.name} already, and a node has one: change or remove that one")
        found = [each for each in self.elements() if each.attributes.get(self.kind.key) == self.name]
        if found:
            raise ChangeRefused(f"there is a {self.what} already ({self._place(found[0])})")
        missing = [
            each.name
            for each in self.kind.parameters
            if each.required and each.name != self.kind.key and not change.values.get(each.name)
        ]
        if missing:
            raise ChangeRefused(f"{self.what} needs {', '.join(missing)}")
        section = self._section(core)
        prefix = section.prefix
        head = f"<{prefix}{self.kind.tag} {self.kind.key}={quoted(self.name)}"
        values = dict(change.values)
        if self.kind.uri:
            self._known(list(values))
            address = with_part("tcp://localhost", HOST, _one(values.pop(HOST)))
            address = with_part(address, PORT, _one(values.pop(PORT, None)) or "61616")
            element = f"{head}>{escape(address)}</{prefix}{self.kind.tag}>"
        else:
            element = f"{head}/>"
        after = [each for each in section.children if each.name in (self.kind.tag, *self.kind.also)]
        last = after[-1] if after else section.children[-1] if section.children else None
        self.source = XmlSource(self.source.inserted(section, last, element))
        self.change(values)

    def _section(self, core: Tag) -> Tag:
        """Returns the section of a new element, which is made if it is missing. ChangeRefused if it is included."""
        if not self.kind.section:
            return core
        for each in self.sections():
            if each.name == self.kind.section or any(True for _ in each.all(self.kind.tag)):
                return each
        for each in core.all(INCLUDE):
            if self.kind.section in each.attributes.get("href", ""):
                raise ChangeRefused(
                    f"<{self.kind.section}> comes from {each.attributes['href']} ({self._place(each)}): add {self.what}"
                    f" there, and run `atalanta reload`"
                )
        last = core.children[-1] if core.children else None
        self.source = XmlSource(self.source.inserted(core, last, f"<{core.prefix}{self.kind.section}/>"))
        return next(self.core().all(self.kind.section))

    def change(self, values: dict[str, Value]) -> None:
        """Changes parameters, one after the other in the order of the kind."""
        self._known(list(values))
        self.own_element()
        for parameter in self.kind.parameters:
            if parameter.name not in values:
                continue
            value = values[parameter.name]
            self._check(parameter, value)
            if parameter.name == self.kind.key:
                continue
            if self.kind.uri:
                self._set_part(parameter, value)
            else:
                self._set(parameter, value)

    def _known(self, names: list[str]) -> None:
        """Refuses parameters that there are not."""
        for name in names:
            if self.kind.parameter(name) is None:
                raise ChangeRefused(f"{self.what}: there is no parameter '{name[:80]}'")

    def _check(self, parameter: Parameter, value: Value) -> None:
        if not parameter.editable:
            raise ChangeRefused(
                f"{self.what}: {parameter.name} is not changed by management: write it in {self.file}, and run"
                f" `atalanta reload`"
            )
        if parameter.name == self.kind.key and value not in (self.name, [self.name]):
            raise ChangeRefused(f"{self.what}: a name does not change: add one with the new name and remove this one")
        if parameter.required and not value:
            raise ChangeRefused(f"{self.what} needs {parameter.name}")
        if parameter.name == URI:
            present = [each.attributes.get(URI, "") for each in self.elements() if self._is_named(each)]
            for uri in (_one(value), *present):
                if names_secret(uri):
                    raise ChangeRefused(
                        f"{self.what}: its uri names a file or a password: write it in {self.file}, and run"
                        " `atalanta reload`"
                    )

    def _is_named(self, tag: Tag) -> bool:
        return tag.attributes.get(self.kind.key) == self.name

    def _set_part(self, parameter: Parameter, value: Value) -> None:
        """Changes a part of an address."""
        tag = self.own_element()
        if tag.children:
            raise ChangeRefused(
                f"{self.what} is written with <factory-class> and <param> ({self._place(tag)}): write it as"
                " tcp://host:port?parameter=value, then it can be changed here"
            )
        text = None if value is None or value == [] else _one(value)
        self.source = XmlSource(self.source.with_value(tag, with_part(tag.value, parameter.name, text)))

    def _set(self, parameter: Parameter, value: Value) -> None:
        tag = self.own_element()
        if tag.name != self.kind.tag or ("uri" in tag.attributes and self.kind.parameter("uri") is None):
            raise ChangeRefused(
                f"{self.what} is written as an address ({self._place(tag)}): write it as <{self.kind.tag}> with"
                " elements, then it can be changed here"
            )
        place = parameter.place
        if place.flag:
            self._set_flag(place, _one(value) == "true" if value is not None else False)
        elif place.many:
            self._set_list(parameter, None if value is None else _listed(value))
        elif place.element:
            self._set_element(parameter, None if value is None else _one(value))
        else:
            inner = self._inside(place.inside, value is not None)
            if inner is not None:
                text = None if value is None else _one(value)
                self.source = XmlSource(self.source.with_attribute(inner, place.attribute, text))

    def _inside(self, inside: tuple[str, ...], makes: bool) -> Tag | None:
        """Returns the element that holds a parameter; it is made if it is missing and `makes`."""
        tag = self.own_element()
        for name in inside:
            found = next(tag.all(name), None)
            if found is None:
                if not makes:
                    return None
                self._insert(tag, f"<{tag.prefix}{name}/>", name)
                return self._inside(inside, makes)
            tag = found
        return tag

    def _insert(self, parent: Tag, element: str, name: str) -> None:
        """Inserts an element behind those that come before it in the order of the parameters."""
        names = [each for one in self.kind.parameters for each in (*one.place.inside, one.place.element) if each]
        order = names.index(name)
        before = [each for each in parent.children if each.name in names and names.index(each.name) <= order]
        self.source = XmlSource(self.source.inserted(parent, before[-1] if before else None, element))

    def _found(self, parent: Tag, place: Place) -> Tag | None:
        """Returns the element of a parameter."""
        key, text = place.key
        for each in parent.all(place.element, *place.also):
            if not key or each.attributes.get(key) == text:
                return each
        return None

    def _set_element(self, parameter: Parameter, value: str | None) -> None:
        place = parameter.place
        parent = self._inside(place.inside, value is not None)
        found = None if parent is None else self._found(parent, place)
        if value is None:
            if found is not None:
                self.source = XmlSource(self.source.removed(found))
            return
        assert parent is not None
        if found is not None and found.children:
            where = self._place(found)
            raise ChangeRefused(f"{self.what}: <{found.name}> has elements of its own ({where}): {BY_HAND}")
        if found is not None:
            if place.attribute:
                self.source = XmlSource(self.source.with_attribute(found, place.attribute, value))
            else:
                self.source = XmlSource(self.source.with_value(found, value))
            return
        name = f"{parent.prefix}{place.element}"
        key = f" {place.key[0]}={quoted(place.key[1])}" if place.key[0] else ""
        if place.attribute:
            element = f"<{name}{key} {place.attribute}={quoted(value)}/>"
        else:
            element = f"<{name}{key}>{escape(value)}</{name}>"
        self._insert(parent, element, place.element)

    def _set_flag(self, place: Place, present: bool) -> None:
        parent = self._inside(place.inside, present)
        found = None if parent is None else self._found(parent, place)
        if found is not None and not present:
            self.source = XmlSource(self.source.removed(found))
        elif found is None and present:
            assert parent is not None
            self._insert(parent, f"<{parent.prefix}{place.element}/>", place.element)

    def _set_list(self, parameter: Parameter, wanted: list[str] | None) -> None:
        """Changes the elements of a list: those that stay are not touched, new ones come behind them."""
        place = parameter.place
        if wanted is None and place.inside:
            parent = self._inside(place.inside, False)
            if parent is not None:
                self.source = XmlSource(self.source.removed(parent))
            return
        values = wanted or []
        parent = self._inside(place.inside, True)
        assert parent is not None
        present = [each.attributes.get("connector-name") or each.value.strip() for each in parent.all(place.element)]
        kept = [each for each in present if each in values]
        in_order = kept == [each for each in values if each in kept]
        for at in reversed(range(len(present))):
            if present[at] not in values or not in_order:
                parent = self._inside(place.inside, True)
                assert parent is not None
                self.source = XmlSource(self.source.removed(list(parent.all(place.element))[at]))
        for value in values:
            if value in kept and in_order:
                continue
            parent = self._inside(place.inside, True)
            assert parent is not None
            name = f"{parent.prefix}{place.element}"
            self._insert(parent, f"<{name}>{escape(value)}</{name}>", place.element)


def names_secret(uri: str) -> bool:
    """Returns whether an option of an address, or of one in its list, names a file, a user or a password."""
    return "@" in uri or any(is_secret(name) for name in OPTION.findall(uri))


def _one(value: Value) -> str:
    """Returns a value as one text: the values of a list with commas."""
    return ",".join(value) if isinstance(value, list) else value or ""


def _listed(value: Value) -> list[str]:
    """Returns a value as a list, without repeats."""
    parts = value if isinstance(value, list) else (value or "").split(",")
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))
