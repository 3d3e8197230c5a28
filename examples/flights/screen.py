"""What the user sees while the demo works: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.text import Text

PLAIN_S = 5.0
REFRESH_PER_S = 8


class Bar:
    """A named counter that grows to `total`; `value` is asked when the screen is drawn."""

    def __init__(self, name: str, total: int, value: Callable[[], int]) -> None:
        self.name = name
        self.total = total
        self.value = value

    def text(self) -> str:
        """For a plain line."""
        return f"{self.name} {self.value():,}/{self.total:,}"


class Screen:
    """A context in which `say` prints lines above the bars of `show`."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.begun = time.monotonic()
        self._bars: list[tuple[Bar, TaskID]] = []
        self._progress = Progress(
            TextColumn("  {task.description}", justify="left"),
            BarColumn(bar_width=36),
            MofNCompleteColumn(),
            Elapsed(),
            console=console,
        )
        self._status = Text("")
        self._live: Live | None = None
        self._plain_at = self.begun
        self._plain_text = ""

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            self._live = Live(
                Group(self._progress, self._status), console=self.console, refresh_per_second=REFRESH_PER_S
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.draw()
        if self._live is not None:
            self._status.plain = ""
            self._live.stop()
            self._live = None

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self.begun

    def show(self, bars: list[Bar]) -> None:
        """Adds bars."""
        for bar in bars:
            self._bars.append((bar, self._progress.add_task(bar.name, total=bar.total)))

    def say(self, text: str, style: str = "") -> None:
        """One line that stays."""
        self.console.print(f"[dim]{self.seconds:6.1f} s[/dim]  {text}", style=style, highlight=False, soft_wrap=True)

    def status(self, text: str) -> None:
        """What is going on now; below the bars."""
        self._status.plain = f"  {text}"
        if self._live is None:
            self.say(text)

    def draw(self) -> None:
        """Brings the bars up to date; to be called now and then."""
        for bar, task in self._bars:
            self._progress.update(task, completed=min(bar.value(), bar.total))
        now = time.monotonic()
        if self._live is None and self._bars and now - self._plain_at >= PLAIN_S:
            text = ", ".join(bar.text() for bar, _ in self._bars)
            if text != self._plain_text:
                self._plain_at, self._plain_text = now, text
                self.say(text)
