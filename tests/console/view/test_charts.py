"""Charts: paths of numbers, with gaps, bounded."""

from __future__ import annotations

import re

from atalanta.console.nodes.time_lines import CLUSTER_LINES, IN, MESSAGES, OUT, LineGroup
from atalanta.console.view.charts import BUCKETS, CLUSTER_CHARTS, charts, nice_top, path_of


def test_scales_end_at_round_numbers() -> None:
    assert [nice_top(each) for each in (0, 0.03, 1, 1.1, 4, 7, 10, 99, 100, 101)] == [
        1, 0.05, 1, 2, 5, 10, 10, 100, 100, 200,
    ]  # fmt: skip


def test_a_path_is_bounded_and_broken_at_gaps() -> None:
    points = [(float(at), float(at % 7)) for at in range(0, 7_200, 10)]
    path = path_of(points, 0, 7_200, 10)
    assert re.fullmatch(r"M[0-9.]+,[0-9.]+(L[0-9.]+,[0-9.]+)*", path)
    assert path.count("L") <= BUCKETS
    del points[100:200]
    assert path_of(points, 0, 7_200, 10).count("M") == 2
    broken = [(0.0, 1.0), (10.0, float("nan")), (20.0, 1.0), (30.0, 1.0)]
    assert path_of(broken, 0, 600, 10).count("M") == 2
    assert path_of([(5.0, 1.0)], 0, 600, 10).endswith("h1")
    assert path_of([], 0, 600, 10) == ""


def test_a_chart_says_in_words_what_it_shows() -> None:
    group = LineGroup(CLUSTER_LINES)
    assert charts(CLUSTER_CHARTS, group, 1_000) == []
    for number in range(10):
        group.add(1_000 + 10 * number, {IN: number, OUT: None, MESSAGES: 100 - number})
    found = charts(CLUSTER_CHARTS, group, 1_100)
    assert [each.title for each in found] == ["Messages a second", "Messages waiting"]
    assert [line.label for line in found[0].lines] == ["in"]
    assert "in 9.0/s now, from 0/s to 9.0/s" in found[0].words
    assert "messages 91 now, from 91 to 100" in found[1].words
