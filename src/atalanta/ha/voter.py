"""The quorum register: a value with a version that a majority of voters keeps, without a log.

It is CASPaxos (D. Rystsov, "CASPaxos: Replicated State Machines without logs", 2018, arXiv:1802.07000). A proposer asks
the voters to promise a ballot, takes the value of the highest ballot that was accepted, changes it or leaves it, and
asks the voters to accept the result under the ballot. What a majority has accepted is the value of the register.

- A voter answers only when its state is on disk. It answers one request after the other.
- A ballot belongs to one life of one process: `life` is different for each process.
- A read that finds the same accepted ballot at a majority needs no second phase: any newer value would have been
  accepted by one of these voters.
- A voter that has lost its state must not come back under its old address: it has forgotten promises.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

# The number of a ballot, and the life of the process that made it.
Ballot: TypeAlias = tuple[int, bytes]
NO_BALLOT: Final[Ballot] = (0, b"")


class Kind(Enum):
    """The kind of a request. QUERY reads a voter's state, PREPARE asks for a promise, ACCEPT sets the value."""

    QUERY = 1
    PREPARE = 2
    ACCEPT = 3


class Outcome(Enum):
    """The outcome of a read (DONE) or of a compare-and-set.

    CONFLICT: the version was another one, and this request has not set the value and never will. UNKNOWN: the value
    was set, or will be, or not.
    """

    DONE = "done"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class VoterState:
    """The state of a voter: the highest ballot that it has promised, and the value that it has accepted last.

    Version 0 means that there is no value.
    """

    promised: Ballot
    accepted: Ballot
    version: int
    data: bytes


NEW_VOTER: Final = VoterState(NO_BALLOT, NO_BALLOT, 0, b"")


@dataclass(frozen=True)
class VoterRequest:
    """A proposer's request, the same for every voter. `version` and `data` belong to ACCEPT."""

    kind: Kind
    ballot: Ballot
    version: int = 0
    data: bytes = b""


@dataclass(frozen=True)
class VoterAnswer:
    """A voter's answer. `kind` and `ballot` are those of the request, `state` is the voter's after it.

    `agreed` is False if the voter has promised a higher ballot.
    """

    kind: Kind
    ballot: Ballot
    agreed: bool
    state: VoterState


class Voter:
    """A voter of one register."""

    def __init__(self, state: VoterState = NEW_VOTER) -> None:
        self.state = state

    def on_request(self, request: VoterRequest) -> tuple[VoterAnswer, bool]:
        """Returns the answer, and whether the state must be stored first.

        Then the answer is sent, and the next request handled, when the state is on disk and not before.
        """
        before = self.state
        agreed = request.kind is Kind.QUERY or request.ballot >= before.promised
        if agreed and request.kind is Kind.PREPARE:
            self.state = replace(before, promised=request.ballot)
        elif agreed and request.kind is Kind.ACCEPT:
            self.state = VoterState(request.ballot, request.ballot, request.version, request.data)
        return VoterAnswer(request.kind, request.ballot, agreed, self.state), self.state != before


@dataclass(frozen=True)
class Result:
    """The outcome of an operation, and the value of the register at its end."""

    outcome: Outcome
    version: int
    data: bytes


class Proposer:
    """The proposer of one process, with at most one operation at a time.

    Each request that a method returns goes to every voter. Requests and answers may be lost, late or doubled. When
    `result` is None and nothing more comes, `again` begins the next round, or `give_up` ends the operation; a
    compare-and-set has the outcome UNKNOWN then.
    """

    def __init__(self, voters: int, life: bytes) -> None:
        self.voters = voters
        self.life = life
        self.number = 0  # of the highest ballot seen
        self.request: VoterRequest | None = None
        self.answers: dict[str, VoterState] = {}
        self.outbid = False
        self.result: Result | None = None
        self.expected = -1  # a read
        self.data = b""
        self.offered = False  # voters may accept `data` for this operation
        self.outcome = Outcome.DONE

    def read(self) -> VoterRequest:
        """Begins a read. Returns the first request."""
        self.result = None
        self.expected = -1
        return self._ask(Kind.QUERY)

    def compare_and_set(self, version: int, data: bytes) -> VoterRequest:
        """Begins a compare-and-set: `data` becomes version + 1 if the version is `version`. Returns the first request.

        `data` must be different from what any other process writes: a proposer recognises its own by it.
        """
        self.result = None
        self.expected = version
        self.data = data
        self.offered = False
        return self._ask(Kind.PREPARE)

    def again(self) -> VoterRequest:
        """Begins the next round of the operation, with a higher ballot. Returns its request."""
        return self._ask(Kind.PREPARE)

    def give_up(self) -> None:
        """Ends the operation without a result, if it has none. What was sent may still arrive."""
        self.request = None
        self.answers = {}

    def on_answer(self, voter: str, answer: VoterAnswer) -> VoterRequest | None:
        """Returns the request of the next phase, if this answer completes a phase.

        Sets `result` when the operation is over, and `outbid` when another proposer has a higher ballot.
        """
        request = self.request
        if request is None or (answer.kind, answer.ballot) != (request.kind, request.ballot):
            return None
        self.number = max(self.number, answer.state.promised[0])
        if not answer.agreed:
            self.outbid = True
            return None
        self.answers[voter] = answer.state
        if len(self.answers) < self.majority():
            return None
        if request.kind is Kind.QUERY:
            return self._on_states(self.answers.values())
        if request.kind is Kind.PREPARE:
            return self._on_promises(self.answers.values())
        self._end(Result(self.outcome, request.version, request.data))
        return None

    def majority(self) -> int:
        """Returns how many voters decide."""
        return self.voters // 2 + 1

    def _on_states(self, states: Collection[VoterState]) -> VoterRequest | None:
        """Ends a read if these voters have accepted the same ballot; else begins a round of two phases."""
        current = newest(states)
        if any(state.accepted != current.accepted for state in states):
            return self._ask(Kind.PREPARE)
        self._end(Result(Outcome.DONE, current.version, current.data))
        return None

    def _on_promises(self, states: Collection[VoterState]) -> VoterRequest:
        """Returns the second phase: with the new value, or with the present one, which settles it."""
        current = newest(states)
        version, data = current.version, current.data
        own = (version, data) == (self.expected + 1, self.data)
        self.outcome = Outcome.DONE
        if version == self.expected:
            version, data = version + 1, self.data
            self.offered = True
        elif self.expected >= 0 and not own:
            # Versions that followed may have replaced the value that an earlier round has offered.
            replaced = self.offered and version > self.expected + 1
            self.outcome = Outcome.UNKNOWN if replaced else Outcome.CONFLICT
        assert self.request is not None
        return self._send(VoterRequest(Kind.ACCEPT, self.request.ballot, version, data))

    def _ask(self, kind: Kind) -> VoterRequest:
        self.number += 1
        return self._send(VoterRequest(kind, (self.number, self.life)))

    def _send(self, request: VoterRequest) -> VoterRequest:
        self.request = request
        self.answers = {}
        self.outbid = False
        return request

    def _end(self, result: Result) -> None:
        self.give_up()
        self.result = result


def newest(states: Collection[VoterState]) -> VoterState:
    """Returns the state with the highest accepted ballot."""
    return max(states, key=lambda state: state.accepted)
