"""Groups of two whose backup has a slow disk: it is waited for, or removed from the register, and never counted with
what it has not.
"""

from __future__ import annotations

import re

import pytest

from atalanta.runtime.process.build import build_name
from tests.stress.killed_pair import Pairs, ReplicatedPair
from tests.stress.node_process import Launcher
from tests.stress.slow_backup import SlowBackup

pytestmark = pytest.mark.process

# What a write of the backup takes: far below the 1.5 s after which it is removed, and above.
WAITED_S = 0.04
REMOVED_S = 3.0
BOTH = pytest.mark.parametrize("both", [False, True], ids=["primary", "both"])


@pytest.fixture(scope="module")
def groups(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    return Pairs(launcher, tmp_path_factory.mktemp("groups"), kind=ReplicatedPair)


def tried(groups: Pairs, slow_s: float, both: bool) -> None:
    """Loses the primary of a group with a slow backup, or both; whoever serves has everything."""
    slow = SlowBackup(groups, slow_s)
    try:
        slow.lose_primary(both)
        assert slow.removed() == (slow_s == REMOVED_S), slow.pair.log()
        slow.check()
    finally:
        slow.pair.close()


@BOTH
def test_a_backup_that_was_removed_does_not_serve_until_the_primary_is_back(groups: Pairs, both: bool) -> None:
    tried(groups, REMOVED_S, both)


@BOTH
def test_a_slow_backup_that_was_waited_for_has_everything(groups: Pairs, both: bool) -> None:
    tried(groups, WAITED_S, both)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@BOTH
@pytest.mark.parametrize("slow_s", [WAITED_S, REMOVED_S])
def test_10_slow_backups(groups: Pairs, slow_s: float, both: bool) -> None:
    for _ in range(10):
        tried(groups, slow_s, both)


@pytest.mark.skipif(build_name() == "compiled", reason="methods of a compiled class cannot be replaced")
def test_a_backup_that_is_dropped_without_the_register_is_found(groups: Pairs) -> None:
    """The planted fault: the primary goes on alone, and the register says that the backup is in sync."""
    slow = SlowBackup(groups, REMOVED_S, unregistered=True)
    try:
        slow.lose_primary(both=True)
        assert slow.serves_alone(), slow.pair.log()
        assert re.search("is lost, it was (confirmed|prepared)|came back, its acknowledgement", slow.lost())
    finally:
        slow.pair.close()
