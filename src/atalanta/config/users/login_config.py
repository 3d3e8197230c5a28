"""Artemis' `login.config` beside the broker.xml: the login modules and their user files.

PropertiesLoginModule, TextFileCertificateLoginModule and GuestLoginModule are supported, one of each, and
LDAPLoginModule, several. Other modules (Kerberos, SCRAM) are problems. Otherwise users would be refused, or others
accepted, without a visible reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from atalanta.config.problems import Report, nearest
from atalanta.config.users.ldap_options import LDAP, LdapOptions
from atalanta.config.xml.properties import substitute
from atalanta.files.regular import read_regular
from atalanta.kernel.security.directory import DirectoryConfig
from atalanta.kernel.security.login_modules import (
    CERTIFICATE,
    DIRECTORY,
    FLAGS,
    GUEST,
    PASSWORD,
    Guest,
)

LOGIN_FILE: Final = "login.config"
DOMAIN: Final = "activemq"
FILE_BYTES_MAX: Final = 1024 * 1024
PROPERTIES: Final = "PropertiesLoginModule"
CERTIFICATES: Final = "TextFileCertificateLoginModule"
SUBJECT_OPTION: Final = "org.apache.activemq.jaas.textfiledn.user"
SUBJECT_ROLE_OPTION: Final = "org.apache.activemq.jaas.textfiledn.role"
GUESTS: Final = "GuestLoginModule"
GUEST_USER_OPTION: Final = "org.apache.activemq.jaas.guest.user"
GUEST_ROLE_OPTION: Final = "org.apache.activemq.jaas.guest.role"
STRICT_OPTION: Final = "credentialsInvalidate"
NAMELESS_OPTION: Final = "atalanta.guest.nameless"  # of ours: for what activemq.xml calls anonymous
KINDS: Final = {PROPERTIES: PASSWORD, CERTIFICATES: CERTIFICATE, GUESTS: GUEST, LDAP: DIRECTORY}
USER_OPTION: Final = "org.apache.activemq.jaas.properties.user"
ROLE_OPTION: Final = "org.apache.activemq.jaas.properties.role"
# Option of Artemis -> its name in ActiveMQ Classic.
CLASSIC_OPTIONS: Final = {
    option: option.removesuffix("role") + "group" for option in (ROLE_OPTION, GUEST_ROLE_OPTION, SUBJECT_ROLE_OPTION)
}
QUOTES: Final = 'options are name="value": a value with blanks or signs needs the quotes'
# A comment without an end extends to the end of the file. There is none in a string: "ldap://host".
STRING: Final = r'"(?:[^"\\\n]|\\.)*"'
COMMENT: Final = re.compile(rf"{STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# A quote alone has no end.
TOKEN: Final = re.compile(rf'{STRING}|[{{}};="]|[^\s{{}};="]+')


@dataclass
class UserFileNames:
    """The user files of a login.config. `modules` are (kind, flag) in order. `subjects` and `subject_roles` belong
    to TextFileCertificateLoginModule."""

    users: str = "artemis-users.properties"
    roles: str = "artemis-roles.properties"
    subjects: str = ""
    subject_roles: str = ""
    modules: list[tuple[str, str]] = field(default_factory=list)
    guest: Guest | None = None
    directories: list[DirectoryConfig] = field(default_factory=list)

    @property
    def passwords(self) -> bool:
        """Returns whether users of the properties files can log in."""
        return not self.modules or any(kind == PASSWORD for kind, _ in self.modules)


@dataclass
class Module:
    """A login module of an entry, with its line; `ended` by its semicolon. `behind`: what follows this option, or the
    class, cannot be read."""

    name: str
    line: int
    options: dict[str, str] = field(repr=False)  # one may be a password
    flag: str = ""
    ended: bool = True
    behind: str = ""


def read_login_config(
    folder: Path,
    report: Report,
    warnings: list[str],
    domain: str = "",
    values: Mapping[str, str] | None = None,
) -> UserFileNames:
    """Reads the names of the user files; unsupported modules and options are problems.

    `domain` is the entry of an acceptor's securityDomain or of bootstrap.xml, which must exist; "" is the default one.
    `values` replace `${name}` in the options of a directory; None: the caller needs no directory.
    """
    path = folder / LOGIN_FILE
    found = UserFileNames()
    try:
        text = read_regular(path, FILE_BYTES_MAX)[:FILE_BYTES_MAX].decode("utf-8", "replace")
    except FileNotFoundError:
        if domain:
            text = f"is missing: securityDomain '{domain}', or the domain of bootstrap.xml, is an entry of it"
            report.problem(str(path), 0, text)
        return found
    except OSError as error:
        report.problem(str(path), 0, f"cannot be read: {error.strerror}")
        return found
    parsed = parse_login_config(text)
    entries = parsed.entries
    for line, fault in parsed.faults:
        report.problem(str(path), line, fault)
    if not entries:
        hint = f"write one, or delete the file: then the users are those of {found.users}"
        report.problem(str(path), 0, "no entry can be read: nobody could log in", hint)
        return found
    modules = modules_of(entries, domain)
    if domain and domain not in entries:
        near = nearest(domain, entries)
        text = f"has no entry '{domain}', which is an acceptor's securityDomain, or the domain of bootstrap.xml"
        report.problem(str(path), 0, text, near or "")
        return found
    if not modules:
        name = domain or (DOMAIN if DOMAIN in entries else next(iter(entries)))
        hint = "a module is its class, a flag and options, and ends with ';'"
        report.problem(str(path), 0, f"no login module can be read in the entry '{name}'", hint)
        return found
    for module in modules:
        simple = module.name.rpartition(".")[2]
        if not module.ended:
            report.problem(str(path), module.line, f"{simple} does not end with a semicolon")
        if module.behind and (simple in KINDS or module.flag in FLAGS):
            text = f"{simple}: what follows {module.behind} cannot be read"
            report.problem(str(path), module.line, text, QUOTES)
        if simple == LDAP:
            _take_directory(found, module, path, report, warnings, values)
        elif simple in KINDS:
            _take(found, module, simple, path, report)
        elif module.flag in FLAGS:
            report.problem(
                str(path),
                module.line,
                f"login module {simple} is not supported",
                f"{PROPERTIES}, {CERTIFICATES}, {GUESTS} and {LDAP} are",
            )
        else:  # it may be the rest of a value: nothing of it is shown
            report.problem(str(path), module.line, "what follows a ';' is no login module", QUOTES)
    if found.guest is not None and not found.guest.strict:
        warnings.append(
            f"{path}: {GUESTS} also accepts clients with a wrong password, as user '{found.guest.user}':"
            f" {STRICT_OPTION}=true refuses them"
        )
    return found


def modules_of(entries: dict[str, list[Module]], domain: str) -> list[Module]:
    """Returns the modules of an entry; "" is the default one, or else the first of the file."""
    if domain:
        return entries.get(domain, [])
    return entries.get(DOMAIN, next(iter(entries.values()), []))


def _take_flag(found: UserFileNames, module: Module, simple: str, path: Path, report: Report) -> None:
    if module.flag not in FLAGS:
        report.problem(
            str(path), module.line, f"{simple}: '{module.flag}' is none of {', '.join(FLAGS)}"
        )
    found.modules.append((KINDS[simple], module.flag))


def _take_directory(
    found: UserFileNames,
    module: Module,
    path: Path,
    report: Report,
    warnings: list[str],
    values: Mapping[str, str] | None,
) -> None:
    _take_flag(found, module, LDAP, path, report)
    if values is None:
        return

    def problem(text: str, hint: str) -> None:
        report.problem(str(path), module.line, text, hint)

    options: dict[str, str] = {}
    for name, text in module.options.items():
        try:
            options[name] = substitute(text, values)
        except KeyError as missing:
            variable = missing.args[0]
            problem(f"{name}: '${{{variable}}}' has no value", f"set the environment variable {variable}")
        except ValueError as error:
            problem(f"{name}: {error}", "")
    found.directories.append(
        LdapOptions(
            module.name,
            options,
            path.parent,
            values,
            problem,
            lambda text: warnings.append(f"{path}:{module.line}: {text}"),
        ).read()
    )


def _take(found: UserFileNames, module: Module, simple: str, path: Path, report: Report) -> None:
    kind = KINDS[simple]
    if any(known == kind for known, _ in found.modules):
        report.problem(str(path), module.line, f"{simple} is given twice")
    _take_flag(found, module, simple, path, report)
    options = module.options
    for option, classic in CLASSIC_OPTIONS.items():
        if classic in options:
            options.setdefault(option, options[classic])
    if kind == PASSWORD:
        found.users = options.get(USER_OPTION, found.users)
        found.roles = options.get(ROLE_OPTION, found.roles)
        return
    if kind == GUEST:
        strict = options.get(STRICT_OPTION, "").lower() == "true"
        user = options.get(GUEST_USER_OPTION, "guest")
        nameless = options.get(NAMELESS_OPTION, "").lower() == "true"
        found.guest = Guest(user, options.get(GUEST_ROLE_OPTION, "guests"), strict, nameless)
        for name, value in ((GUEST_USER_OPTION, user), (GUEST_ROLE_OPTION, found.guest.role)):
            if not value:
                report.problem(str(path), module.line, f"{simple}: {name} is empty")
        return
    found.subjects = options.get(SUBJECT_OPTION, "")
    found.subject_roles = options.get(SUBJECT_ROLE_OPTION, "")
    for name, value in (
        (SUBJECT_OPTION, found.subjects),
        (SUBJECT_ROLE_OPTION, found.subject_roles),
    ):
        if not value:
            report.problem(str(path), module.line, f"{simple} needs {name}")


@dataclass
class LoginText:
    """The entries of a login.config, and where it is malformed: lines and texts, without any value of an option."""

    entries: dict[str, list[Module]] = field(default_factory=dict)
    faults: list[tuple[int, str]] = field(default_factory=list)


def parse_login_config(text: str) -> LoginText:
    """Parses entries by name: `name { Class flag key=value …; … };`. Java refuses a file that is malformed anywhere."""
    # Comments keep their line ends, so that line numbers stay correct.
    text = COMMENT.sub(_without_comment, text)
    found = LoginText()
    inside: list[Module] | None = None
    words: list[tuple[str, int]] = []
    line, counted = 1, 0
    for match in TOKEN.finditer(text):
        word = match.group()
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if word == "{":
            inside = _begin(found, words, inside is not None, line)
        elif word == "}":
            if inside is None:
                found.faults.append((line, "'}' ends no entry"))
            elif words:
                inside.append(replace(_module(words), ended=False))
            inside = None
        elif word == ";":
            if words and inside is not None:
                inside.append(_module(words))
            elif words:
                found.faults.append((line, f"a module is in no entry: write {DOMAIN} {{ in front of it"))
        else:
            words.append((word, line))
            continue
        words = []
    if inside is not None or words:
        found.faults.append((line, "the last entry does not end: a module ends with ';', an entry with '};'"))
    return found


def _begin(found: LoginText, words: list[tuple[str, int]], within: bool, line: int) -> list[Module]:
    """Begins an entry; returns its modules."""
    name = _plain(words[-1][0]) if words else ""
    if within or len(words) != 1:
        found.faults.append((line, "'{' is not behind the name of an entry; a value with braces needs quotes"))
    elif name in found.entries:
        found.faults.append((line, f"the entry '{name}' is there twice"))
    return found.entries.setdefault(name, [])


def _without_comment(match: re.Match[str]) -> str:
    found = match.group()
    return found if found.startswith('"') else "\n" * found.count("\n")


def _plain(word: str) -> str:
    """Returns a word without its quotes; in them a backslash makes the next character an ordinary one."""
    if not word.startswith('"'):
        return word
    return re.sub(r"\\(.)", r"\1", word[1:-1])


def _module(words: list[tuple[str, int]]) -> Module:
    """Returns the module; `behind` names what stands before the part that is no option: it may be one's value."""
    name = _plain(words[0][0])
    module = Module(name, words[0][1], {}, _plain(words[1][0]).lower() if len(words) > 1 else "")
    before = name.rpartition(".")[2]
    for at in range(2, len(words), 3):
        option = [word for word, _ in words[at : at + 3]]
        if len(option) < 3 or option[0] == "=" or option[1] != "=" or option[2][0] in "='" or option[2] == '"':
            module.behind = before if option[1:2] != ["="] or option[0] == "=" else _plain(option[0])
            break
        before = _plain(option[0])
        module.options[before] = _plain(option[2])
    return module
