"""Faults of the quorum register, planted by exchanging one method, and the scope in which the search must find each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from atalanta.ha.voter import (
    Kind,
    Outcome,
    Proposer,
    Result,
    Voter,
    VoterAnswer,
    VoterRequest,
    VoterState,
)
from tests.ha.voter_world import VoterParts, VoterScope


@dataclass(frozen=True)
class VoterFault:
    """A broken register; `finds` is a part of the broken promise."""

    parts: VoterParts
    scope: VoterScope
    finds: str


class StoresNoPromise(Voter):
    def on_request(self, request: VoterRequest) -> tuple[VoterAnswer, bool]:
        answer, store = super().on_request(request)
        return answer, store and request.kind is not Kind.PREPARE


class NeverSyncs(Voter):
    def on_request(self, request: VoterRequest) -> tuple[VoterAnswer, bool]:
        return super().on_request(request)[0], False


class AcceptsBelowPromise(Voter):
    def on_request(self, request: VoterRequest) -> tuple[VoterAnswer, bool]:
        if request.kind is Kind.ACCEPT and request.ballot < self.state.promised:
            self.state = VoterState(request.ballot, request.ballot, request.version, request.data)
            return VoterAnswer(request.kind, request.ballot, True, self.state), True
        return super().on_request(request)


class AnyVoterDecides(Proposer):
    def majority(self) -> int:
        return 1


class IgnoresAccepted(Proposer):
    """Takes the oldest of the accepted values."""

    def _on_promises(self, states: Collection[VoterState]) -> VoterRequest:
        return super()._on_promises([min(states, key=lambda state: state.accepted)])


class AnswersWithoutSecondPhase(Proposer):
    def _on_promises(self, states: Collection[VoterState]) -> VoterRequest:
        request = super()._on_promises(states)
        if self.expected < 0:
            self._end(Result(Outcome.DONE, request.version, request.data))
        return request


class TakesReplacedForConflict(Proposer):
    def _on_promises(self, states: Collection[VoterState]) -> VoterRequest:
        request = super()._on_promises(states)
        if self.outcome is Outcome.UNKNOWN:
            self.outcome = Outcome.CONFLICT
        return request


class BelievesTheNewest(Proposer):
    """Ends a read with the newest answer though the voters differ."""

    def _on_states(self, states: Collection[VoterState]) -> VoterRequest | None:
        return super()._on_states([max(states, key=lambda state: state.accepted)])


class CountsRefusals(Proposer):
    def on_answer(self, voter: str, answer: VoterAnswer) -> VoterRequest | None:
        agreed = VoterAnswer(answer.kind, answer.ballot, True, answer.state)
        return super().on_answer(voter, agreed)


WRITES = VoterScope(plans=("w", "w"))
# One voter shows these as well, and sooner; the deep form searches three.
CRASH = VoterScope(plans=("w", "w"), crashes=1, voters=1)
READS = VoterScope(plans=("w", "rr"))

VOTER_FAULTS = {
    "a promise is not stored": VoterFault(VoterParts(StoresNoPromise), CRASH, "version 1"),
    "nothing is synced": VoterFault(VoterParts(NeverSyncs), CRASH, "version 1"),
    "accepted below the promise": VoterFault(VoterParts(AcceptsBelowPromise), WRITES, "version 1"),
    "the ballot is used again after a restart": VoterFault(
        VoterParts(same_life=True), VoterScope(plans=("wwr",), restarts=1, voters=1), "version 1"
    ),
    "one of three decides": VoterFault(VoterParts(proposer=AnyVoterDecides), WRITES, "version 1"),
    "the accepted value is ignored": VoterFault(
        VoterParts(proposer=IgnoresAccepted), WRITES, "version 1"
    ),
    "a refusal counts": VoterFault(VoterParts(proposer=CountsRefusals), WRITES, "version 1"),
    "a read without its second phase": VoterFault(
        VoterParts(proposer=AnswersWithoutSecondPhase), READS, "version"
    ),
    "a read believes the newest answer": VoterFault(
        VoterParts(proposer=BelievesTheNewest), READS, "version"
    ),
    "a replaced value is taken for a conflict": VoterFault(
        VoterParts(proposer=TakesReplacedForConflict),
        VoterScope(plans=("w", "rw"), rounds=2, voters=1),
        "a refused write was made",
    ),
    "a query is answered before the sync": VoterFault(
        VoterParts(impatient=True), VoterScope(plans=("w", "rr"), crashes=1, slow_disks=True), "version"
    ),
    "a voter comes back without its folder": VoterFault(VoterParts(new_disk=True), CRASH, "version 1"),
}
