"""A quorum register as a small world: real `Voter` and `Proposer` objects, and everything that can happen between them.

Messages wait in a set: each may arrive late, in any order, never, or more than once. An answer arrives at once or
never, if the scope does not say otherwise: what the proposer sends next is late instead. A voter that stores before it
answers loses only a request or an answer by a crash; with `slow_disks` the storing is a step of its own. Voters are
alike, so states that differ only in their names count as one.

Checked after every operation: no version has two values, no operation sees less than what was confirmed before it
began, and a write that was refused with a conflict is never seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from atalanta.ha.voter import (
    NEW_VOTER,
    Ballot,
    Kind,
    Outcome,
    Proposer,
    Result,
    Voter,
    VoterAnswer,
    VoterRequest,
    VoterState,
)
from tests.ha.explorer import copied

# To a voter (proposer, request), or from it (proposer, answer).
Note: TypeAlias = tuple[int, VoterRequest | VoterAnswer]
HEAL_ROUNDS = 6


@dataclass(frozen=True)
class VoterScope:
    """How often each thing may happen. `plans` has the operations of each proposer: w(rite) and r(ead)."""

    plans: tuple[str, ...] = ("w", "w")
    voters: int = 3
    rounds: int = 0  # further rounds of an operation, of all proposers together
    given_up: int = 0  # operations that end unknown, and late messages of theirs
    restarts: int = 0  # new processes of a proposer
    doubled: int = 0  # messages that stay after their arrival
    crashes: int = 0  # of voters
    late_answers: bool = False
    slow_disks: bool = False


@dataclass(frozen=True)
class VoterParts:
    """The classes of a world; tests plant faults by exchanging one."""

    voter: type[Voter] = Voter
    proposer: type[Proposer] = Proposer
    same_life: bool = False  # a process that starts again reuses its ballots
    impatient: bool = False  # a voter answers queries while it stores
    new_disk: bool = False  # a voter comes back without its state


class VoterPlace:
    """A voter with its disk and the messages to and from it. It is not changed, only replaced."""

    __slots__ = ("disk", "key", "notes", "state", "storing")

    def __init__(
        self, state: VoterState, disk: VoterState, storing: Note | None, notes: frozenset[Note]
    ) -> None:
        self.state = state
        self.disk = disk
        self.storing = storing  # the answer that waits for the disk
        self.notes = notes
        self.key = hash((state, disk, storing, notes))

    def with_notes(self, notes: frozenset[Note]) -> VoterPlace:
        return VoterPlace(self.state, self.disk, self.storing, notes)


class VoterWorld:
    """Voters, proposers, and what was confirmed."""

    def __init__(self, scope: VoterScope, parts: VoterParts) -> None:
        self.scope = scope
        self.parts = parts
        self.wrong = ""
        self.places = [VoterPlace(NEW_VOTER, NEW_VOTER, None, frozenset())] * scope.voters
        self.proposers = [parts.proposer(scope.voters, life(at, 0)) for at in range(len(scope.plans))]
        self.lives = [0] * len(scope.plans)
        self.done = [0] * len(scope.plans)  # operations begun
        self.versions = [0] * len(scope.plans)  # seen by each proposer
        self.floors = [0] * len(scope.plans)  # confirmed when the operation began
        self.seen: tuple[tuple[int, bytes], ...] = ()  # version and value, confirmed or read
        self.refused: frozenset[bytes] = frozenset()

    def key(self) -> Hashable:
        """Returns a value that is equal for equal states, whatever the names of the voters."""
        voters = sorted(
            (place.key, *[_accepted(each, str(at)) for each in self.proposers])
            for at, place in enumerate(self.places)
        )
        proposers = [
            (each.number, _asked(each), each.outbid, each.offered, each.outcome.value)
            for each in self.proposers
        ]
        counts = (*self.lives, *self.done, *self.versions, *self.floors)
        return (*voters, *proposers, counts, self.seen, self.refused, self.scope, self.wrong)

    def _copied(self, scope: VoterScope | None = None, proposer: int = -1) -> VoterWorld:
        """Returns a copy; the proposer of the given number may be changed in it."""
        fresh = VoterWorld.__new__(VoterWorld)
        fresh.__dict__ = self.__dict__.copy()
        fresh.scope = scope or self.scope
        fresh.places = self.places.copy()
        fresh.proposers = [
            copied(each) if proposer == at else each for at, each in enumerate(self.proposers)
        ]
        for name in ("lives", "done", "versions", "floors"):
            setattr(fresh, name, list(getattr(self, name)))
        return fresh

    # --- steps ------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[tuple[str, VoterWorld]]:
        """Yields what can happen next."""
        if self.wrong:
            return
        for at in range(len(self.proposers)):
            yield from self._steps_of_proposer(at)
        for at in range(len(self.places)):
            yield from self._steps_of_voter(at)

    def _steps_of_proposer(self, at: int) -> Iterator[tuple[str, VoterWorld]]:
        scope = self.scope
        busy = self.proposers[at].request is not None
        if not busy and self.done[at] < len(scope.plans[at]):
            fresh = self._copied(proposer=at)
            fresh._begin(at)
            yield f"{at} begins", fresh
        if busy and scope.rounds:
            fresh = self._copied(replace(scope, rounds=scope.rounds - 1), at)
            fresh._send(at, fresh.proposers[at].again())
            yield f"{at} again", fresh
        if busy and scope.given_up:
            fresh = self._copied(replace(scope, given_up=scope.given_up - 1), proposer=at)
            fresh.proposers[at].give_up()
            fresh._forget(at)
            yield f"{at} gives up", fresh
        if busy and scope.restarts:
            fresh = self._copied(replace(scope, restarts=scope.restarts - 1))
            fresh.lives[at] += 1
            name = life(at, 0 if self.parts.same_life else fresh.lives[at])
            fresh.proposers[at] = self.parts.proposer(scope.voters, name)
            fresh.versions[at] = 0
            yield f"{at} starts again", fresh

    def _steps_of_voter(self, at: int) -> Iterator[tuple[str, VoterWorld]]:
        place = self.places[at]
        for note in place.notes:
            if place.storing and isinstance(note[1], VoterRequest):
                if not (self.parts.impatient and note[1].kind is Kind.QUERY):
                    continue
            for doubled in (False, True) if self.scope.doubled else (False,):
                yield from self._arrivals(at, note, doubled)
        if place.storing is not None:
            fresh = self._copied(proposer=place.storing[0])
            fresh._stored(at)
            yield from fresh._answered(at, place.storing[0], f"{at} has stored")
        if self.scope.crashes and (place.disk != place.state or place.storing or self.parts.new_disk):
            for kept in {place.disk, place.state}:
                fresh = self._copied(replace(self.scope, crashes=self.scope.crashes - 1))
                state = NEW_VOTER if self.parts.new_disk else kept
                fresh.places[at] = VoterPlace(state, state, None, place.notes)
                yield f"{at} crashes with {state}", fresh

    def _arrivals(self, at: int, note: Note, doubled: bool) -> Iterator[tuple[str, VoterWorld]]:
        """Yields what the arrival of a message does, with and without the arrival of its answer."""
        scope = replace(self.scope, doubled=self.scope.doubled - 1) if doubled else self.scope
        fresh = self._copied(scope, note[0])
        fresh._arrive(at, note, doubled)
        yield from fresh._answered(at, note[0], f"{at}: {note}{', to come again' * doubled}")

    def _answered(self, at: int, proposer: int, label: str) -> Iterator[tuple[str, VoterWorld]]:
        """Yields this world without the answer of a voter, and one in which the answer has arrived."""
        place = self.places[at]
        answers = [note for note in place.notes if isinstance(note[1], VoterAnswer)]
        if answers and not self.scope.late_answers:
            fresh = self._copied(proposer=proposer)
            for answer in answers:
                fresh._arrive(at, answer, False)
            yield f"{label}, answered", fresh
            self.places[at] = place.with_notes(place.notes.difference(answers))
        yield label, self

    def _begin(self, at: int) -> None:
        """Begins the next operation of a proposer."""
        self.floors[at] = max((version for version, _ in self.seen), default=0)
        data = b"%d.%d" % (at, self.done[at])
        proposer = self.proposers[at]
        write = self.scope.plans[at][self.done[at]] == "w"
        self.done[at] += 1
        self._send(at, proposer.compare_and_set(self.versions[at], data) if write else proposer.read())

    def _send(self, at: int, request: VoterRequest) -> None:
        self.places = [place.with_notes(place.notes | {(at, request)}) for place in self.places]
        self._forget(at)

    def _arrive(self, at: int, note: Note, doubled: bool) -> None:
        place = self.places[at]
        notes = place.notes if doubled else place.notes - {note}
        proposer, message = note
        if isinstance(message, VoterRequest):
            voter = self.parts.voter(place.state)
            answer, store = voter.on_request(message)
            if store and self.scope.slow_disks:
                self.places[at] = VoterPlace(voter.state, place.disk, (proposer, answer), notes)
                return
            disk = voter.state if store else place.disk
            self.places[at] = VoterPlace(voter.state, disk, place.storing, notes | {(proposer, answer)})
        else:
            self.places[at] = place.with_notes(notes)
            following = self.proposers[proposer].on_answer(str(at), message)
            if following is not None:
                self._send(proposer, following)
            result = self.proposers[proposer].result
            if result is not None and self.proposers[proposer].request is None:
                self._on_result(proposer, result)
        self._forget(proposer)

    def _stored(self, at: int) -> None:
        place = self.places[at]
        assert place.storing is not None
        self.places[at] = VoterPlace(place.state, place.state, None, place.notes | {place.storing})
        self._forget(place.storing[0])

    def _forget(self, at: int) -> None:
        """Removes the answers that the proposer ignores, and its old queries: they change nothing any more."""
        asked = _asked(self.proposers[at])
        for number, place in enumerate(self.places):
            stale = [
                note
                for note in place.notes
                if note[0] == at
                and (isinstance(note[1], VoterAnswer) or note[1].kind is Kind.QUERY)
                and (note[1].kind.value, note[1].ballot) != asked
            ]
            if stale:
                self.places[number] = place.with_notes(place.notes.difference(stale))

    # --- promises ----------------------------------------------------------------------------------------

    def _on_result(self, at: int, result: Result) -> None:
        """Records the end of an operation."""
        plan = self.scope.plans[at][self.done[at] - 1]
        data = self.proposers[at].data
        self.versions[at] = result.version
        known = dict(self.seen)
        if result.version < self.floors[at]:
            self.wrong = f"proposer {at} sees version {result.version}, {self.floors[at]} was confirmed"
        elif known.get(result.version, result.data) != result.data:
            self.wrong = f"two values of version {result.version}"
        if result.version:
            known[result.version] = result.data
        self.seen = tuple(sorted(known.items()))
        if plan == "w" and result.outcome is Outcome.CONFLICT:
            self.refused |= {data}
        if plan == "w" and result.outcome is Outcome.DONE and result.data != data:
            self.wrong = f"proposer {at} has confirmed {data!r} without setting it"
        if self.refused & set(known.values()):
            self.wrong = "a refused write was made"

    def healed(self) -> str:
        """Returns what does not work when no message is lost any more, "" if a new process can read and write."""
        world = self._copied(replace(self.scope, plans=(*self.scope.plans, "rw"), slow_disks=False))
        at = len(world.proposers)
        world.proposers.append(self.parts.proposer(self.scope.voters, b"Z"))
        for counts in (world.lives, world.done, world.versions, world.floors):
            counts.append(0)
        world.places = [VoterPlace(each.state, each.state, None, frozenset()) for each in world.places]
        for _ in "rw":
            world._begin(at)
            for _round in range(HEAL_ROUNDS):
                world._deliver_all(at)
                if world.proposers[at].request is None:
                    break
                world._send(at, world.proposers[at].again())
        result = world.proposers[at].result
        if world.wrong or result is None or result.outcome is not Outcome.DONE:
            return world.wrong or f"a new process cannot write: {result}"
        return ""

    def _deliver_all(self, proposer: int) -> None:
        """Delivers the messages of one proposer until there are none."""
        while True:
            waiting = [
                (at, note)
                for at, place in enumerate(self.places)
                for note in place.notes
                if note[0] == proposer
            ]
            if not waiting:
                return
            for at, note in waiting:
                if note in self.places[at].notes:
                    self._arrive(at, note, False)


def _asked(proposer: Proposer) -> tuple[int, Ballot] | None:
    request = proposer.request
    return (request.kind.value, request.ballot) if request is not None else None


def _accepted(proposer: Proposer, voter: str) -> tuple[int, bytes]:
    """Returns the ballot that the voter has accepted by its answer, (-1, b"") without an answer."""
    state = proposer.answers.get(voter)
    return state.accepted if state is not None else (-1, b"")


def life(proposer: int, number: int) -> bytes:
    """Returns the name of a proposer's process."""
    return b"%c%d" % (ord("A") + proposer, number)
