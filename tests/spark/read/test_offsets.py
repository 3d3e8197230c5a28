"""Offsets: what the checkpoint keeps, and the ranges between two of them."""

from __future__ import annotations

import pytest

from atalanta.client import LostRange
from atalanta.spark.errors import SparkSourceError
from atalanta.spark.read.offsets import NodeOffset, Offset, Range, ranges, spans, split, split_all


def entry(sequence: int, incarnation: str = "i", begins_after: int | None = None) -> NodeOffset:
    return NodeOffset(incarnation, sequence, "h:1", begins_after)


def test_an_offset_survives_json_in_the_order_of_nodes() -> None:
    offset = Offset("q", {"b": entry(2), "a": entry(1, begins_after=0)})
    value = offset.to_json()
    assert list(value["nodes"]) == ["a", "b"]
    assert Offset.from_json(value, "q").entries == offset.entries


def test_a_checkpoint_of_another_queue_is_refused() -> None:
    with pytest.raises(SparkSourceError, match="a query over queue p, but the options say q"):
        Offset.from_json(Offset("p", {}).to_json(), "q")
    with pytest.raises(SparkSourceError, match="not one of this source"):
        Offset.from_json({"partition-1": 5}, "q")


def test_a_new_node_begins_where_its_entry_says() -> None:
    start = Offset("q", {"a": entry(5)})
    end = Offset("q", {"a": entry(5), "b": entry(30, begins_after=20)})
    assert ranges(Offset("q", {}), Offset("q", {"a": entry(5)})) == []
    assert ranges(start, end) == [Range("b", "i", "h:1", 20, 30)]


def test_a_new_incarnation_does_not_go_on_at_the_old_sequence() -> None:
    start = Offset("q", {"a": entry(500)})
    end = Offset("q", {"a": entry(3, "j", begins_after=0)})
    assert ranges(start, end) == [Range("a", "j", "h:1", 0, 3)]


def test_a_removed_node_is_kept_without_a_range() -> None:
    start = Offset("q", {"a": entry(5), "gone": entry(7)})
    end = Offset("q", {"a": entry(6, begins_after=5), "gone": entry(7)})
    assert [part.node_id for part in ranges(start, end)] == ["a"]


def test_a_first_batch_that_is_repeated_does_not_depend_on_the_initial_offset() -> None:
    end = Offset("q", {"a": entry(30, begins_after=20)})
    for initial in (20, 25, 40):  # `latest` moves on between the two
        assert ranges(Offset("q", {"a": entry(initial)}), end) == [Range("a", "i", "h:1", 20, 30)]


def test_pieces_join_up() -> None:
    pieces = split(Range("a", "i", "h:1", 10, 20), 3)
    assert [(piece.start, piece.end) for piece in pieces] == [(10, 13), (13, 16), (16, 20)]
    assert len(split(Range("a", "i", "h:1", 0, 2), 5)) == 2


def test_the_longer_range_gives_more_partitions() -> None:
    parts = split_all([Range("a", "i", "h:1", 0, 900), Range("b", "i", "h:2", 0, 100)], 5)
    assert sum(part.node_id == "a" for part in parts) == 5
    assert sum(part.node_id == "b" for part in parts) == 1


def test_an_endless_sequence_is_none_of_this_source() -> None:
    value = {"queue": "q", "nodes": {"a": {"incarnation": "i", "sequence": float("inf"), "server": "h"}}}
    with pytest.raises(SparkSourceError, match="not one of this source"):
        Offset.from_json(value, "q")


def test_an_error_names_some_lost_ranges_and_the_number_of_the_others() -> None:
    lost = [LostRange(at, at + 1, "moved") for at in range(0, 2_000, 2)]
    assert spans(lost[:2]) == "0 to 1 (moved); 2 to 3 (moved)"
    assert spans(lost).endswith("; 38 to 39 (moved); and 980 more ranges")


def test_no_piece_has_more_than_the_limit() -> None:
    wholes = [Range("a", "i", "h:1", 0, 900), Range("b", "i", "h:2", 0, 5)]
    parts = split_all(wholes, 1, 100)
    assert [part.end - part.start for part in parts] == [100] * 9 + [5]
    assert len(split_all(wholes, 20, 100)) >= 20
