"""The view that consoles have of the configuration: its elements, their parameters, and whether they can be changed."""

from __future__ import annotations

import os

from atalanta.app.changes.configuration_changes import ConfigurationChanges
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.changes.elements import (
    RUNTIME,
    ConfigurationElement,
    classic_elements,
    elements_of,
)
from atalanta.config.changes.kinds import kinds
from atalanta.config.changes.restart import fixed_elements
from atalanta.config.changes.texts import BROKER, CLASSIC, Texts
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.xml.convert import converted_tree


def listing(changes: ConfigurationChanges) -> dict[str, object]:
    """Returns the result of listConfiguration; management adds what runs. ChangeRefused if a file cannot be read."""
    texts = changes.texts()
    found = listed_elements(texts, changes.started)
    if changes.kept:
        written = {each.key: each.values for each in listed_elements(changes.written(), changes.started)}
        for element in found:
            if written.get(element.key) != element.values:
                element.origin = RUNTIME
    fixed = fixed_elements(changes.started)
    for element in found:
        element.fixed = fixed.get(element.key, "")
        if texts.form != BROKER and element.kind not in texts.kinds:
            element.fixed = f"management does not change a {element.kind} of an {texts.form}"
    why = changes.why_off(texts) or changes.why_not_written(texts, [texts.path])
    return {
        "file": texts.path.name,
        "form": texts.form,
        "digest": texts.digest,
        "changeable": not changes.why_off(texts),
        "writable": not why,
        "why": why,
        "permitted": False,
        "elements": [each.as_json() for each in found],
        "parameters": {
            name: [each.as_json() for each in kind.parameters] for name, kind in {**kinds(), **texts.kinds}.items()
        },
    }


def listed_elements(texts: Texts, started: Configuration) -> list[ConfigurationElement]:
    """Returns the elements of the files. Placeholders are shown as they are written."""
    values = dict(os.environ)
    try:
        networks = read_broker_xml(
            texts.path, values, alone=started.told_alone, contents=texts.contents_all()
        ).networks.connectors
    except ConfigError:
        networks = started.networks.connectors  # the files have problems, which a reload tells
    form_file = texts.path.name if texts.form != BROKER else texts.own_path.name
    tree = texts.tree
    if texts.form != BROKER:
        tree = converted_tree(texts.path, started.values, texts.contents_all())
    found = elements_of(tree, networks, form_file)
    if texts.form != CLASSIC or texts.tree is None:
        return found
    return [*(each for each in found if each.kind not in texts.kinds), *classic_elements(texts.tree)]
