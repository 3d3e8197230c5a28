"""Remedies of a pipeline's errors."""

from __future__ import annotations

from atalanta.spark import errors
from atalanta.spark.pipeline.failure import AGAIN, REMEDIES, brief, remedy


def test_each_remedy_is_of_an_error_that_exists() -> None:
    assert [name for name in REMEDIES if not isinstance(getattr(errors, name, None), type)] == []


def test_a_lease_that_is_taken_or_ended_has_a_remedy_of_its_own() -> None:
    for name, says in (("LeaseTaken", "one query reads a queue"), ("LeaseEnded", "goes on from its checkpoints")):
        text = f"pyspark.errors.StreamingQueryException: …\natalanta.spark.errors.{name}: group 'g' …\n"
        assert says in remedy(text) and remedy(text) != AGAIN


def test_an_exception_of_java_is_told_without_the_object_that_was_called() -> None:
    text = "An error occurred while calling o71.start.\n: java.io.IOException: mkdir of file:/out failed\n\tat org"
    assert brief(text) == "java.io.IOException: mkdir of file:/out failed"
