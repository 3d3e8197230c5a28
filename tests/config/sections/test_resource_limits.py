"""`<resource-limit-settings>`."""

from __future__ import annotations

from pathlib import Path

from atalanta.kernel.security.resource_limits import ResourceLimit
from tests.config.core_xml import problems, read


def setting(match: str, inner: str = "") -> str:
    return f'<resource-limit-setting match="{match}">{inner}</resource-limit-setting>'


def section(*settings: str) -> str:
    return "<resource-limit-settings>" + "\n".join(settings) + "</resource-limit-settings>"


def test_both_names_of_the_limit_of_sessions(tmp_path: Path) -> None:
    configuration = read(
        tmp_path,
        section(
            setting("old", "<max-connections>5</max-connections>"),
            setting("new", "<max-sessions>6</max-sessions><max-queues>3</max-queues>"),
            setting("any"),
        ),
    )
    assert configuration.broker.resource_limits == [
        ResourceLimit("old", 5, -1),
        ResourceLimit("new", 6, 3),
        ResourceLimit("any", -1, -1),
    ]
    assert [entry.name for entry in configuration.unsupported] == []


def test_what_is_wrong_is_named_with_its_line(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        section(
            setting(""), setting("u"), setting("u"), setting("v", "<max-queues>-2</max-queues>")
        ),
    )
    assert [line for line, _, _ in found] == [1, 3, 4]
    assert "needs a match" in found[0][1]
    assert "'u' is given twice" in found[1][1]
