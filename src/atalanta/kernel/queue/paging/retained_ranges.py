"""The retained ranges of a queue: acknowledged by its log-view reader, and kept for a replay within limits."""

from __future__ import annotations

from atalanta.message.encoding.buffer import Reader, Writer


class RetainedRange:
    """Messages acknowledged together, up to the sequence `end`, at `at_ms` or shortly before."""

    def __init__(self, at_ms: int, end: int, messages: int, size: int) -> None:
        self.at_ms = at_ms
        self.end = end
        self.messages = messages
        self.bytes = size


class RetainedRanges:
    """The ranges behind `released_through`, and their limits, 0 for none: the base of RetainedMessages.

    `replay_from`: the sequence up to which the group `replay_group` has read them again; -1 without a replay.
    """

    def __init__(self, released_through: int) -> None:
        self.age_ms: int = 0
        self.bytes_max: int = 0
        self.released_through = released_through
        self.replay_from: int = -1
        self.replay_group: str = ""
        self.ranges: list[RetainedRange] = []

    def limit(self, age_ms: int, bytes_max: int) -> None:
        """Sets the limits."""
        self.age_ms = age_ms
        self.bytes_max = bytes_max

    def add_range(self, added: RetainedRange, merged_bytes: int) -> None:
        """Adds a range, or joins it to the one before if both have at most `merged_bytes`.

        With a limit of age only ranges of the same time are joined.
        """
        ranges = self.ranges
        if ranges:
            last = ranges[len(ranges) - 1]
            alike = self.age_ms == 0 or last.at_ms == added.at_ms
            if alike and last.bytes + added.bytes <= merged_bytes:
                last.at_ms = added.at_ms
                last.end = added.end
                last.messages += added.messages
                last.bytes += added.bytes
                return
        ranges.append(added)

    def end(self) -> int:
        """Returns the last retained sequence."""
        return self.ranges[len(self.ranges) - 1].end if self.ranges else self.released_through

    def messages(self) -> int:
        """Returns the number of retained messages."""
        return sum(each.messages for each in self.ranges)

    def total_bytes(self) -> int:
        """Returns the bytes of the retained messages."""
        return sum(each.bytes for each in self.ranges)

    def acknowledged_before(self, timestamp_ms: int) -> int:
        """Returns the end of the ranges that were acknowledged before that time."""
        end = self.released_through
        for each in self.ranges:
            if each.at_ms >= timestamp_ms:
                break
            end = each.end
        return end

    def due(self, now_ms: int, limit: int) -> int:
        """Returns the end of the ranges that are too old or too many; none beyond the sequence `limit`."""
        end = self.released_through
        size = self.total_bytes()
        for each in self.ranges:
            old = self.age_ms > 0 and each.at_ms + self.age_ms <= now_ms
            many = self.bytes_max > 0 and size - each.bytes >= self.bytes_max
            if each.end > limit or not (old or many):
                break
            size -= each.bytes
            end = each.end
        return end

    def release_ranges(self, end: int) -> None:
        """Removes the ranges up to `end`, and a replay that has not come so far."""
        self.released_through = max(self.released_through, end)
        self.ranges = [each for each in self.ranges if each.end > end]
        if 0 <= self.replay_from < end:
            self.end_replay()

    # -- the replay -----------------------------------------------------------------------------
    def replay(self, group: str, sequence: int) -> None:
        """Starts a replay behind `sequence`, or records its progress; it ends with the last range."""
        if sequence >= self.end():
            self.end_replay()
        else:
            self.replay_from = sequence
            self.replay_group = group

    def end_replay(self) -> None:
        """Ends the replay."""
        self.replay_from = -1
        self.replay_group = ""

    # -- the journal ----------------------------------------------------------------------------
    def encode(self) -> bytes:
        """Encodes the limits, ranges and replay: the value of a VALUE record."""
        writer = Writer()
        for value in (self.age_ms, self.bytes_max, self.released_through, self.replay_from):
            writer.int64(value)
        writer.simple_string(self.replay_group)
        writer.int32(len(self.ranges))
        for each in self.ranges:
            for value in (each.at_ms, each.end, each.messages, each.bytes):
                writer.int64(value)
        return writer.getvalue()

    def restore(self, data: bytes, acked_through: int) -> None:
        """Takes over what `encode` wrote. DecodeError names the field.

        Ranges that do not end at the acknowledged sequence are from before an older version ran: they are dropped.
        """
        reader = Reader(data)
        self.age_ms = reader.int64("retained.age")
        self.bytes_max = reader.int64("retained.bytes_max")
        self.released_through = reader.int64("retained.released")
        self.replay_from = reader.int64("retained.replay")
        self.replay_group = reader.simple_string("retained.group")
        for _ in range(reader.count("retained.ranges", 32)):
            at_ms = reader.int64("retained.at")
            end = reader.int64("retained.end")
            messages = reader.int64("retained.messages")
            self.ranges.append(RetainedRange(at_ms, end, messages, reader.int64("retained.bytes")))
        if self.end() != acked_through:
            self.ranges = []
            self.released_through = acked_through
            self.end_replay()
