"""What a policy or `<systemUsage>` says of senders without room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.activemq.classic_files import classic_file, findings, read, settings

POLICY = "<destinationPolicy><policyMap><policyEntries>{}</policyEntries></policyMap></destinationPolicy>"
USAGE = "<systemUsage><systemUsage {}/></systemUsage>"
CURSOR = "<pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>"


@pytest.mark.parametrize(
    ("usage", "policy", "of_policy", "of_others"),
    [
        ("", "", ("BLOCK", "BLOCK", -1), ("PAGE", "BLOCK", -1)),
        ("", 'sendFailIfNoSpace="true"', ("FAIL", "FAIL", -1), ("PAGE", "BLOCK", -1)),
        ("", 'sendFailIfNoSpaceAfterTimeout="3000"', ("BLOCK", "BLOCK", 3_000), ("PAGE", "BLOCK", -1)),
        ('sendFailIfNoSpace="true"', "", ("FAIL", "FAIL", -1), ("PAGE", "FAIL", -1)),
        ('sendFailIfNoSpace="true"', 'sendFailIfNoSpace="false"', ("BLOCK", "BLOCK", -1), ("PAGE", "FAIL", -1)),
        ('sendFailIfNoSpaceAfterTimeout="3000"', "", ("BLOCK", "BLOCK", 3_000), ("PAGE", "BLOCK", 3_000)),
        (
            'sendFailIfNoSpaceAfterTimeout="3000"',
            'sendFailIfNoSpaceAfterTimeout="0"',
            ("BLOCK", "BLOCK", -1),
            ("PAGE", "BLOCK", 3_000),
        ),
    ],
)
def test_a_send_without_room_waits_or_fails(
    tmp_path: Path,
    usage: str,
    policy: str,
    of_policy: tuple[str, str, int],
    of_others: tuple[str, str, int],
) -> None:
    inside = USAGE.format(usage) + POLICY.format(f'<policyEntry queue="orders" {policy}>{CURSOR}</policyEntry>')
    configuration = read(classic_file(tmp_path, inside))
    for name, expected in (("orders", of_policy), ("other", of_others)):
        found = settings(configuration, name)
        assert (found.address_full_policy, found.disk_full_policy or "BLOCK", found.blocked_send_timeout_ms) == expected
    assert not findings(configuration)
