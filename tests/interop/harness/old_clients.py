"""The JMS clients 1.0 to 1.5 (javax.jms), which run the scenarios of newer ones."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from functools import cache

from .tools import CACHE, JAVA_PROJECT, maven

OLD_VERSIONS = ("1.4.0", "1.5.6")
PREFIXES = ";anycastPrefix=jms.queue.;multicastPrefix=jms.topic."
PROJECT = JAVA_PROJECT.parent / "java-1x"
# They ask by the core API for what these clients do not have: routing types, queues with options; Driver has AMQP, too.
LEFT_OUT = ("Addresses", "Driver", "Fleet", "Kinds", "Queues")
CHANGES = (
    (re.compile(r"\bjakarta\.jms\b"), "javax.jms"),
    (re.compile(r"((?:[a-z0-9]+\.)*SimpleString)\.of\("), r"new \1("),
    (re.compile(r"\bAddresses\.class, Queues\.class, "), ""),
)


@cache
def old_class_path(version: str) -> str:
    """The class path of the scenarios with that client; compiled when their sources have changed."""
    built = CACHE / f"interop-java-{version}"
    paths = [path for path in sorted(JAVA_PROJECT.rglob("*.java")) if path.stem not in LEFT_OUT]
    pom = PROJECT / "pom.xml"
    digest = hashlib.sha256(repr(CHANGES).encode())
    for path in (pom, *paths):
        digest.update(path.read_bytes())
    stamp = built / "digest"
    if not stamp.exists() or stamp.read_text() != digest.hexdigest():
        for name in ("source", "classes"):
            shutil.rmtree(built / name, ignore_errors=True)
        (built / "source").mkdir(parents=True)
        for path in paths:
            text = path.read_text()
            for old, new in CHANGES:
                text = old.sub(new, text)
            (built / "source" / path.name).write_text(text)
        maven("-f", str(pom), f"-Dclient={version}", "compile")
        stamp.write_text(digest.hexdigest())
    return f"{built / 'classes'}{os.pathsep}{built / 'lib'}{os.sep}*"
