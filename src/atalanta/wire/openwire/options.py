"""The options of a wire format: what both sides announce in WireFormatInfo, and what holds then.

Source: OpenWireFormat.renegotiateWireFormat and WireFormatInfo of activemq-client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.properties import Int
from atalanta.wire.openwire.commands.connections import WireFormatInfo
from atalanta.wire.openwire.encoding.cache import SIZE_DEFAULT
from atalanta.wire.openwire.encoding.primitives import decode_map, encode_map
from atalanta.wire.openwire.encoding.structure import VERSION_MAX

MAGIC: Final = b"ActiveMQ"
FRAME_BYTES_MAX: Final = 100 << 20
# The smallest limit of the other side under which the answers of a login fit; the least `maxFrameSize` of acceptors.
FRAME_BYTES_MIN: Final = 1_024
# Values of the map, none of which is a map or list; Java has the same limits.
PROPERTIES_MAX: Final = 64
PROPERTY_BYTES_MAX: Final = 512
INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
NS_PER_MS: Final = 1_000_000

FLAGS: Final = {
    "TcpNoDelayEnabled": "tcp_no_delay", "SizePrefixDisabled": "size_prefix_disabled",
    "CacheEnabled": "cache", "TightEncodingEnabled": "tight", "StackTraceEnabled": "stack_traces",
    "MaxFrameSizeEnabled": "frame_bytes_max_enabled",
}  # fmt: skip
NUMBERS: Final = {
    "CacheSize": "cache_size", "MaxFrameSize": "frame_bytes_max",
    "MaxInactivityDuration": "inactivity_ms",
    "MaxInactivityDurationInitalDelay": "inactivity_delay_ms",
}  # fmt: skip
TEXTS: Final = {
    "Host": "host", "ProviderName": "provider_name", "ProviderVersion": "provider_version",
    "PlatformDetails": "platform_details",
}  # fmt: skip


@dataclass(frozen=True)
class WireFormatOptions:
    """The options of one side, or of a connection. 0 as a number: no limit, or no inactivity check.

    `inactivity_ms` without anything received ends the connection. The check begins after `inactivity_delay_ms`.
    """

    version: int = VERSION_MAX
    cache: bool = True
    cache_size: int = 1024
    tight: bool = True
    size_prefix_disabled: bool = False
    stack_traces: bool = False
    tcp_no_delay: bool = True
    frame_bytes_max: int = FRAME_BYTES_MAX
    frame_bytes_max_enabled: bool = True
    inactivity_ms: int = 30_000
    inactivity_delay_ms: int = 10_000
    host: str | None = None
    provider_name: str | None = None
    provider_version: str | None = None
    platform_details: str | None = None

    def ttl_ns(self) -> int:
        """Returns how long the other side may be silent (ns); -1 without a limit."""
        return (self.inactivity_ms + self.inactivity_delay_ms) * NS_PER_MS if self.inactivity_ms > 0 else -1


# What both sides speak until they know the options of the other.
HANDSHAKE: Final = WireFormatOptions(version=1, cache=False, cache_size=0, tight=False)


def info_of(options: WireFormatOptions) -> WireFormatInfo:
    """Returns the command that announces the options."""
    values: dict[str, object] = {}
    for name, field in FLAGS.items():
        values[name] = bool(getattr(options, field))
    for name, field in NUMBERS.items():
        number = int(getattr(options, field))
        values[name] = number
        if name == "CacheSize":  # not in a conditional expression: beside an int, mypyc makes a plain int of it
            values[name] = Int(number)
    for name, field in TEXTS.items():
        text = getattr(options, field)
        if text is not None:
            values[name] = str(text)
    return WireFormatInfo(MAGIC, options.version, encode_map("marshalled_properties", values))


def options_of(info: WireFormatInfo) -> WireFormatOptions:
    """Returns what the other side announced: an option that it does not name is off.

    DecodeError: not readable, or no answer would fit its MaxFrameSize.
    """
    what = "WireFormatInfo.marshalled_properties"
    if info.magic != MAGIC:
        raise DecodeError("WireFormatInfo.magic", 0, f"{info.magic!r} is not {MAGIC!r}")
    data = info.marshalled_properties
    values = {} if data is None else decode_map(data, what, PROPERTIES_MAX, 0)
    found: dict[str, object] = {field: _flag(values, name) for name, field in FLAGS.items()}
    found |= {field: _number(values, name) for name, field in NUMBERS.items()}
    found |= {field: _text(values, name) for name, field in TEXTS.items()}
    return WireFormatOptions(version=info.version, **found)  # type: ignore[arg-type]


def _flag(values: dict[str, object], name: str) -> bool:
    value = values.get(name, False)
    if not isinstance(value, bool):
        raise DecodeError(f"WireFormatInfo.{name}", 0, f"{value!r} is no boolean")
    return value


def _number(values: dict[str, object], name: str) -> int:
    value = values.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DecodeError(f"WireFormatInfo.{name}", 0, f"{value!r} is no number")
    if name == "CacheSize" and not INT_MIN <= value <= INT_MAX:
        raise DecodeError(f"WireFormatInfo.{name}", 0, f"{value} is no int")
    if name == "MaxFrameSize" and 0 < value < FRAME_BYTES_MIN:
        raise DecodeError(f"WireFormatInfo.{name}", 0, f"{value} bytes: at least {FRAME_BYTES_MIN} are needed")
    return int(value)


def _text(values: dict[str, object], name: str) -> str | None:
    value = values.get(name)
    if value is None:
        return None
    text = str(value)
    if len(text) > PROPERTY_BYTES_MAX:
        raise DecodeError(f"WireFormatInfo.{name}", 0, f"{len(text)} characters")
    return text


def negotiated(ours: WireFormatOptions, theirs: WireFormatOptions) -> WireFormatOptions:
    """Returns what holds on the connection: the lower numbers, and the options that both sides have on.

    Texts are those of the other side. Stack traces need the other side's wish, as the rest does.
    """
    cache = ours.cache and theirs.cache
    # Java takes the lower one even if it is 0, and then its default.
    size = min(max(ours.cache_size, 0), max(theirs.cache_size, 0)) or SIZE_DEFAULT
    return WireFormatOptions(
        version=_lower(ours.version, theirs.version),
        cache=cache,
        cache_size=size if cache else 0,
        tight=ours.tight and theirs.tight,
        size_prefix_disabled=ours.size_prefix_disabled and theirs.size_prefix_disabled,
        stack_traces=ours.stack_traces and theirs.stack_traces,
        tcp_no_delay=ours.tcp_no_delay and theirs.tcp_no_delay,
        frame_bytes_max=_lower(ours.frame_bytes_max, theirs.frame_bytes_max),
        frame_bytes_max_enabled=ours.frame_bytes_max_enabled,
        inactivity_ms=max(min(ours.inactivity_ms, theirs.inactivity_ms), 0),
        inactivity_delay_ms=max(min(ours.inactivity_delay_ms, theirs.inactivity_delay_ms), 0),
        host=theirs.host,
        provider_name=theirs.provider_name,
        provider_version=theirs.provider_version,
        platform_details=theirs.platform_details,
    )


def _lower(one: int, other: int) -> int:
    """Returns the lower of two numbers that count only above 0."""
    return one if 0 < one < other or other <= 0 else other
