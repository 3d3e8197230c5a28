"""Queues that may take more memory than was meant: told at start and by `atalanta check`."""

from __future__ import annotations

from pathlib import Path

from atalanta.config.broker_xml import read_broker_xml
from tests.broker_process import write_broker_xml

QUEUES = """
<addresses><address name="a"><anycast>
  <queue name="plain"/><queue name="ring" ring-size="10"/><queue name="table" last-value-key="k"/>
</anycast></address></addresses>
<address-settings><address-setting match="#">
  <address-full-policy>{policy}</address-full-policy>
</address-setting></address-settings>
"""


def told(folder: Path, policy: str) -> list[str]:
    path = write_broker_xml(folder, 61616, more=QUEUES.format(policy=policy))
    return [text for text in read_broker_xml(path).warnings if "do not page" in text]


def test_rings_and_last_values_that_should_page_are_named(tmp_path: Path) -> None:
    (text,) = told(tmp_path, "PAGE")
    assert "'ring', 'table' stay in memory" in text and "plain" not in text
    assert told(tmp_path, "BLOCK") == []
