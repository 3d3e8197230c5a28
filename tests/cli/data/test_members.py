"""`atalanta data` on the folders of a replicated group, whose members were killed."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from atalanta.runtime.ha.group.member_status import read_status
from tests.app.group import Group
from tests.cli.calls import Cli
from tests.waiting import until

pytestmark = pytest.mark.process

PAGED = """<address-settings><address-setting match="#">
<max-size-messages>50</max-size-messages><address-full-policy>PAGE</address-full-policy>
</address-setting></address-settings>"""


def test_members_are_described_and_compared(tmp_path: Path) -> None:
    with Group(tmp_path, own="[ha]\nlease_ms = 500\n", more=PAGED) as group:
        group.start()
        cli = Cli(f"tcp://127.0.0.1:{group.primary.port}")
        cli("produce", "orders", "--count", "200", "--size", "2000")
        a, b = str(group.primary.data), str(group.backup.data)
        cli("data", "compare", a, b, status=75)
        until(
            lambda: (status := read_status(group.backup.data / "journal")) is not None and status.epoch == 1,
            "the state of the backup",
        )
        for each in reversed(group.members):  # the backup first: it would take over
            each.end(signal.SIGKILL)
        shown = json.loads(cli("data", "show", b, "--json"))
        assert shown["member"].startswith("backup1-") and shown["epochs"] == "1 from record 1"
        assert shown["last_state"].startswith("passive in epoch 1") and shown["last_active"].startswith("primary-")
        assert "member" in cli("data", "show", a)
        found = json.loads(cli("data", "compare", a, b, "--json"))
        assert found["blocks"] > 3 and found["first"] == 1 and found["different_pages"] == [] and found["pages"] > 0
        assert not (found["only_first"] and found["only_second"])
        text = cli("data", "compare", a, b)
        assert f"equal from record 1 to record {found['equal_through']:,}, byte for byte" in text
        page = min(group.backup.data.rglob("page-*.page"))
        data = bytearray(page.read_bytes())
        data[-10] ^= 1
        page.write_bytes(data)
        cli("data", "compare", a, b, status=1)
        assert "is different, or damaged" in cli.errors
        segment = min((group.backup.data / "journal").glob("journal-*.log"))
        data = bytearray(segment.read_bytes())
        data[len(bytes(data).rstrip(b"\0")) // 2] ^= 1
        segment.write_bytes(data)
        cli("data", "compare", a, b, status=65)
        assert segment.name in cli.errors
