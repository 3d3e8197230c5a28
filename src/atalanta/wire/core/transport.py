"""TransportConfiguration: the connector of a node, as topologies and datagrams carry it."""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.message.encoding.digits import all_digits

NETTY_CONNECTOR_FACTORY: Final = (
    "org.apache.activemq.artemis.core.remoting.impl.netty.NettyConnectorFactory"
)
DEFAULT_HOST: Final = "localhost"
DEFAULT_PORT: Final = 61616

BOOLEAN: Final = 0
INT: Final = 1
LONG: Final = 2
STRING: Final = 3

PORT_DIGITS_MAX: Final = 5
PORT_MAX: Final = 65535
ENTRY_BYTES_MIN: Final = 6  # an empty key, a type, a boolean

ParameterValue = bool | int | str


class TransportConfiguration:
    """A named connector: `entries` are parameters in order, (type, value).

    Values that come from URLs are all text, the port too. Extra properties have the key prefix `$.EP.` and are among
    the others.
    """

    def __init__(self, name: str, factory: str = NETTY_CONNECTOR_FACTORY) -> None:
        self.name: str = name
        self.factory: str = factory
        self.entries: dict[str, tuple[int, ParameterValue]] = {}

    @staticmethod
    def tcp(name: str, host: str, port: int) -> TransportConfiguration:
        """Returns a connector to host and port, with the parameters in the form of URLs."""
        made = TransportConfiguration(name)
        made.put("port", str(port))
        made.put("host", host)
        return made

    def put(self, key: str, value: ParameterValue) -> None:
        """Sets a parameter; an int is sent as int32 if it fits, else as int64."""
        if isinstance(value, bool):
            code = BOOLEAN
        elif isinstance(value, int):
            code = INT if -(1 << 31) <= value < 1 << 31 else LONG
        else:
            code = STRING
        self.entries[key] = (code, value)

    def get(self, key: str) -> ParameterValue | None:
        entry = self.entries.get(key)
        return None if entry is None else entry[1]

    @property
    def host(self) -> str:
        value = self.get("host")
        return DEFAULT_HOST if value is None else str(value)

    @property
    def port(self) -> int:
        """Returns the port. ValueError if the parameter is not a number."""
        value = self.get("port")
        return DEFAULT_PORT if value is None else int(value)

    @property
    def address(self) -> str:
        """Returns `host:port`. ValueError if the port is not a number."""
        return f"{self.host}:{self.port}"

    @property
    def parameters(self) -> dict[str, str]:
        """Returns all parameters as text, booleans as Java writes them."""
        made: dict[str, str] = {}
        for key, (code, value) in self.entries.items():
            made[key] = str(value).lower() if code == BOOLEAN else str(value)
        return made

    def same_target(self, other: TransportConfiguration) -> bool:
        """Returns True if both have the same host and port; other parameters do not count."""
        return self.host == other.host and self.parameters.get("port") == other.parameters.get(
            "port"
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TransportConfiguration)
            and self.name == other.name
            and self.factory == other.factory
            and self.entries == other.entries
        )

    def __hash__(self) -> int:
        return hash((self.name, self.factory))

    def __repr__(self) -> str:
        return f"TransportConfiguration({self.name!r}, {self.parameters!r})"


def decode_transport(reader: Reader, what: str) -> TransportConfiguration:
    """Decodes a connector. DecodeError names the part of `what`."""
    made = TransportConfiguration(reader.string(f"{what}.name"), reader.string(f"{what}.factory"))
    for _ in range(reader.count(f"{what}.count", ENTRY_BYTES_MIN)):
        key = reader.string(f"{what}.key")
        field = f"{what}.{key}"
        code = reader.int8(field)
        value: ParameterValue
        if code == BOOLEAN:
            value = reader.boolean(field)
        elif code == INT:
            value = reader.int32(field)
        elif code == LONG:
            value = reader.int64(field)
        elif code == STRING:
            value = reader.string(field)
        else:
            raise DecodeError(field, int(reader.position) - 1, f"unknown parameter type {code}")
        if key == "port" and not _is_port(value):
            raise DecodeError(field, int(reader.position), f"{value!r} is not a port")
        made.entries[key] = (code, value)
    return made


def _is_port(value: ParameterValue) -> bool:
    """Returns True for a port number. Ports are checked on decoding, so later code need not check them."""
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        if not all_digits(value, PORT_DIGITS_MAX):
            return False
        value = int(value)
    return 0 <= value <= PORT_MAX


def encode_transport(writer: Writer, transport: TransportConfiguration) -> None:
    writer.string(transport.name)
    writer.string(transport.factory)
    writer.int32(len(transport.entries))
    for key, (code, value) in transport.entries.items():
        writer.string(key)
        writer.int8(code)
        if isinstance(value, str):
            writer.string(value)
        elif code == BOOLEAN:
            writer.boolean(bool(value))
        elif code == INT:
            writer.int32(value)
        else:
            writer.int64(value)
