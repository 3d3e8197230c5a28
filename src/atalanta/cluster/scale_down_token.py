"""What a target remembers of a link: by it the one is found that takes over from the target (scale_down_heirs.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.scale_down_stage import Stage
from atalanta.kernel.duplicates import TOKENS

if TYPE_CHECKING:
    from atalanta.cluster.scale_down_link import TargetLink
    from atalanta.cluster.scale_down_stages import Mover


class Token:
    """Of one link. `value` is empty until the target has it, and where it takes none (a real Artemis)."""

    def __init__(self, link: TargetLink) -> None:
        self.link = link
        self.value: str = ""
        self.offered: str = ""
        self.answered: bool = False

    def given(self, now: int) -> bool:
        """Whether the target has answered; it is asked once, and `part.token_answered` follows."""
        link = self.link
        if not self.offered:
            self.offered = link.part.cluster.unique_name()
            if link.ours:
                given: list[object] = [TOKENS, [self.offered]]
                link.call(now, "broker", "updateDuplicateIdCache", given, self._answered)
            else:
                self.answered = True
        return self.answered

    def _answered(self, now: int, succeeded: bool, value: object) -> None:
        self.answered = True
        if succeeded:
            self.value = self.offered
        self.link.part.token_answered(now)


class TokenStage(Stage):
    """The token is given, and in the mark: nothing is sent before."""

    def __init__(self, mover: Mover) -> None:
        self.mover = mover

    def step(self, now: int) -> bool:
        part = self.mover.part
        token = self.mover.link.token
        if not token.given(now):
            return False
        if part.mark.token != token.value:
            part.note(token.value)
        return part.mark.durable()
