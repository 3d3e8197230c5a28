"""The configuration that a node tells: what is not as it should be is an error with a name, or left out."""

from __future__ import annotations

import json

import pytest

from atalanta.console.configuration.change_answer import read_answer, read_recorded
from atalanta.console.configuration.node_configuration import read_configuration
from atalanta.console.nodes.failures import MalformedAnswer


def test_elements_and_parameters() -> None:
    told = {
        "file": "broker.xml", "digest": "d", "writable": True, "permitted": True,
        "parameters": {
            "bridge": [
                {"name": "name", "required": True},
                {"name": "static-connectors", "list": True},
                {"name": "ha", "default": False, "values": ["true", "false"]},
            ]
        },
        "elements": [
            {"kind": "bridge", "name": "b", "line": 3,
             "values": {"name": "b", "static-connectors": "a, b", "ha": True}},
            {"kind": "bridge", "name": "c", "line": 0, "values": {"static-connectors": ["x"]}, "from": "runtime"},
        ],
    }  # fmt: skip
    found = read_configuration(json.dumps(told))
    assert [each.name for each in found.parameters["bridge"]] == ["static-connectors", "ha"]
    assert found.parameters["bridge"][1].default == "false"
    first, second = found.elements
    assert first.values == {"static-connectors": "a\nb", "ha": "true"} and first.line == 3
    assert second.values == {"static-connectors": "x"} and second.line is None and second.origin == "runtime"


@pytest.mark.parametrize("answer", ["", "[]", "{", None, 7, "[" * 100_000, '"x"'])
def test_other_answers_are_refused(answer: object) -> None:
    with pytest.raises(MalformedAnswer, match="listConfiguration"):
        read_configuration(answer)
    with pytest.raises(MalformedAnswer):
        read_answer(answer, "previewConfiguration")


def test_fields_of_other_types_are_left_out() -> None:
    element: dict[str, object] = {"kind": 1, "name": None, "values": [], "used_by": "x", "line": "y"}
    odd = {"elements": [7, element], "parameters": {"a": 1}}
    found = read_configuration(json.dumps(odd))
    assert found.elements[0].kind == "1" and found.elements[0].values == {} and found.parameters == {"a": []}
    answer = read_answer('{"problems": [1, {"line": 3}], "now": "x", "picture": [], "written": "yes"}', "x")
    assert answer.problems[0].line == "3" and answer.now == () and not answer.written and answer.picture == []
    assert read_recorded('[1, {"id": 3, "changes": [{}], "at": "x"}]')[0].id == "3"
    assert read_recorded([{}] * 100)[20:] == []
