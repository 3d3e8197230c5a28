"""What the environment says: which scenarios, how often, how long."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
CACHE = CHECKOUT / ".cache" / "bench"
LATENCY_REPEATS = 5


class BadSetting(ValueError):
    """An environment variable that makes no sense; the message names it."""


@dataclass(frozen=True)
class Settings:
    """BENCH_ONLY, BENCH_REPEATS, BENCH_SECONDS, BENCH_JVM_WARM_UP, BENCH_OUT, BENCH_PEER_BUILD."""

    only: tuple[str, ...] = ()
    repeats: int = 3
    seconds: float = 3.0  # of one counted window
    warm_up_seconds: float = 1.0  # before each counted window
    jvm_warm_up_seconds: float = (
        12.0  # before the first counted window of an Artemis and a scenario
    )
    out: Path = CHECKOUT / "bench"
    # The folder that holds another build's package `atalanta`: the peer instead of Artemis.
    peer_build: Path | None = None

    def command(self, scenario: str) -> str:
        """What gives the figures of one scenario again."""
        return f"BENCH_ONLY={scenario} make bench"

    def describe(self) -> str:
        """For the head of the report."""
        if self.peer_build is not None:
            return (
                f"another build of Atalanta in the place of Artemis; {self.repeats} runs each, "
                f"alternating, {self.seconds:g} s counted after {self.warm_up_seconds:g} s"
            )
        return (
            f"{self.repeats} runs each, alternating, {self.seconds:g} s counted after "
            f"{self.warm_up_seconds:g} s; every Artemis ran {self.jvm_warm_up_seconds:g} s "
            "of each kind of load before it counted"
        )


def read_settings() -> Settings:
    """Raises BadSetting."""
    usual = Settings()
    only = tuple(name.strip() for name in os.environ.get("BENCH_ONLY", "").split(",") if name)
    return Settings(
        only=only,
        repeats=int(_number("BENCH_REPEATS", usual.repeats, 1)),
        seconds=_number("BENCH_SECONDS", usual.seconds, 0.2),
        jvm_warm_up_seconds=_number("BENCH_JVM_WARM_UP", usual.jvm_warm_up_seconds, 0),
        out=Path(os.environ.get("BENCH_OUT", usual.out)).resolve(),
        peer_build=_peer_build(),
    )


def _peer_build() -> Path | None:
    """The folder of BENCH_PEER_BUILD. BadSetting unless it holds the package, or if results would be overwritten."""
    text = os.environ.get("BENCH_PEER_BUILD")
    if not text:
        return None
    if not (Path(text) / "atalanta" / "__init__.py").is_file():
        raise BadSetting(f"BENCH_PEER_BUILD={text}: no folder with the package atalanta in it")
    if not os.environ.get("BENCH_OUT"):
        raise BadSetting("BENCH_PEER_BUILD needs BENCH_OUT=FOLDER: the results are not beside Artemis")
    return Path(text).resolve()


def _number(name: str, usual: float, least: float) -> float:
    text = os.environ.get(name)
    if not text:
        return usual
    try:
        value = float(text)
    except ValueError:
        raise BadSetting(f"{name}={text}: not a number") from None
    if value < least:
        raise BadSetting(f"{name}={text}: at least {least:g}")
    return value
