"""The store of an activemq.xml: its folder, its lock, and whether it says that other brokers use it, too.

Source of the folders and of the lockers: BrokerService, KahaDBPersistenceAdapter, SharedFileLocker of Classic.
"""

from __future__ import annotations

import re
from os.path import join
from pathlib import Path
from typing import Final

from atalanta.config.activemq import tables
from atalanta.config.activemq.beans import Beans
from atalanta.config.activemq.elements import Core, Elements, only
from atalanta.config.folder_owner import owner_of
from atalanta.config.xml.tree import XmlElement, below

JOURNAL: Final = "journal"
NODE_ID_NAME: Final = "node-id"
DEFAULT_FOLDER: Final = "KahaDB"  # below the broker's own
NO_FOLDER_NAME: Final = re.compile(r"[^a-zA-Z0-9._\-:]")  # Classic replaces these in a brokerName
# A segment of the journal is filled with zeros before its first record: one of a GiB would take seconds.
SEGMENT_BYTES_MAX: Final = 64 << 20
IN_MEMORY: Final = "memoryPersistenceAdapter"
KAHADB_FILES: Final = "db-*.log"
KAHADB: Final = ("kahaDB", "kahaDBStore")
REPLICATED: Final = "replicatedLevelDB"
# Parts of the classes of stores, for those that are written as beans.
REPLICATED_CLASS: Final = "leveldb.replicated."
DATABASE_CLASSES: Final = ("store.jdbc.", "JournalPersistenceAdapter")
SHARED_FILE: Final = "shared-file-locker"
SHARED_FILE_CLASS: Final = "SharedFileLocker"
DATA_SOURCES: Final = ("dataSource", "lockDataSource")
LOCKERS: Final = ("locker", "databaseLocker")
KEPT: Final = "messages are kept in this broker's journal; those of Classic's store are not read"


class StoreFolder:
    """The folder of a store. `owner`: the broker's name, if the folder is not its own yet; `left`: another folder that
    is the broker's, with a journal that is not served (see `store_folder`)."""

    def __init__(self, path: str, owner: str = "", left: str = "") -> None:
        self.path = path
        self.owner = owner
        self.left = left


def store_folder(base: Path, data: str, name: str) -> StoreFolder:
    """Returns the folder of a broker whose file names no store: `KahaDB` in a folder of its name, as in Classic.

    Earlier versions gave the data directory itself to every broker. A journal there stays that of its broker: the first
    one that starts writes its name into it. A relative `data` is below `base`.
    """
    own = join(data, NO_FOLDER_NAME.sub("_", name).strip(), DEFAULT_FOLDER)
    if not (base / data / JOURNAL / NODE_ID_NAME).exists():
        return StoreFolder(own)
    owner = owner_of(base / data / JOURNAL)
    if (base / own / JOURNAL / NODE_ID_NAME).exists():
        return StoreFolder(own, left=data if owner == name else "")
    return StoreFolder(data, "" if owner else name) if owner in ("", name) else StoreFolder(own)


