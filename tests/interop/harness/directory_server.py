"""A real slapd (OpenLDAP) in a process of its own, with a few users and groups.

The program is the one that is installed, or comes from the packages of Debian, unpacked into the checkout's .cache/
folder: nothing is installed, and no root is needed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.certificates import Holder
from tests.ports import free_port

from .service import Service
from .tools import CACHE, ToolMissing

# slapd, and what it is linked with that a small system lacks.
PACKAGES = ("slapd", "libldap-2.5-0", "libltdl7", "libodbc2", "libwrap0", "libargon2-1")
SUFFIX = "dc=example,dc=org"
SERVICE = f"uid=broker,ou=services,{SUFFIX}"
SERVICE_PASSWORD = "broker's password"
ADMINISTRATOR = f"cn=admin,{SUFFIX}"
ADMINISTRATOR_PASSWORD = "administrator's password"
CONFIGURATION = """{schemas}
modulepath {modules}
moduleload back_mdb
pidfile {folder}/slapd.pid
argsfile {folder}/slapd.args
{tls}
database mdb
maxsize 16777216
suffix "{suffix}"
rootdn "{administrator}"
rootpw "{administrator_password}"
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{service}" read by * none
"""
# Users by name: folder, password. Two have the same mail; "lost" has no group.
PASSWORDS = {
    "anna": ("ou=people", "anna's password"),
    "bert": ("ou=staff,ou=people", "bert's password"),
    "Carl (O\\, Brien)*": ("ou=people", "carl's password"),
    "lost": ("ou=people", "lost's password"),
}
# Groups by name: folder, members.
GROUPS = {
    "writers": ("ou=groups", "uid=anna,ou=people"),
    "readers": ("ou=groups", "uid=bert,ou=staff,ou=people"),
    "odd": ("ou=groups", "uid=Carl (O\\, Brien)*,ou=people"),
    "all": ("ou=groups", "cn=writers,ou=groups"),
    "everybody": ("ou=groups", "cn=all,ou=groups"),
    "deep": ("ou=more,ou=groups", "uid=anna,ou=people"),
}


@dataclass(frozen=True)
class Program:
    """Where slapd, its schemas and its modules are. `libraries`: a folder for the loader, or ""."""

    slapd: Path
    schemas: Path
    modules: Path
    libraries: str


@cache
def slapd() -> Program:
    """Returns the installed program, or the one of the packages; fetched on first use. ToolMissing."""
    found = shutil.which("slapd", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin{os.pathsep}/usr/libexec")
    for modules in ("/usr/lib/ldap", "/usr/lib64/openldap"):
        if found is not None and Path(modules).is_dir():
            schemas = next(each for each in ("/etc/ldap/schema", "/etc/openldap/schema") if Path(each).is_dir())
            return Program(Path(found), Path(schemas), Path(modules), "")
    root = CACHE / "slapd"
    if not (root / "usr" / "sbin" / "slapd").exists():
        _fetch(root)
    libraries = [str(path) for path in (root / "usr" / "lib").glob("*-linux-*")]
    return Program(
        root / "usr" / "sbin" / "slapd", root / "etc" / "ldap" / "schema", root / "usr" / "lib" / "ldap",
        os.pathsep.join(libraries),
    )  # fmt: skip


def _fetch(root: Path) -> None:
    """Unpacks the packages; only a complete folder gets the name."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise ToolMissing(f"there is no slapd, and no `{tool}` to fetch one (Debian: apt-get install slapd)")
    fresh = root.with_name("slapd.new")
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "packages").mkdir(parents=True)
    command = ["apt-get", "-qq", "download", *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, cwd=fresh / "packages")
    if done.returncode != 0:  # the lists may be old, or not there yet
        subprocess.run(["apt-get", "-qq", "update"], capture_output=True)
        done = subprocess.run(command, capture_output=True, text=True, cwd=fresh / "packages")
    if done.returncode != 0:
        raise ToolMissing(f"there is no slapd, and its packages cannot be fetched: {done.stderr.strip()[-300:]}")
    for package in sorted((fresh / "packages").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(package), str(fresh)], check=True)
    shutil.rmtree(root, ignore_errors=True)
    fresh.rename(root)


