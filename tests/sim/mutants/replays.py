"""Retained messages of a log view."""

from __future__ import annotations

from atalanta.kernel.log.log_views import LogViews
from atalanta.kernel.queue.paging.retained_ranges import RetainedRanges
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.reference import Reference
from tests.sim.mutants.patching import Patch


def retained_for_half_the_time(patch: Patch) -> None:
    due = RetainedRanges.due

    def early(self: RetainedRanges, now_ms: int, limit: int) -> int:
        return due(self, now_ms + self.age_ms // 2, limit)

    patch.setattr(RetainedRanges, "due", early)


def unread_replay_is_released(patch: Patch) -> None:
    due = RetainedRanges.due

    def careless(self: RetainedRanges, now_ms: int, limit: int) -> int:
        return due(self, now_ms, 1 << 62)

    patch.setattr(RetainedRanges, "due", careless)


def past_has_a_gap(patch: Patch) -> None:
    after = LogViews._after

    def with_gaps(self: LogViews, queue: Queue, sequence: int) -> list[Reference]:
        found = after(self, queue, sequence)
        return [each for each in found if each.sequence > queue.log.acked_through or each.sequence % 5] or found

    patch.setattr(LogViews, "_after", with_gaps)
