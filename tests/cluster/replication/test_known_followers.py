"""The followers that an active node has seen, those that are away too."""

from __future__ import annotations

from atalanta.cluster.replication.active.known_followers import KnownFollowers


def test_who_went_is_still_known() -> None:
    known = KnownFollowers()
    known.on_member(0, "b-1", False, "h2:1")
    known.on_member(0, "c-1", False, "h3:1")
    known.on_gone(5, "c-1")
    assert known.seen() == ["b-1", "c-1"] and known.gone_for_ns(9, "c-1") == 4


def test_a_member_of_a_new_folder_takes_the_place_of_the_former_one() -> None:
    known = KnownFollowers()
    known.on_member(0, "b-1", False, "h2:1")
    known.on_member(0, "c-1", False)
    known.on_gone(5, "b-1")
    known.on_member(7, "b-2", False, "h2:1")
    known.on_member(7, "d-1", False)
    assert known.seen() == ["c-1", "b-2", "d-1"]
