"""The write-ahead folder of one stream: numbered files, and the epoch of the driver that may add some.

    claim-<epoch>                        a driver has started; the highest claim is the one that counts
    seal-<epoch>.json                    the folder's id, its queues, and the files that this driver found valid
    <number>_<epoch>_<token>.wal         the messages of the XA branch "<epoch>/<token>"
    draft-<epoch>-…                      a file that is being written

The order of steps makes two drivers harmless, on any file system whose listings are complete. A driver claims an
epoch, lists the files, writes its seal, and goes on only if its claim is still the highest. To add a file it prepares
the branch, gives the file its name, and commits the branch only if its claim is still the highest then. So a file that
a later driver's listing contains is valid, and that driver commits the branch. A file that came after the listing is
not valid: its driver sees the later claim and commits nothing, and the later driver rolls the branch back.

Valid files are numbered without gaps. The newest is never removed, so that the numbers go on after a restart.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from atalanta.spark.errors import LeaseTaken, SparkSourceError
from atalanta.spark.wal.location import FileDraft, Location
from atalanta.spark.wal.queue_names import QueueNames

CLAIM: Final = "claim-"
SEAL: Final = "seal-"
DRAFT: Final = "draft-"
SEAL_BYTES_MAX: Final = 1 << 28
_FILE: Final = re.compile(r"(\d{20})_(\d{10}-[0-9a-f]{8})_([0-9a-f]{16})\.wal")


@dataclass(frozen=True)
class WalName:
    """The name of a file, with the XA branch whose messages it has."""

    number: int
    epoch: str
    token: str

    @property
    def branch(self) -> str:
        return f"{self.epoch}/{self.token}"

    def __str__(self) -> str:
        return f"{self.number:020d}_{self.epoch}_{self.token}.wal"

    @staticmethod
    def parse(name: str) -> WalName | None:
        found = _FILE.fullmatch(name)
        return None if found is None else WalName(int(found[1]), found[2], found[3])


class WalFolder:
    """The folder of a driver that has claimed it. Thread-safe."""

    def __init__(self, location: Location, names: QueueNames) -> None:
        self.location = location
        self.names = names
        self.lock = threading.Lock()
        self.id = ""
        self.files: dict[int, WalName] = {}
        self.last = 0  # the highest number so far
        self.failed = False  # after an error it is unknown whether a file is there
        self.epoch = self._claim()
        self.check()

    # -- a start ------------------------------------------------------------------------------------
    def _claim(self) -> str:
        """Claims the next epoch, finds the valid files and seals them. Raises LeaseTaken."""
        location = self.location
        highest = max((claim[len(CLAIM) :] for claim in self._claims()), default="0000000000")
        self.epoch = f"{int(highest.partition('-')[0]) + 1:010d}-{secrets.token_hex(4)}"
        self._write(f"{CLAIM}{self.epoch}", b"")
        self.check()
        names = location.names()
        seals = [name for name in names if name.startswith(SEAL)]
        files = [one for one in map(WalName.parse, names) if one is not None]
        if seals:
            sealed_by = seals[-1][len(SEAL) :].removesuffix(".json")
            seal = self._read_seal(seals[-1])
            self.id = str(seal["id"])
            known = set(seal["files"])
            files = [one for one in files if one.epoch >= sealed_by or str(one) in known]
        else:
            self.id = str(uuid.uuid4())
        self._add(files)
        text = {"id": self.id, "queue": self.names.options.queue, "files": [str(one) for one in files]}
        self._write(f"{SEAL}{self.epoch}.json", json.dumps(text).encode())
        self.check()
        self._clean(names)
        return self.epoch

    def _read_seal(self, name: str) -> dict[str, Any]:
        with self.location.read(name) as file:
            data = bytes(file.read(SEAL_BYTES_MAX))
        try:
            seal: dict[str, Any] = json.loads(data)
            unnamed = self.names.unnamed(str(seal["queue"]))
        except (ValueError, TypeError, KeyError) as error:
            raise SparkSourceError(
                f"{name} in walLocation is damaged ({error!r}): restore the folder from a backup"
            ) from error
        if unnamed:
            said = ",".join(unnamed)
            raise SparkSourceError(
                f"walLocation holds messages of queue {said}, not only of {self.names.options.queue}: give each "
                f"query a folder of its own. If this query shall go on without, set removedQueues={said}"
            )
        return seal

    def _add(self, files: Iterable[WalName]) -> None:
        for one in files:
            if one.number in self.files:
                raise SparkSourceError(
                    f"walLocation has two files {one.number}: {self.files[one.number]} and {one}"
                )
            self.files[one.number] = one
        self.last = max(self.files, default=0)

    def _clean(self, names: list[str]) -> None:
        """Removes what earlier drivers left: claims, seals, drafts, files that are not valid."""
        valid = {str(one) for one in self.files.values()}
        for name in names:
            found = WalName.parse(name)
            if found is not None:
                if name not in valid:
                    self.location.remove(name)
                continue
            for kind in (CLAIM, SEAL, DRAFT):
                if name.startswith(kind) and name[len(kind) :] < self.epoch:
                    self.location.remove(name)

    # -- the epoch ----------------------------------------------------------------------------------
    def _claims(self) -> list[str]:
        return [name for name in self.location.names() if name.startswith(CLAIM)]

    def check(self) -> None:
        """Raises LeaseTaken if a later driver uses the folder."""
        highest = max(self._claims(), default="")
        if highest != f"{CLAIM}{self.epoch}":
            raise LeaseTaken(
                "another query took over walLocation, so this one stops. Give each query a folder of its "
                "own, or run only one of them"
            )

    # -- files --------------------------------------------------------------------------------------
    def draft(self, token: str) -> FileDraft:
        return self.location.draft(f"{DRAFT}{self.epoch}-{token}")

    def discard(self, token: str) -> None:
        self.location.remove(f"{DRAFT}{self.epoch}-{token}")

    def publish(self, draft: FileDraft, token: str) -> WalName:
        """Makes a closed draft the next file, whose branch is prepared. The branch may be committed then.

        After an error nobody may commit or roll back the branch before the next start: LeaseTaken, OSError.
        """
        with self.lock:
            if self.failed:
                raise SparkSourceError("walLocation failed before")
            self.failed = True
            name = WalName(self.last + 1, self.epoch, token)
            draft.publish(str(name))
            self.check()
            self.files[name.number] = name
            self.last = name.number
            self.failed = False
        return name

    def go_on_after(self, number: int) -> None:
        """Gives the next file a number above `number`: files up to it are lost."""
        self.last = max(self.last, number)

    def branches(self) -> dict[str, WalName]:
        """Returns the files by their branches."""
        with self.lock:
            return {one.branch: one for one in self.files.values()}

    def between(self, start: int, end: int) -> tuple[list[WalName], list[int]]:
        """Returns the files (start, end], and the numbers that are missing there."""
        numbers = range(start + 1, end + 1)
        found = [self.files[number] for number in numbers if number in self.files]
        return found, [number for number in numbers if number not in self.files]

    def remove_through(self, number: int) -> None:
        """Removes the files up to this one, except the newest."""
        for one in [one for at, one in self.files.items() if at <= number and at < self.last]:
            self.location.remove(str(one))
            with self.lock:
                del self.files[one.number]

    def _write(self, name: str, data: bytes) -> None:
        draft = self.location.draft(f"{DRAFT}{self.epoch}-{name}")
        draft.write(data)
        draft.close()
        draft.publish(name)
