"""The wire format of a connection: commands to frames and back."""

from __future__ import annotations

from librt.strings import BytesWriter, write_i32_be
from mypy_extensions import i32, i64

from atalanta.wire.openwire.commands.table import kinds
from atalanta.wire.openwire.encoding.cache import ReadCache, UnknownEntries, WriteCache
from atalanta.wire.openwire.encoding.frame_pattern import FramePattern, VariableField
from atalanta.wire.openwire.encoding.reader import LooseReader, TightReader
from atalanta.wire.openwire.encoding.structure import DataStructure, EncodeError
from atalanta.wire.openwire.encoding.writer import LooseWriter, TightWriter
from atalanta.wire.openwire.options import WireFormatOptions


class WireFormat:
    """Encodes and decodes with the negotiated options. Both directions have a cache: the order of frames matters."""

    def __init__(self, options: WireFormatOptions) -> None:
        self.options = options
        version, traces = options.version, options.stack_traces
        caching = options.cache
        read_cache = ReadCache(options.cache_size) if caching else None
        write_cache = WriteCache(options.cache_size) if caching else None
        self._write_cache = write_cache
        known = kinds(version)
        if options.tight:
            self._reader: LooseReader = TightReader(version, known, read_cache, traces)
            self._writer: LooseWriter = TightWriter(version, write_cache, traces)
        else:
            self._reader = LooseReader(version, known, read_cache, traces)
            self._writer = LooseWriter(version, write_cache, traces)
        self._size_prefix: bool = not options.size_prefix_disabled
        self._bytes_max: i64 = options.frame_bytes_max

    def encode(self, command: DataStructure) -> bytes:
        """Returns the frame, as `write` writes it."""
        out = BytesWriter()
        self.write(command, out)
        return out.getvalue()

    def write(self, command: DataStructure, out: BytesWriter) -> None:
        """Writes the frame, with an int32 length unless both sides do without.

        EncodeError: a value does not fit, or the frame is longer than the other side accepts. Nothing is written then,
        and the connection goes on.
        """
        size = self._writer.command(command)
        if size > self._bytes_max:
            self._writer.undo()
            name = command.__class__.__name__
            raise EncodeError(name, f"{size} bytes: at most {self._bytes_max} are accepted")
        if self._size_prefix:
            write_i32_be(out, i32(size))
        self._writer.copy_to(out)

    def pattern(self, frame: bytes) -> FramePattern | None:
        """Returns the pattern of a written frame without its length. None: it has new entries of the cache.

        The number of the command stays: the broker's have none.
        """
        options = self.options
        cache = UnknownEntries(options.cache_size) if options.cache else None
        kind = TightReader if options.tight else LooseReader
        reader = kind(options.version, kinds(options.version), cache, options.stack_traces)
        fields = reader.variable_fields(frame, 0, len(frame))[1:]
        return FramePattern(frame, fields) if reader.cache_changes() == 0 else None

    def write_by(
        self,
        pattern: FramePattern,
        out: BytesWriter,
        sequence: i64,
        broker_sequence: i64,
        expiration_ms: i64,
        timestamp_ms: i64,
        content: bytes,
    ) -> bool:
        """Writes a delivery by a pattern of this format. Returns False if it does not fit: nothing is written then."""
        return pattern.write(
            out,
            sequence,
            broker_sequence,
            expiration_ms,
            timestamp_ms,
            content,
            self._bytes_max,
            self._size_prefix,
        )

    def write_cache_removals(self) -> int:
        """Returns how often an index of the frames that are written may have got another meaning."""
        return 0 if self._write_cache is None else self._write_cache.removals

    def read_cache_changes(self) -> int:
        """Returns how often an index of the frames that are read has got a meaning."""
        return self._reader.cache_changes()

    def variable_fields(self, data: bytes, start: i64, end: i64) -> list[VariableField]:
        """Returns the fields in which other frames of the sender differ from `data[start:end]`."""
        return self._reader.variable_fields(data, start, end)

    def decode(self, data: bytes, start: i64 = 0, end: i64 = -1) -> DataStructure | None:
        """Returns the command in `data[start:end]`, the bytes behind the length. None: Java's null.

        After a DecodeError the connection must be closed: the caches of both sides may differ.
        """
        return self._reader.command(data, start, len(data) if end < 0 else end)
