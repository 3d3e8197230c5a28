"""The scenarios and loads of ../java with the JMS clients of other versions, javax.jms and jakarta.jms."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from functools import cache

from .tools import CACHE, JAVA_PROJECT, maven

VERSIONS_1X = ("1.4.0", "1.5.6")
JAKARTA = "-jakarta"  # behind a version
PREFIXES = ";anycastPrefix=jms.queue.;multicastPrefix=jms.topic."
PROJECT = JAVA_PROJECT.parent / "java-versions"
MOVED = (2, 50)  # the first version in the group org.apache.artemis
# They ask by the core API for what clients 1.x do not have: routing types, queues with options; Driver has AMQP, too.
LEFT_OUT = ("Addresses", "Driver", "Fleet", "Kinds", "Queues")
TO_JAVAX = (re.compile(r"\bjakarta\.jms\b"), "javax.jms")
CHANGES = (
    (re.compile(r"((?:[a-z0-9]+\.)*SimpleString)\.of\("), r"\1.toSimpleString("),
    (re.compile(r"\bAddresses\.class, Queues\.class, "), ""),
)


def group_of(version: str) -> str:
    """Returns the Maven group of an Artemis version ("2.28.0")."""
    major, minor = version.split(".")[:2]
    return "org.apache.artemis" if (int(major), int(minor)) >= MOVED else "org.apache.activemq"


@cache
def client_class_path(version: str) -> str:
    """Returns the class path with that client ("2.28.0", "2.28.0-jakarta"); compiled when the sources have changed."""
    built = CACHE / f"interop-java-{version}"
    paths = [path for path in sorted(JAVA_PROJECT.rglob("*.java")) if path.stem not in LEFT_OUT]
    pom = PROJECT / "pom.xml"
    changes = CHANGES if version.endswith(JAKARTA) else (TO_JAVAX, *CHANGES)
    digest = hashlib.sha256(repr(changes).encode())
    for path in (pom, *paths):
        digest.update(path.read_bytes())
    stamp = built / "digest"
    if not stamp.exists() or stamp.read_text() != digest.hexdigest():
        for name in ("source", "classes", "lib"):
            shutil.rmtree(built / name, ignore_errors=True)
        (built / "source").mkdir(parents=True)
        for path in paths:
            text = path.read_text()
            for old, new in changes:
                text = old.sub(new, text)
            (built / "source" / path.name).write_text(text)
        number = version.removesuffix(JAKARTA)
        artifact = "artemis-jms-client" if number == version else "artemis-jakarta-client"
        options = (f"-Dgroup={group_of(number)}", f"-Dartifact={artifact}", f"-Dclient={number}", f"-Dbuilt={built}")
        maven("-f", str(pom), *options, "compile")
        stamp.write_text(digest.hexdigest())
    return f"{built / 'classes'}{os.pathsep}{built / 'lib'}{os.sep}*"