class DirectoryServer:
    """One slapd, over several lives with the same entries and ports. With a `holder` it has TLS at `secure_port`."""

    def __init__(self, folder: Path, holder: Holder | None = None) -> None:
        self.port = free_port()
        self.secure_port = free_port() if holder is not None else 0
        self._folder = folder
        self._program = slapd()
        self._environment = dict(os.environ)
        if self._program.libraries:
            self._environment["LD_LIBRARY_PATH"] = self._program.libraries
        self._service: Service | None = None
        (folder / "data").mkdir(parents=True)
        tls = ""
        if holder is not None:
            key = holder.key_pem(folder)
            tls = f"TLSCertificateFile {key}\nTLSCertificateKeyFile {key}\n"
        schemas = ("core", "cosine", "inetorgperson")
        text = CONFIGURATION.format(
            schemas="\n".join(f"include {self._program.schemas / name}.schema" for name in schemas),
            modules=self._program.modules,
            folder=folder,
            tls=tls,
            suffix=SUFFIX,
            administrator=ADMINISTRATOR,
            administrator_password=ADMINISTRATOR_PASSWORD,
            service=SERVICE,
        )
        self._configuration = folder / "slapd.conf"
        self._configuration.write_text(text, encoding="utf-8")
        self._add(entries())

    def _add(self, text: str) -> None:
        """Adds entries to the files of a server that does not run."""
        words = ["-T", "add", "-f", str(self._configuration)]
        command = [str(self._program.slapd), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, env=self._environment)
        if done.returncode != 0:
            raise RuntimeError(f"slapd did not take the entries:\n{done.stderr[-3000:]}")

    @property
    def url(self) -> str:
        """Its address without TLS."""
        return f"ldap://127.0.0.1:{self.port}"

    @property
    def secure_url(self) -> str:
        """Its address with TLS."""
        return f"ldaps://localhost:{self.secure_port}"

    def start(self) -> None:
        """Starts it and waits until it listens."""
        places = f"{self.url}/" + (f" ldaps://127.0.0.1:{self.secure_port}/" if self.secure_port else "")
        command = [str(self._program.slapd), "-f", str(self._configuration), "-h", places, "-d", "256"]
        self._service = Service(command, self.port, self._folder / "slapd.log", self._environment)

    def log(self) -> str:
        """What it has said since its last start: each operation, without passwords."""
        return (self._folder / "slapd.log").read_text(encoding="utf-8", errors="replace")

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        assert self._service is not None
        self._service.send(number)

    def kill(self) -> None:
        """Kills it, if it runs."""
        if self._service is not None:
            self._service.close()
            self._service = None


def entries() -> str:
    """Returns the entries as LDIF."""
    found = [f"dn: {SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n"]
    for folder in ("ou=people", "ou=staff,ou=people", "ou=groups", "ou=more,ou=groups", "ou=services"):
        name = folder.partition(",")[0].partition("=")[2]
        found.append(f"dn: {folder},{SUFFIX}\nobjectClass: organizationalUnit\nou: {name}\n")
    for name, (folder, password) in PASSWORDS.items():
        plain = name.replace("\\", "")
        found.append(
            f"dn: uid={name},{folder},{SUFFIX}\nobjectClass: inetOrgPerson\nuid: {plain}\ncn: {plain}\nsn: x\n"
            f"mail: {'one' if name in ('anna', 'lost') else 'other'}@example.org\n"
            f"seeAlso: cn=member,ou=of,{SUFFIX}\nuserPassword: {password}\n"
        )
    found.append(
        f"dn: {SERVICE}\nobjectClass: inetOrgPerson\nuid: broker\ncn: broker\nsn: x\nuserPassword: {SERVICE_PASSWORD}\n"
    )
    for name, (folder, member) in GROUPS.items():
        found.append(
            f"dn: cn={name},{folder},{SUFFIX}\nobjectClass: groupOfNames\ncn: {name}\nmember: {member},{SUFFIX}\n"
        )
    return "\n".join(found)
