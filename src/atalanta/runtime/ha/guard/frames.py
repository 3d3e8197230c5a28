"""The bytes between a guard and the backups that watch it. Every frame has a fixed size.

    hello    guard → backup   magic · u8 version · 32 random bytes
    watch    backup → guard   magic · u8 version · u64 epoch · 32 random bytes · proof "watch"
    answer   guard → backup   u8 kind · u64 epoch · proof "watched" or "ended"

A proof is an HMAC-SHA256 of its label, the epoch and both random numbers, with the secret of the epoch: it is worth
nothing on another connection. The guard answers `watched` at once, and `ended` when the process that was active in this
epoch has ended. It reads nothing after `watch`. A closed connection says nothing.

The module imports little: it is part of the guard's process.
"""

from __future__ import annotations

import hmac

MAGIC = b"atalanta-guard"
VERSION = 1
NONCE_SIZE = 32
SECRET_SIZE = 32
PROOF_SIZE = 32
HEAD = MAGIC + bytes([VERSION])
HELLO_SIZE = len(HEAD) + NONCE_SIZE
WATCH_SIZE = len(HEAD) + 8 + NONCE_SIZE + PROOF_SIZE
ANSWER_SIZE = 1 + 8 + PROOF_SIZE

WATCHED = 1
ENDED = 2
LABELS = {WATCHED: b"watched", ENDED: b"ended"}


class GuardBytesDamaged(Exception):
    """Bytes that no guard or no backup of this version sends, or a proof that is wrong."""


def epoch_secret(key: bytes, epoch: int, salt: bytes) -> bytes:
    """Returns the secret of an epoch. `key` is the one of the cluster password; the salt is no secret."""
    return hmac.digest(key, b"guard" + epoch.to_bytes(8, "big") + salt, "sha256")


def encode_hello(guard_nonce: bytes) -> bytes:
    """Returns the guard's first frame."""
    return HEAD + guard_nonce


def decode_hello(data: bytes) -> bytes:
    """Returns the guard's random number. GuardBytesDamaged."""
    _check_head(data, HELLO_SIZE)
    return data[len(HEAD) :]


def encode_watch(secret: bytes, epoch: int, guard_nonce: bytes, nonce: bytes) -> bytes:
    """Returns the backup's only frame. `nonce` is the backup's random number."""
    return HEAD + epoch.to_bytes(8, "big") + nonce + _proof(secret, b"watch", epoch, guard_nonce, nonce)


def decode_watch(data: bytes, secret: bytes, epoch: int, guard_nonce: bytes) -> bytes:
    """Returns the random number of a backup that knows the secret of this epoch. GuardBytesDamaged for any other."""
    _check_head(data, WATCH_SIZE)
    nonce = data[-PROOF_SIZE - NONCE_SIZE : -PROOF_SIZE]
    if not hmac.compare_digest(data, encode_watch(secret, epoch, guard_nonce, nonce)):
        raise GuardBytesDamaged(f"a backup of another epoch than {epoch}, or without its secret")
    return nonce


def encode_answer(kind: int, secret: bytes, epoch: int, guard_nonce: bytes, nonce: bytes) -> bytes:
    """Returns WATCHED or ENDED for the backup with this random number."""
    proof = _proof(secret, LABELS[kind], epoch, guard_nonce, nonce)
    return bytes([kind]) + epoch.to_bytes(8, "big") + proof


def decode_answer(data: bytes, secret: bytes, epoch: int, guard_nonce: bytes, nonce: bytes) -> int:
    """Returns WATCHED or ENDED. GuardBytesDamaged if the proof is not one of this epoch and this connection."""
    kind = data[0] if len(data) == ANSWER_SIZE else 0
    if kind not in LABELS:
        raise GuardBytesDamaged(f"{len(data)} bytes that are no answer of a guard")
    if not hmac.compare_digest(data, encode_answer(kind, secret, epoch, guard_nonce, nonce)):
        raise GuardBytesDamaged("the proof of an answer is wrong")
    return kind


def _check_head(data: bytes, size: int) -> None:
    if not data.startswith(MAGIC):
        raise GuardBytesDamaged("the other side is no guard of Atalanta, nor a backup")
    if len(data) != size or not data.startswith(HEAD):
        raise GuardBytesDamaged(f"{len(data)} bytes, not {size} of version {VERSION} of the protocol")


def _proof(secret: bytes, label: bytes, epoch: int, guard_nonce: bytes, nonce: bytes) -> bytes:
    return hmac.digest(secret, label + b"\0" + epoch.to_bytes(8, "big") + guard_nonce + nonce, "sha256")
