"""Time lines: rings of fixed size, gaps where nobody told anything, queues that somebody looks at."""

from __future__ import annotations

import math

from atalanta.console.nodes.time_lines import (
    IN,
    MESSAGES,
    OUT,
    POINTS_MAX,
    QUEUES_MAX,
    SPAN_S,
    STEP_S,
    WATCH_S,
    LineGroup,
    QueueLines,
    TimeLines,
)

NODES = frozenset(["a:1", "b:1"])


def test_a_ring_keeps_two_hours_in_their_order() -> None:
    group = LineGroup((IN, MESSAGES))
    for number in range(POINTS_MAX + 100):
        assert group.add(number * STEP_S, {IN: number, MESSAGES: None})
        assert not group.add(number * STEP_S + STEP_S / 2, {IN: -1})
    points = group.points(IN, 0)
    assert [value for _, value in points] == list(range(100, POINTS_MAX + 100))
    assert points[0][0] == 100 * STEP_S
    assert [at for at, _ in points] == sorted(at for at, _ in points)
    assert all(math.isnan(value) for _, value in group.points(MESSAGES, 0))
    assert len(group.points(IN, points[-1][0] - 60)) == 7


def test_rates_of_a_queue_need_two_samples_of_the_same_nodes() -> None:
    queue = QueueLines()
    queue.note(100, NODES, 5, 1, 1_000, 900)
    queue.note(110, NODES, 7, 1, 1_100, 950)
    queue.note(120, frozenset(["a:1"]), 3, 1, 500, 400)
    queue.note(130, frozenset(["a:1"]), 3, 1, 10, 410)  # a counter was reset
    came = [value for _, value in queue.lines.points(IN, 0)]
    went = [value for _, value in queue.lines.points(OUT, 0)]
    assert [math.isnan(value) for value in came] == [True, False, True, True]
    assert [math.isnan(value) for value in went] == [True, False, True, False]
    assert (came[1], went[1], went[3]) == (10, 5, 1)


def test_watched_queues_are_few_and_forgotten() -> None:
    lines = TimeLines()
    for number in range(QUEUES_MAX + 5):
        lines.watch(f"q{number}", 1_000 + number)
    assert len(lines.queues) == QUEUES_MAX and "q0" not in lines.queues
    kept = lines.watch("q7", 1_100)
    for number in range(QUEUES_MAX - 1):
        lines.watch(f"r{number}", 1_200)
    assert lines.queues["q7"] is kept and len(lines.queues) == QUEUES_MAX
    assert "q7" not in lines.watched(1_100 + WATCH_S) and "r1" in lines.watched(1_100 + WATCH_S)
    assert lines.watched(1_300 + SPAN_S) == [] and not lines.queues


def test_nodes_that_left_are_forgotten() -> None:
    lines = TimeLines()
    lines.add(0, {IN: 1}, {"a": {IN: 1}, "b": {IN: 2}})
    lines.add(SPAN_S + STEP_S, {IN: 1}, {"a": {IN: 1}})
    assert list(lines.nodes) == ["a"]
