"""What `atalanta create` writes, a real Artemis starts with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from atalanta.config.instance import Instance, create_instance
from atalanta.kernel.security.password import hash_password
from tests.interop.harness.jms import run_scenarios
from tests.interop.harness.lineup import KINDS, Lineup

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.mark.parametrize("clustered", [True, False], ids=["member", "alone"])
@pytest.mark.parametrize("kind", KINDS)
def test_both_kinds_start_with_a_created_instance(
    kind: str, clustered: bool, brokers: Lineup, tmp_path: Path
) -> None:
    node = brokers.single(kind)
    stored = hash_password("admin", b"salt" * 8)
    instance = Instance("made", "127.0.0.1", node.port, "admin", stored, clustered=clustered)
    instance.cluster_user, instance.cluster_password = "peer", "secret"
    create_instance(tmp_path / "made", instance)
    for path in (tmp_path / "made" / "etc").iterdir():
        shutil.copy(path, node.folder / "etc" / path.name)
    node.start()
    results, output = run_scenarios(node.url, "--only", "bodies.text,security.wrong*")
    assert len(results) == 2 and not any(results.values()), output
    node.stop()
