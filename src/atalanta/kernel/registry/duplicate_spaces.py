"""The spaces of duplicate ids in one cache: what one kind of sender writes is never found for another kind.

An application's own ids (`_AMQ_DUPL_ID`) and those of members (`_AMQ_BRIDGE_DUP`) are kept as they are, as in Artemis.
Ids that this broker makes of something else begin with a mark. An id without a mark that looks like a message id of
OpenWire is from an older version, which kept such ids in the space of applications: it still counts.
"""

from __future__ import annotations

from hashlib import blake2b, sha256
from typing import Final

from atalanta.message.encoding.buffer import encode_utf16
from atalanta.message.message import DUPLICATE_ID_BYTES_MAX, short_duplicate_id

BRIDGE_PREFIX: Final = "BRIDGE."
MARK: Final = b"\xff\xff\xff\xff"  # no text of UTF-16, and no likely begin of a UUID
SPACE_BYTES: Final = len(MARK) + 1
USER_BYTES: Final = 16
# An application's id that could be taken for another kind.
APPLICATION: Final = MARK + b"A"
# The message id of a client, with its user.
CLIENT: Final = MARK + b"C"
# The message id that a bridge of another broker brings: one space for all, and one for each user without the right to
# the first.
NETWORK: Final = MARK + b"N"
NETWORK_USER: Final = MARK + b"U"
# The id of a core bridge, with its user, which is not the cluster's.
BRIDGE: Final = MARK + b"B"
# The id that `atalanta data import` makes of a message in a queue of an export.
IMPORT: Final = MARK + b"I"
OLD_BEGIN: Final = encode_utf16("ID:")
SEPARATOR: Final = "\0"


def user_space(space: bytes, user: str) -> bytes:
    """Returns the begin of the ids of one user in a space."""
    return space + blake2b(user.encode("utf-8", "surrogatepass"), digest_size=USER_BYTES).digest()


def application_id(address: str, duplicate_id: bytes) -> bytes:
    """Returns the id of an application as the cache of the address has it.

    The cache of an address that is called `BRIDGE.x` is also that of the bridges to `x`.
    """
    if duplicate_id.startswith((OLD_BEGIN, MARK)) or address.startswith(BRIDGE_PREFIX):
        return _short(APPLICATION + duplicate_id)
    return duplicate_id


def user_bridge_id(user: str, duplicate_id: bytes) -> bytes:
    """Returns the `_AMQ_BRIDGE_DUP` of a user as the cache has it. An id that is one already stays."""
    space = user_space(BRIDGE, user)
    return duplicate_id if duplicate_id.startswith(space) else _short(space + duplicate_id)


def begin_of_sent(space: bytes, queue: str, hops: int) -> bytes:
    """Returns the begin of `sent_id`, which ends with the text of the message id.

    `space`: with the user, if the space has users. `queue`: of a fully qualified name, or "". `hops`: 0 does not count.
    """
    begin = f"{queue}{SEPARATOR}{hops or ''}{SEPARATOR}"
    return space + begin.encode("utf-8", "surrogatepass")


def sent_id(begin: bytes, text: str) -> bytes:
    """Returns the duplicate id that is made of a message id."""
    return _short(begin + text.encode("utf-8", "surrogatepass"))


def _short(duplicate_id: bytes) -> bytes:
    """Returns an id with a mark as the cache keeps it: as `short_duplicate_id`, but it stays in its space."""
    if len(duplicate_id) <= DUPLICATE_ID_BYTES_MAX:
        return duplicate_id
    return duplicate_id[:SPACE_BYTES] + sha256(duplicate_id).digest()


def older_id(duplicate_id: bytes) -> bytes | None:
    """Returns the id that an older version, or another user, has written for the same message; None without one."""
    if not duplicate_id.startswith(MARK):
        return None
    space, rest = duplicate_id[:SPACE_BYTES], duplicate_id[SPACE_BYTES:]
    if space == APPLICATION:
        return rest
    if space == IMPORT:
        return None
    if space != NETWORK:
        rest = rest[USER_BYTES:]
    if space == BRIDGE:
        return rest
    parts = rest.decode("utf-8", "replace").split(SEPARATOR)
    if len(parts) < 3:
        return None
    queue, hops, text = parts[0], parts[1], parts[2]
    return short_duplicate_id(encode_utf16(" ".join([each for each in (text, queue, hops) if each])))
