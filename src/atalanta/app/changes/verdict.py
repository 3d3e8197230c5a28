"""The verdict of the readers and checks of `atalanta check` on changed files, before they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from atalanta.app.configuration_files import read_files, read_usable
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage
from atalanta.config.checks.findings import ERROR, INFORMATION, CheckedNode, Finding, Findings
from atalanta.config.checks.nodes import check_nodes
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.runtime.lifecycle.reloader import Reloaded, ReloadRefused


@dataclass
class FilesVerdict:
    """The outcome. `configuration` and `reloaded` are None if a node could not start with the files."""

    problems: list[dict[str, object]] = field(default_factory=list)
    configuration: Configuration | None = None
    reloaded: Reloaded | None = None

    @property
    def errors(self) -> list[str]:
        """Returns the texts of the errors."""
        return [str(each["text"]) for each in self.problems if each["severity"] == ERROR]


def judge(
    started: Configuration,
    storage: Storage,
    contents: Mapping[Path, bytes],
    known: list[Finding] | None,
) -> FilesVerdict:
    """Reads and checks the files with these contents. `known` are findings of the files as they are: a change does not
    answer for them."""
    verdict = FilesVerdict()
    try:
        found, configuration = findings(started, storage, contents)
        verdict.problems = [shown(each) for each in found if known is None or not _among(each, known)]
        if not verdict.errors:
            _, _, verdict.reloaded = read_usable(started, storage, contents, tells=False)
            verdict.configuration = configuration
    except StartupError as error:
        verdict.problems = of_start(error)
    except ReloadRefused as error:
        cause = error.__cause__
        if isinstance(cause, StartupError):
            verdict.problems = of_start(cause)
        else:
            verdict.problems = [problem(ERROR, 0, line) for line in error.lines]
    return verdict


def findings(
    started: Configuration, storage: Storage, contents: Mapping[Path, bytes]
) -> tuple[list[Finding], Configuration]:
    """Returns the findings about the files, and what was read. StartupError if a node could not start with them."""
    configuration, security = read_files(
        started.path,
        stored=storage.settings,
        hosted=started.ha.hosted,
        alone=started.told_alone,
        contents=contents,
    )
    node = CheckedNode(configuration, security, str(storage.node_id))
    found = Findings()
    check_nodes([node], found)
    for warning in configuration.warnings:
        found.about("warning", node, warning.removeprefix(f"{configuration.path}:"))
    for each in configuration.unsupported:
        if each.lost:
            found.found.append(Finding("warning", each.file, each.line, f"without effect: {each.name} ({each.why})"))
    kept = [each for each in found.found if each.level != INFORMATION]
    return list(dict.fromkeys(kept)), configuration


def _among(finding: Finding, known: list[Finding]) -> bool:
    """Returns whether a finding was there before; its line may be another one."""
    same = (finding.level, finding.text, finding.hint)
    return any((each.level, each.text, each.hint) == same for each in known)


def of_start(error: StartupError) -> list[dict[str, object]]:
    """Returns the problems that keep a node from starting."""
    cause = error.__cause__
    if isinstance(cause, ConfigError):
        return [
            problem(ERROR, each.line, f"{each.text} ({each.hint})" if each.hint else each.text)
            for each in cause.problems
        ]
    return [problem(ERROR, 0, line) for line in error.lines]


def shown(finding: Finding) -> dict[str, object]:
    """Returns a finding for consoles."""
    return problem(finding.level, finding.line, f"{finding.text} ({finding.hint})" if finding.hint else finding.text)


def problem(severity: str, line: int, text: str) -> dict[str, object]:
    return {"severity": severity, "line": line, "text": text}
