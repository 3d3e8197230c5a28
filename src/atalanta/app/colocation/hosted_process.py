"""The process of one hosted backup."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from pathlib import Path

from atalanta.app.side_process import SideProcess, log_words, parent_word
from atalanta.ha.policy_elements import HostedBackup
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.app")


class HostedProcess(SideProcess):
    """The process, from `start` to `close`. An active one confirms what is under way and hands over at its end."""

    def __init__(self, broker_xml: Path, hosted: HostedBackup, guarded: bool) -> None:
        self._hosted = hosted
        form = "guarded" if guarded else "alone"
        words = [str(broker_xml), *log_words(), form, parent_word(), json.dumps(asdict(hosted))]
        super().__init__("atalanta.cli.run", "run_hosted", words)

    def started(self, pid: int) -> None:
        """Tells that the process was started."""
        log_event(log, "hosted_backup_started", {"node": self._hosted.node_id, "pid": pid})

    def ended(self, why: str) -> None:
        """Tells that it has ended by itself, or could not be started."""
        log_event(log, "hosted_backup_ended", {"node": self._hosted.node_id, "why": why})
