"""One request of management about the configuration: checked and written by `begin`, then applied by the reloader, and
answered by `end`."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

from atalanta.app.changes.configuration_changes import ConfigurationChanges
from atalanta.app.changes.history import KeptChange
from atalanta.app.changes.listing import listing
from atalanta.app.changes.verdict import FilesVerdict, findings, judge
from atalanta.app.changes.written_file import put_back, replace_written
from atalanta.app.startup_error import StartupError
from atalanta.config.changes.elements import elements_of
from atalanta.config.changes.picture import picture
from atalanta.config.changes.request import (
    ADD,
    CHANGE,
    REMOVE,
    Change,
    ChangeRefused,
    read_request,
    read_undo,
)
from atalanta.config.changes.restart import restart_reason
from atalanta.config.changes.texts import Texts
from atalanta.config.checks.findings import Finding
from atalanta.kernel.settings import configuration_request as requests
from atalanta.kernel.settings.configuration_request import (
    ConfigurationAnswer,
    ConfigurationOutcome,
    ConfigurationRequest,
)
from atalanta.runtime.lifecycle.reloader import Reloaded
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.app")

UNDO: Final = "undo"
INVERSE: Final = {ADD: REMOVE, REMOVE: ADD, CHANGE: CHANGE}
DONE: Final = {ADD: "is added", CHANGE: "is changed", REMOVE: "is removed"}
# What depends on the state of the node.
IF_EMPTY: Final = "is removed when its store-and-forward queues are empty: else at a later reload, or the restart"
IF_BOUND: Final = "is added, unless groups are bound here already: then it counts after a restart"
WORDS_MAX: Final = 1_000


class ConfigurationChangeAttempt:
    """The request of one caller. `by` is the operator's address: the one that the console tells, else the caller's."""

    def __init__(self, changes: ConfigurationChanges, request: ConfigurationRequest) -> None:
        self.changes = changes
        self.request = request
        self.by = request.remote
        self.asked: list[Change] = []
        self.described: list[dict[str, object]] = []  # the changes, as the history has them
        self.undoes: KeptChange | None = None
        self.result: object = None
        self.before: Texts | None = None
        self.answer: dict[str, object] = {}
        self.kept: KeptChange | None = None
        self.replaced: dict[Path, bytes | None] = {}  # what the written files had before
        self.former: tuple[dict[Path, bytes], str] = ({}, "")  # what counted until the restart before

    # --- first step -------------------------------------------------------------------------------

    def begin(self) -> Reloaded | None:
        """Implements ConfigurationAttempt.begin."""
        steps: dict[str, Callable[[], Reloaded | None]] = {
            requests.LIST: self._list,
            requests.HISTORY: self._history,
            requests.DOWNLOAD: self._download,
            requests.PREVIEW: self._change,
            requests.CHANGE: self._change,
            requests.UNDO: self._undo,
        }
        try:
            return steps[self.request.kind]()
        except ChangeRefused as error:
            self._abandon()
            self._refuse(str(error))
            return None
        except Exception:
            self._abandon()  # the reloader tells of the mistake
            raise

    def _abandon(self) -> None:
        """Puts back what this request has written so far."""
        self._restore()
        self.replaced = {}
        self._forget()

    def _list(self) -> None:
        self.result = listing(self.changes)

    def _history(self) -> None:
        self.result = [each.as_json() for each in reversed(self.changes.history.read())]

    def _download(self) -> None:
        texts = self.changes.texts()
        others = [file for file in texts.files if file != texts.path and texts.of(file) is not None]
        self.result = {
            "file": texts.path.name,
            "text": texts.masked(texts.path),
            "more": [{"file": file.name, "text": texts.masked(file)} for file in others],
        }

    def _change(self) -> Reloaded | None:
        asked = read_request(self.request.text)
        self.by = asked.by or self.by
        self.asked = asked.changes
        self.described = [each.as_json() for each in asked.changes]
        texts = self._opened(asked.digest)
        if texts is None:
            return None
        return self._prepare(texts, texts.changed(asked.changes))

    def _undo(self) -> Reloaded | None:
        wanted, digest, by = read_undo(self.request.text)
        self.by = by or self.by
        kept = self.changes.history.find(wanted)
        if kept is None:
            raise ChangeRefused(f"there is no change '{wanted}': the last 20 are kept")
        if kept.undone:
            raise ChangeRefused(f"the change '{wanted}' was taken back already")
        if not kept.places:
            raise ChangeRefused(f"the change '{wanted}' is too large to be taken back by itself: change the elements")
        self.undoes = kept
        self.asked = inverse(kept.changes)
        self.described = [{"action": UNDO, "kind": each.kind, "name": each.name, "id": kept.id} for each in self.asked]
        texts = self._opened(digest)
        if texts is None:
            return None
        return self._prepare(texts, texts.taken_back(kept.hunks()))

    def _opened(self, digest: str) -> Texts | None:
        """Returns the texts that count now; None if the caller has read others, and then the answer says how they
        differ."""
        texts = self.changes.texts()
        off = self.changes.why_off(texts)
        if off:
            raise ChangeRefused(off)
        if digest == texts.digest:
            return texts
        seen = self.changes.seen(digest)
        self._refuse("the file has changed since it was read: look at it again, and repeat the change")
        self.answer["digest"] = texts.digest
        self.answer["difference"] = "" if seen is None else seen.differences(texts)
        return None

    def _prepare(self, before: Texts, after: Texts) -> Reloaded | None:
        """Checks the changed texts, and writes them unless it is a preview."""
        self.before = before
        if before.digest == after.digest:
            raise ChangeRefused("nothing is different: the file has these values already")
        self._check_users(after)
        changes = self.changes
        known: list[Finding] | None = None
        picture_before: dict[str, object] | None = None
        with contextlib.suppress(StartupError):  # the files as they are have problems, which the change may repair
            known, configuration = findings(changes.started, changes.storage, before.contents_all())
            picture_before = picture(configuration)
        verdict = judge(changes.started, changes.storage, after.contents_all(), known)
        touched = [file for file in after.files if before.of(file) != after.of(file)]
        why = changes.why_not_written(before, touched)
        self.answer = self._answer(before, after, verdict, picture_before)
        self.answer["why_not_written"] = why
        if verdict.errors or verdict.reloaded is None:
            self._refuse("; ".join(verdict.errors)[:WORDS_MAX])
            return None
        if self.request.kind == requests.PREVIEW:
            return None
        self._write(before, after, touched, why)
        return verdict.reloaded

    def _check_users(self, after: Texts) -> None:
        """Refuses to remove what others use."""
        removed = [each for each in self.asked if each.action == REMOVE]
        if not removed:
            return
        left = elements_of(after.tree, [], after.own_path.name, removed)
        for change in removed:
            users = [user for element in left if element.key == (change.kind, change.name) for user in element.used_by]
            if users:
                raise ChangeRefused(f"{change.what} is used by {', '.join(users)}: change or remove that first")

    def _answer(
        self, before: Texts, after: Texts, verdict: FilesVerdict, picture_before: dict[str, object] | None
    ) -> dict[str, object]:
        now: list[str] = []
        later: list[str] = []
        picture_after: dict[str, object] | None = None
        if verdict.configuration is not None:
            picture_after = picture(verdict.configuration)
            for change in self.asked:
                why = restart_reason(self.changes.started, verdict.configuration, change)
                what = f"{change.what} {DONE[change.action]}"
                if change.kind == "grouping-handler" and change.action == ADD:
                    what = f"{change.what} {IF_BOUND}"
                elif change.kind == "cluster-connection" and change.action == REMOVE and not why:
                    what = f"{change.what} {IF_EMPTY}"
                if why:
                    later.append(f"{what}: {why}")
                else:
                    now.append(what)
        return {
            "digest": after.digest,
            "difference": before.differences(after),
            "problems": verdict.problems,
            "now": now,
            "after_restart": later,
            "written": False,
            "why_not_written": "",
            "refused": "",
            "picture": {"before": picture_before, "after": picture_after},
        }

    def _write(self, before: Texts, after: Texts, touched: list[Path], why: str) -> None:
        """Writes the files, or lets the texts count until the restart. Keeps the change before: after a crash between,
        what is not in the file is not taken back."""
        changes = self.changes
        self.kept = kept = KeptChange(
            uuid.uuid4().hex[:12],
            int(time.time() * 1000),
            self.request.user,
            self.by,
            self.described,
            str(self.answer["difference"]),
            not why,
            places={name: [each.as_json() for each in found] for name, found in before.places(after).items()},
        )
        self.former = (changes.kept, changes.base)
        try:
            changes.history.add(kept)
        except OSError as error:
            self.kept = None
            raise ChangeRefused(f"the change cannot be kept in the data folder: {error.strerror or error}") from error
        if not why:
            why = self._replace(before, after, touched)
        if why:
            changes.keep(after)
            kept.written = False
            with contextlib.suppress(OSError):
                changes.history.mark(kept, False)
        self.answer["written"] = not why
        self.answer["why_not_written"] = why

    def _replace(self, before: Texts, after: Texts, touched: list[Path]) -> str:
        """Replaces the files. Returns why that is not possible, and then they are as before."""
        if self.changes.written().digest != before.digest:
            raise ChangeRefused("the file has changed since it was read: look at it again, and repeat the change")
        for file in touched:
            data = after.of(file)
            assert data is not None
            try:
                replace_written(file, data, before.path)
            except OSError as error:
                self._restore()
                self.replaced = {}
                return f"{file.name} cannot be written: {error.strerror or error}"
            self.replaced[file] = before.of(file)
        return ""

    # --- second step ------------------------------------------------------------------------------

    def end(self, problem: str) -> ConfigurationAnswer:
        """Implements ConfigurationAttempt.end."""
        if self.result is not None:
            return ConfigurationAnswer(self.result)
        if not self.answer:
            return ConfigurationAnswer(why="the configuration was not read")
        if problem:
            self._take_back(problem)
        elif self.kept is not None and self.undoes is not None:
            with contextlib.suppress(OSError):
                self.changes.history.mark(self.undoes, True)
        return ConfigurationAnswer(self.answer, outcome=self._outcome())

    def _take_back(self, problem: str) -> None:
        """Puts the former files back after the node could not apply the new ones."""
        failed = self._restore()
        self.changes.kept, self.changes.base = self.former
        self._forget()
        back = f"; the former file could not be put back: {failed}" if failed else "; the former file is back"
        self._refuse(f"{problem}{back if self.replaced else ', and nothing has changed'}")
        self.answer.update(now=[], after_restart=[], written=False)
        if self.before is not None:
            self.answer["digest"] = self.before.digest

    def _restore(self) -> str:
        """Gives the written files their former bytes again. Returns why that is not possible, else ""."""
        for file, data in self.replaced.items():
            try:
                put_back(file, data)
            except OSError as error:
                return f"{file.name}: {error.strerror or error}; its former text is in {file.name}.former"
        return ""

    def _forget(self) -> None:
        if self.kept is not None:
            try:
                self.changes.history.drop(self.kept)
            except OSError as error:
                log_event(log, "configuration_changes_unwritable", {"why": error.strerror or error})
            self.kept = None

    def _refuse(self, why: str) -> None:
        if not self.answer:
            self.answer = refusal(why)
        self.answer["refused"] = why

    def _outcome(self) -> ConfigurationOutcome | None:
        if self.request.kind == requests.PREVIEW:
            return None
        what = "; ".join(f"{each['action']} {each['kind']} '{each['name']}'" for each in self.described)
        later = self.answer["after_restart"]
        return ConfigurationOutcome(
            self.by,
            what[:WORDS_MAX],
            str(self.answer["refused"])[:WORDS_MAX],
            str(self.answer["why_not_written"]),
            "; ".join(later if isinstance(later, list) else [])[:WORDS_MAX],
            "" if self.undoes is None else self.undoes.id,
        )


def refusal(why: str) -> dict[str, object]:
    """Returns the answer to a change that is refused before it was looked at."""
    return {
        "digest": "",
        "difference": "",
        "problems": [],
        "now": [],
        "after_restart": [],
        "written": False,
        "why_not_written": "",
        "refused": why,
        "picture": {"before": None, "after": None},
    }


def inverse(described: list[dict[str, object]]) -> list[Change]:
    """Returns what an undo of these changes does to the elements, the last first."""
    found: list[Change] = []
    for each in reversed(described):
        values = each.get("values")
        names = values if isinstance(values, dict) else {}
        action = INVERSE.get(str(each["action"]), CHANGE)
        found.append(Change(action, str(each["kind"]), str(each["name"]), dict.fromkeys(names)))
    return found
