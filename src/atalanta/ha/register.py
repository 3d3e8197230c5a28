"""The register of a group: its epoch, its active node, and its in-sync set.

A manager (a shared file, etcd, ZooKeeper, voters) keeps the register. It offers two operations: read, and
compare-and-set by a version that grows with each change. The functions below decide about the next value;
`RegisterView` is the part of one process: what it has read, and the one write whose outcome it does not know.

Rules:

- Every member of the in-sync set has on its disk everything that was ever confirmed. So each of them may take over.
- A takeover raises the epoch by one. An epoch has one active process, and a process that starts again takes over
  again.
- Within an epoch only the active node changes the in-sync set.
- The answer of a compare-and-set may be lost, and the write may arrive late. Then its outcome is unknown, until a
  read shows a higher version. A read of the same version decides nothing.

A member's name stands for one data folder. An empty folder has a new name: a member that has lost its disk is not in
sync.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

REGISTER_FORMAT: Final = 1
TOKEN_SIZE: Final = 16
MEMBERS_MAX: Final = 16
NAME_SIZE_MAX: Final = 255
# Left out when a register is lost, so that no two journals have different records of one epoch.
LOST_EPOCHS: Final = 1 << 16
# u8 format · u64 epoch · u64 forced epoch · token · u8 size of the active node's name
HEAD_SIZE: Final = 1 + 8 + 8 + TOKEN_SIZE


class RegisterRefused(Exception):
    """A change of the register that its rules do not allow. The text names the remedy."""


class RegisterDamaged(Exception):
    """Bytes that are no register, or one of another format."""


@dataclass(frozen=True)
class Register:
    """The value of the register. `in_sync` is sorted and has the active node; `active` is "" before the first epoch.

    `forced_epoch` is the last epoch that an operator began with a member that was not in sync, 0 if none: what
    returning members cut off may have been confirmed. `token` is different for each write, so that a process
    recognises its own.
    """

    epoch: int
    active: str
    in_sync: tuple[str, ...]
    forced_epoch: int
    token: bytes


@dataclass(frozen=True)
class Read:
    """The request to read the register. Answered by `RegisterView.on_read`, or repeated if the answer is lost."""


@dataclass(frozen=True)
class CompareAndSet:
    """The request to set the register to `value` if its version is `version` (0: if it does not exist)."""

    version: int
    value: Register


# --- decisions --------------------------------------------------------------------------------------


def found(member: str, journal_epoch: int, token: bytes) -> Register:
    """Returns the first value of a register: `member` is in sync, nobody is active.

    `journal_epoch` is the highest epoch in the member's journal. If there is one, the group had a register before.
    """
    if journal_epoch:
        raise RegisterRefused(
            f"the register is gone, but the journal of {member} has epoch {journal_epoch}: restore the register, "
            "or promote the member whose data is newest"
        )
    return Register(0, "", (member,), 0, token)


def take_over(register: Register, member: str, token: bytes) -> Register:
    """Returns the value with which an in-sync `member` becomes active, alone."""
    if member not in register.in_sync:
        raise RegisterRefused(
            f"{member} is not in sync ({', '.join(register.in_sync)} are): start one of these, or promote {member}, "
            "which may lose confirmed messages"
        )
    return Register(register.epoch + 1, member, (member,), register.forced_epoch, token)


def hand_over(register: Register, successor: str, token: bytes) -> Register:
    """Returns the value with which `successor` becomes active and the in-sync set stays.

    Allowed only when every member has the whole journal of the active node, and that node has stopped for good.
    """
    if successor not in register.in_sync:
        raise RegisterRefused(f"{successor} is not in sync: wait until it is, then hand over")
    return Register(register.epoch + 1, successor, register.in_sync, register.forced_epoch, token)


def add_member(register: Register, active: str, member: str, token: bytes) -> Register:
    """Returns the value in which `member` is in sync. The active node requires its answers before it writes this."""
    _check_active(register, active)
    if len(register.in_sync) >= MEMBERS_MAX:
        raise RegisterRefused(f"{member} would be member {MEMBERS_MAX + 1}: remove one first")
    in_sync = tuple(sorted({*register.in_sync, member}))
    return Register(register.epoch, active, in_sync, register.forced_epoch, token)


def remove_member(register: Register, active: str, member: str, token: bytes) -> Register:
    """Returns the value in which `member` is not in sync. It is required until the success is known."""
    _check_active(register, active)
    if member == active:
        raise RegisterRefused(f"{member} is the active node: hand over first")
    in_sync = tuple(name for name in register.in_sync if name != member)
    return Register(register.epoch, active, in_sync, register.forced_epoch, token)


def promote(register: Register | None, member: str, journal_epoch: int, token: bytes) -> Register:
    """Returns the value with which an operator makes `member` active though it may lack confirmed messages.

    It is for an asynchronous member, for members of which no other is left, and for a lost register (None). The
    epoch is higher than any that the register or the member's journal knows, by far if the register is lost: the one
    of a data centre that comes back may have gone on.
    """
    if register is None:
        epoch = journal_epoch + LOST_EPOCHS
    else:
        epoch = max(journal_epoch, register.epoch)
    return Register(epoch + 1, member, (member,), epoch + 1, token)


def _check_active(register: Register, active: str) -> None:
    if register.active != active:
        raise RegisterRefused(
            f"{active} is not active in epoch {register.epoch}, {register.active} is: only the active node changes "
            "the in-sync set"
        )


# --- one process -------------------------------------------------------------------------------------


class RegisterView:
    """The register as one process knows it. At most one write is pending: its outcome is unknown.

    `life` is different for each process (8 random bytes); tokens begin with it.
    """

    def __init__(self, life: bytes) -> None:
        self.life = life
        self.version: int = 0
        self.known: Register | None = None
        self.pending: Register | None = None
        self.writes: int = 0

    def token(self) -> bytes:
        """Returns a token that no write had before."""
        self.writes += 1
        return self.life + self.writes.to_bytes(TOKEN_SIZE - len(self.life), "big")

    def write(self, value: Register) -> CompareAndSet:
        """Records that the outcome of a write is unknown from now on. Returns the request to send."""
        if self.pending is not None:
            raise AssertionError("a write is pending")
        self.pending = value
        return CompareAndSet(self.version, value)

    def on_read(self, version: int, register: Register) -> None:
        """Records an answer of the manager: to a read, or to a write that has succeeded.

        Answers may be old or come twice. A higher version settles the pending write: either it is this value or an
        earlier one, or it can never succeed.
        """
        if version > self.version:
            self.version = version
            self.known = register
            self.pending = None

    def on_uncertain(self) -> Read:
        """Returns the request that follows a conflict, an error or no answer at all: read before anything else.

        A conflict is uncertain, too: an earlier copy of the same write may have succeeded.
        """
        return Read()

    def restore(self) -> CompareAndSet | None:
        """Returns the write that makes the lost register anew, as this process knows it; None if it may not.

        It is for the active member, alone in sync and without a pending write: then no other could have taken over
        since. Versions begin again.
        """
        known = self.known
        if known is None or known.in_sync != (known.active,) or (self.pending is not None and self.version):
            return None
        if self.pending is None:
            self.version = 0
            self.pending = replace(known, token=self.token())
        return CompareAndSet(0, self.pending)

    def repeated(self) -> CompareAndSet | None:
        """Returns the pending write, to be sent again unchanged after a read that did not settle it."""
        if self.pending is None:
            return None
        return CompareAndSet(self.version, self.pending)

    def possible_members(self) -> list[str]:
        """Returns the members of the in-sync set as known or as pending, sorted: each of them may take over."""
        names = list(self.known.in_sync) if self.known is not None else []
        if self.pending is not None:
            names += [name for name in self.pending.in_sync if name not in names]
        return sorted(names)

    def certain_members(self) -> int:
        """Returns how many members are in the in-sync set whatever the outcome of the pending write is."""
        if self.known is None:
            return 0
        if self.pending is None:
            return len(self.known.in_sync)
        return len([name for name in self.known.in_sync if name in self.pending.in_sync])


# --- bytes ----------------------------------------------------------------------------------------------


def encode_register(register: Register) -> bytes:
    """Encodes a register.

        u8 format · u64 epoch · u64 forced epoch · 16 bytes token · name of the active node ·
        u8 count · names of the in-sync set; a name is u8 size and UTF-8

    ValueError for a name or a number of members beyond the limits.
    """
    if len(register.token) != TOKEN_SIZE or len(register.in_sync) > MEMBERS_MAX:
        raise ValueError(f"a token has {TOKEN_SIZE} bytes, a group at most {MEMBERS_MAX} members")
    parts = [
        bytes([REGISTER_FORMAT]),
        register.epoch.to_bytes(8, "big"),
        register.forced_epoch.to_bytes(8, "big"),
        register.token,
        _encode_name(register.active),
        bytes([len(register.in_sync)]),
    ]
    parts += [_encode_name(name) for name in register.in_sync]
    return b"".join(parts)


def decode_register(data: bytes) -> Register:
    """Decodes a register. RegisterDamaged if a byte is missing, left over or impossible."""
    if len(data) < HEAD_SIZE or data[0] != REGISTER_FORMAT:
        found_format = data[0] if data else 0
        raise RegisterDamaged(
            f"a register of {len(data)} bytes and format {found_format}, this program reads format {REGISTER_FORMAT}"
        )
    epoch = int.from_bytes(data[1:9], "big")
    forced_epoch = int.from_bytes(data[9:17], "big")
    token = data[17:HEAD_SIZE]
    active, offset = _decode_name(data, HEAD_SIZE)
    if offset >= len(data):
        raise RegisterDamaged("the register ends before its members")
    count = data[offset]
    offset += 1
    names: list[str] = []
    for _ in range(count):
        name, offset = _decode_name(data, offset)
        names.append(name)
    if offset != len(data) or count > MEMBERS_MAX or names != sorted(set(names)) or "" in names:
        raise RegisterDamaged(f"the register names its {count} members wrongly")
    if (active not in names) if epoch else (active != "" or not names):
        raise RegisterDamaged(f"the active node {active!r} of epoch {epoch} is not in sync")
    if forced_epoch > epoch:
        raise RegisterDamaged(f"the forced epoch {forced_epoch} is higher than epoch {epoch}")
    return Register(epoch, active, tuple(names), forced_epoch, token)


def _encode_name(name: str) -> bytes:
    data = name.encode("utf-8")
    if len(data) > NAME_SIZE_MAX:
        raise ValueError(f"a member's name has {len(data)} bytes, at most {NAME_SIZE_MAX}")
    return bytes([len(data)]) + data


def _decode_name(data: bytes, offset: int) -> tuple[str, int]:
    """Returns the name at `offset` and the offset behind it."""
    if offset >= len(data) or offset + 1 + data[offset] > len(data):
        raise RegisterDamaged("the register ends within a name")
    end = offset + 1 + data[offset]
    try:
        return data[offset + 1 : end].decode("utf-8"), end
    except UnicodeDecodeError:
        raise RegisterDamaged("a name in the register is not UTF-8") from None
