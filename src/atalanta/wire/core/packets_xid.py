"""Transaction ids of XA (utils/XidCodecSupport.java)."""

from __future__ import annotations

from atalanta.kernel.buffer import Reader, Writer


class Xid:
    """Identifies one branch of a distributed transaction; a value, usable as a key."""

    def __init__(
        self, format_id: int, branch_qualifier: bytes, global_transaction_id: bytes
    ) -> None:
        self.format_id: int = format_id
        self.branch_qualifier: bytes = branch_qualifier
        self.global_transaction_id: bytes = global_transaction_id

    def _key(self) -> tuple[int, bytes, bytes]:
        return (self.format_id, self.branch_qualifier, self.global_transaction_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Xid) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        branch = self.branch_qualifier.hex()
        return f"Xid({self.format_id}, {self.global_transaction_id.hex()}:{branch})"


def decode_xid(reader: Reader, what: str) -> Xid:
    """DecodeError names `what`."""
    format_id = reader.int32(f"{what}.format_id")
    branch = reader.blob(f"{what}.branch_qualifier")
    return Xid(format_id, branch, reader.blob(f"{what}.global_transaction_id"))


def encode_xid(writer: Writer, xid: Xid) -> None:
    writer.int32(xid.format_id)
    writer.blob(xid.branch_qualifier)
    writer.blob(xid.global_transaction_id)