class Stores:
    """Reads `<persistenceAdapter>` and `<persistenceFactory>`. `folder` is "" if no store names one.

    `fails_if_locked`: the broker ends when another one has the store, and does not wait for it.
    """

    def __init__(self, elements: Elements, core: Core, beans: Beans, base: Path) -> None:
        """`base` is the folder of relative paths."""
        self.elements = elements
        self.base = base
        self.core = core
        self.beans = beans
        self.folder = ""
        self.persistent = True
        self.fails_if_locked = False

    def read(self, section: XmlElement) -> None:
        """Reads the adapter."""
        node = only(section)
        if node is not None and self.persistent:
            self._find_class(node)
        if node is None or node.name not in (*tables.STORES, IN_MEMORY):
            self.elements.children(section, {})
        elif node.name == IN_MEMORY:
            self.persistent = False
        else:
            if self.persistent:  # else Classic has no use for it either
                self._find_others(node)
            self._adapter(node)
            self._lock(node)

    def factory(self, section: XmlElement) -> None:
        """Reads a factory, which makes the adapter in older files."""
        for node in section.children if self.persistent else []:
            for each in self.beans.reachable(self.beans.meant(node)):
                self._find_database(each)
        self.elements.finding(section, section.name, KEPT, True)

    def _adapter(self, node: XmlElement) -> None:
        """Reads the folder, and names what has no effect."""
        if node.name in KAHADB:
            self._kahadb(node)
            return
        self.folder = node.attributes.get("directory", "") if node.name not in tables.DATABASES else ""
        if node.name != REPLICATED or not self.persistent:
            self.elements.finding(node, node.name, KEPT, True)

    def _kahadb(self, node: XmlElement) -> None:
        names = ("directory", "journalMaxFileLength", *LOCKERS, *tables.LOCK)
        values = self.elements.values(node, names, tables.KAHADB_SILENT, {}, tables.KAHADB_FIXED)
        self.elements.children(node, dict.fromkeys(LOCKERS, lambda _: None), tables.KAHADB_CHILDREN_SILENT)
        size = self.elements.size(node, values, "journalMaxFileLength")
        if size is not None:
            if size > SEGMENT_BYTES_MAX:
                name = "journalMaxFileLength"
                self.elements.finding(node, f"{node.name} {name}", tables.FILE_SIZE_SILENT[name])
            self.core.put(node, "journal-file-size", str(min(size, SEGMENT_BYTES_MAX)))
        self.folder = values.get("directory", "")
        if any((self.base / self.folder).glob(KAHADB_FILES)):
            self.elements.finding(node, node.name, f"its folder has messages: {KEPT}", True)
        else:
            self.elements.finding(node, "kahaDB", tables.STORES_SILENT["kahaDB"])

    def _lock(self, node: XmlElement) -> None:
        """Reads the options of the lock, and names what is otherwise here."""
        for name in tables.LOCK:
            if name in tables.USE_LOCK and not self.elements.true(node, node.attributes, name, True):
                self.elements.finding(node, f"{node.name} {name}", tables.ALWAYS_LOCKED, True)
            elif name in tables.LOCK_WAITS and name in node.attributes:
                self.elements.finding(node, f"{node.name} {name}", tables.LOCK_SILENT[name])
        self._fail_if_locked(node, tables.FAIL_IF_LOCKED[1])
        for section in [each for name in LOCKERS for each in node.all(name)]:
            for locker in section.all(SHARED_FILE):
                self.elements.values(locker, tables.FAIL_IF_LOCKED, tables.LOCKER_SILENT)
                self._fail_if_locked(locker, tables.FAIL_IF_LOCKED[0])

    def _fail_if_locked(self, node: XmlElement, name: str) -> None:
        self.fails_if_locked = self.fails_if_locked or self.elements.true(node, node.attributes, name)

    # -- what says that there are others ------------------------------------------------------------
    def _find_class(self, node: XmlElement) -> None:
        """Reports a store that is written as a Spring bean, and is one of several brokers by its class."""
        bean = self.beans.meant(node) if node.name in ("bean", "ref") else None
        nodes = self.beans.reachable(bean)
        sources = any(node.attributes.get("name") in DATA_SOURCES for node in nodes)
        for name in self.beans.classes(bean):
            database = any(each in name for each in DATABASE_CLASSES)
            if REPLICATED_CLASS in name or (database and sources and not self.beans.is_embedded(bean)):
                self.elements.others(node, f"bean {name}", KEPT, tables.WAYS_OF_PAIR)
                return

    def _find_others(self, node: XmlElement) -> None:
        """Reports what says so of a store, and of those in it (mKahaDB)."""
        for store in below(node):
            if store.name == REPLICATED:
                self.elements.others(store, store.name, KEPT, tables.WAYS_OF_PAIR)
            elif store is not node and store.name in tables.DATABASES:
                self._find_database(store)
        self._find_database(node)
        for name in LOCKERS:
            if name in node.attributes:
                self._locker(node, node, self.beans.referred(node.attributes[name]), name)
            for section in node.all(name):
                for child in section.children:
                    self._locker(node, child, self.beans.meant(child), child.name)

    def _locker(self, store: XmlElement, place: XmlElement, made: XmlElement | None, name: str) -> None:
        """Reports a locker in a database. One of a class that is not known may be that, too."""
        if made is not None and made.name == SHARED_FILE:
            return
        if any(SHARED_FILE_CLASS in each for each in self.beans.classes(made)):
            return
        sources = [*self._sources(made), *self._sources(store)] if made is not None else []
        if store.name in tables.DATABASES and all(self.beans.is_embedded(each) for each in sources):
            return  # no other process opens this database
        self.elements.others(place, name, "there is no lock in a database", tables.WAYS_OF_PAIR)

    def _find_database(self, node: XmlElement) -> None:
        """Reports a database that other brokers may reach, too. Without a data source it is an embedded one."""
        if not all(self.beans.is_embedded(each) for each in self._sources(node)):
            self.elements.others(node, f"{node.name} {DATA_SOURCES[0]}", KEPT, tables.WAYS_OF_PAIR)

    def _sources(self, node: XmlElement) -> list[XmlElement | None]:
        """Returns the data sources that the element names; None for one that is not in this file."""
        found: list[XmlElement | None] = []
        for name in DATA_SOURCES:
            if name in node.attributes:
                found.append(self.beans.referred(node.attributes[name]))
            for section in node.all(name):
                found += section.children
        return found
