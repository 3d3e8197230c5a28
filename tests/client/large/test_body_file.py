"""Large bodies in files: packed ones are unpacked on the way, and a full disk is told of."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from atalanta.client import ClientError, MessageTooLarge
from atalanta.client.large.body_file import LargeFile
from atalanta.client.message import inflate

BODY = bytes(range(256)) * 20_000


def filled(folder: Path, body: bytes, limit: int = 1 << 30) -> LargeFile:
    file = LargeFile(str(folder), limit)
    for at in range(0, len(body), 100_000):
        file.write(body[at : at + 100_000])
    return file


@pytest.mark.parametrize("compressed", [False, True])
def test_as_a_whole_and_piece_by_piece_as_often_as_wished(tmp_path: Path, compressed: bool) -> None:
    body = zlib.compress(BODY) if compressed else BODY
    file = filled(tmp_path, body)
    assert file.size == len(body) and file.read() == body and file.read() == body
    for name in ("a", "b"):
        assert file.save_to(tmp_path / name, compressed) == len(BODY)
        assert (tmp_path / name).read_bytes() == BODY
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_what_should_not_be_in_memory_can_be_saved(tmp_path: Path) -> None:
    file = filled(tmp_path, BODY, 1_000)
    with pytest.raises(MessageTooLarge, match="save_to"):
        file.read()
    assert file.save_to(tmp_path / "a", False) == len(BODY)


def test_a_folder_that_is_not_there_and_a_body_that_is_not_packed(tmp_path: Path) -> None:
    lost = filled(tmp_path / "nowhere", BODY)
    with pytest.raises(ClientError, match="could not be stored"):
        lost.read()
    with pytest.raises(ClientError, match="could not be stored"):
        lost.save_to(tmp_path / "a", False)
    with pytest.raises(ClientError, match="compressed body cannot be read"):
        filled(tmp_path, BODY).save_to(tmp_path / "a", True)


def test_a_packed_body_that_ends_too_early_is_told_of(tmp_path: Path) -> None:
    """In memory as in a file: half a body should not be taken for a whole one."""
    half = zlib.compress(BODY)[:-100]
    with pytest.raises(ClientError, match="compressed body cannot be read: it is truncated"):
        filled(tmp_path, half).save_to(tmp_path / "a", True)
    with pytest.raises(ClientError, match="compressed body cannot be read: it is truncated"):
        inflate(half)
    assert inflate(zlib.compress(BODY)) == BODY


def test_a_full_disk_spoils_this_message_alone(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    file = LargeFile(str(tmp_path), 1 << 30)
    file._file = full.open("wb", buffering=0)
    file.write(b"x")
    file.write(b"y")
    with pytest.raises(ClientError, match="No space left"):
        file.read()
