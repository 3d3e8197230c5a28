"""The pipeline of docs/guide/pipelines.md over dead letters: rows with reasons, and counts for alarms.

Its user has the rights that the page names, and no others.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from atalanta.client import Message, blocking
from tests.broker_xml import write_users
from tests.source_tree import ROOT
from tests.spark.nodes import PASSWORD, USER, BrokerCluster
from tests.spark.pipeline.process import ATALANTA, PipelineProcess

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.process,
    pytest.mark.timeout(900),
]
PAGE = (ROOT / "docs" / "guide" / "pipelines.md").read_text(encoding="utf-8")
RECIPE = PAGE.partition("## Dead letters\n")[2].partition("\n## ")[0]
SETTING = """\
<address-setting match="orders">
  <dead-letter-address>dead</dead-letter-address>
  <expiry-address>dead</expiry-address>
  <max-delivery-attempts>1</max-delivery-attempts>
</address-setting>
"""
ORDERS = '<address name="orders"><anycast><queue name="orders"><durable>true</durable></queue></anycast></address>\n'
HOUR_MS = 3_600_000
FEW = "pipeline"  # the user of the pipeline


def give_rights(xml: Path) -> None:
    """Gives the pipeline's user the permissions of the page, by a role of its own."""
    table = PAGE.partition("## Rights\n")[2].partition("\n## ")[0]
    rights = [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(rights) == ["browse", "consume", "createAddress", "createDurableQueue", "send"]
    text = xml.read_text()
    for right in rights:
        old = f'<permission type="{right}" roles="all"/>'
        assert old in text
        text = text.replace(old, f'<permission type="{right}" roles="all,spark"/>')
    xml.write_text(text)
    write_users(xml, {USER: PASSWORD, FEW: PASSWORD}, {"all": USER, "spark": FEW})


def dead_letters(brokers: BrokerCluster) -> None:
    """Three orders that no consumer could process, two that expired, and a later one that moves the watermark."""
    with blocking.connect(f"tcp://{brokers.servers}", user=USER, password=PASSWORD) as connection:

        def refused(text: str, hour: int) -> None:
            with connection.producer("orders", routing="anycast") as producer:
                producer.send(Message(text=text, timestamp_ms=hour * HOUR_MS))
            with connection.transaction() as work:
                found = work.consumer("orders").receive(10)
                assert found is not None and found.text == text
                found.acknowledge()
                work.rollback()

        for number in range(3):
            refused(f"poison-{number}", 480_000)
        with connection.producer("orders", routing="anycast") as producer:
            for number in range(2):
                late = Message(
                    text=f"late-{number}", timestamp_ms=480_000 * HOUR_MS, expires_at_ms=1
                )
                producer.send(late)
        with connection.consumer("orders") as consumer:
            assert consumer.receive(0.5) is None
        refused("last", 480_002)


def test_dead_letters_are_rows_with_reasons_and_counted(tmp_path: Path) -> None:
    (found,) = re.findall(r"^```toml\n(.*?)^```", RECIPE, re.MULTILINE | re.DOTALL)
    text = found.replace("[[query]]\n", '[[query]]\ntrigger = "available_now"\n')
    (tmp_path / "dead.toml").write_text(text.replace('user = "spark"', f'user = "{FEW}"'))
    (tmp_path / "spark.password").write_text(PASSWORD)
    brokers = BrokerCluster(tmp_path / "brokers", 1)
    xml = brokers.nodes[0].broker_xml
    configured = xml.read_text().replace("</address-settings>", SETTING + "</address-settings>")
    xml.write_text(configured.replace("</addresses>", ORDERS + "</addresses>"))
    give_rights(xml)
    with brokers:
        login = ["--url", f"tcp://{brokers.servers}", "--user", USER, "--password", PASSWORD]
        for line in re.findall(r"^    atalanta (queue create [^\n#]*)", RECIPE, re.MULTILINE):
            subprocess.run([*ATALANTA, *line.split(), *login], check=True)
        dead_letters(brokers)
        assert brokers.waiting("dead::dead-kept") == 6
        command = (*ATALANTA, "pipeline", "dead.toml")
        PipelineProcess(tmp_path, {"SERVERS": brokers.servers}, *command).ends()
        waiting = {
            name: brokers.waiting(f"dead::dead-{name}") for name in ("kept", "rows", "counted")
        }
        assert waiting == {"kept": 6, "rows": 0, "counted": 0}
        counts = []
        with blocking.connect(f"tcp://{brokers.servers}", user=USER, password=PASSWORD) as one:
            consumer = one.consumer("dead-counts")
            while (message := consumer.receive(1)) is not None:
                counts.append(json.loads(str(message.text)))
    files = [str(path) for path in (tmp_path / "out" / "dead-letters").rglob("*.parquet")]
    rows = pd.concat([pd.read_parquet(file) for file in files])
    told = [(row.text, row.reason, row.original_address) for row in rows.itertuples()]
    assert Counter(told) == Counter(
        [(f"poison-{number}", "undelivered", "orders") for number in range(3)]
        + [(f"late-{number}", "expired", "orders") for number in range(2)]
        + [("last", "undelivered", "orders")]
    )
    assert sorted((one["queue"], one["reason"], one["messages"]) for one in counts) == [
        ("orders", "expired", 2),
        ("orders", "undelivered", 3),
    ]
