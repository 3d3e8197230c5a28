"""A reload names what it does not take over."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.restart import needs_restart

DATA = Path(__file__).parent / "data" / "artemis-create.xml"


def changed(folder: Path, old: str, new: str) -> tuple[Configuration, Configuration]:
    text = DATA.read_text(encoding="utf-8")
    assert old in text
    path = folder / "broker.xml"
    path.write_text(text, encoding="utf-8")
    before = read_broker_xml(path)
    path.write_text(text.replace(old, new), encoding="utf-8")
    return before, read_broker_xml(path)


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("<name>node-a</name>", "<name>node-a</name>", []),
        ('<queue name="DLQ" />', '<queue name="DLQ" /><queue name="more" />', []),
        ("<max-size-bytes>-1", "<max-size-bytes>100", []),
        ('type="send" roles="amq"', 'type="send" roles="amq,more"', []),
        ("<name>node-a</name>", "<name>node-b</name>", ["name"]),
        ("<cluster-password>peer-secret", "<cluster-password>other", ["cluster-password"]),
        ("tcp://0.0.0.0:61616", "tcp://0.0.0.0:61617", []),
        ("tcp://0.0.0.0:61616?", "tcp://0.0.0.0:61616?securityDomain=visitors;", []),
        ("tcp://127.0.0.1:61616<", "tcp://127.0.0.1:61617<", ["connectors"]),
        ("<journal-file-size>10M", "<journal-file-size>20M", ["journal-file-size"]),
        ("<max-hops>1", "<max-hops>2", ["cluster-connections"]),
        ("<broadcast-period>5000", "<broadcast-period>6000", []),
        ("<refresh-timeout>10000", "<refresh-timeout>6000", []),
        ("<message-load-balancing>ON_DEMAND", "<message-load-balancing>STRICT", []),
        ("<connectors>", '<connectors><connector name="more">tcp://127.0.0.1:1</connector>', []),
    ],
)
def test_what_counts_after_a_restart_only(
    tmp_path: Path, old: str, new: str, names: list[str]
) -> None:
    assert needs_restart(*changed(tmp_path, old, new)) == names
