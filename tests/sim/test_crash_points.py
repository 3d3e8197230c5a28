"""A node that dies at any of its commits keeps every promise when it is back."""

from __future__ import annotations

import pytest

from tests.share import in_one_build
from tests.sim.crash_points import commits_of, violations

# Nodes of the cluster, whether messages go through page files, and every how many commits the first node crashes.
CRASHES = [
    (1, True, 2),
    (1, False, 3),
    (2, False, 24),
    pytest.param(1, False, 1, marks=pytest.mark.soak),
    pytest.param(2, False, 2, marks=pytest.mark.soak),
]


@in_one_build
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("nodes", "pages", "step"), CRASHES)
def test_no_crash_point_breaks_a_promise(nodes: int, pages: bool, step: int) -> None:
    assert commits_of(nodes, pages) > 50
    reports = list(violations(nodes, pages, step))
    assert not reports, "\n\n".join(reports)
