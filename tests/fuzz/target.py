"""A target is a decoder, the inputs to begin with, and what it may answer to a bad one."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.mutator import Mutator

KIB = 1024


class Target:
    """`run` takes one input. It may raise one of `refusals`; anything else is a finding.

    Of the memory it takes at once, `base_bytes` are its own and `bytes_per_byte` go with the input;
    an input of n bytes may take `seconds` of CPU, and as much again for every MiB.
    """

    name: str = ""
    refusals: tuple[type[BaseException], ...] = ()
    base_bytes: int = 512 * KIB
    bytes_per_byte: int = 256
    seconds: float = 0.5
    size_max: int = 8 * KIB
    words: Sequence[bytes] = ()

    def mutator(self) -> Mutator:
        return Mutator(self.size_max, self.words)

    def allowed_bytes(self, size: int) -> int:
        return self.base_bytes + self.bytes_per_byte * size

    def seeds(self) -> list[bytes]:
        """Well-formed inputs."""
        raise NotImplementedError

    def fresh(self) -> None:
        """Forget what earlier inputs left behind; called before the first one too."""

    def stale(self) -> bool:
        """Whether `fresh` is due."""
        return False

    def summary(self) -> str:
        """What a run has done beside its inputs."""
        return ""

    def run(self, data: bytes) -> None:
        raise NotImplementedError
