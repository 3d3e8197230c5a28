"""Spark finds the source by a module's name, without `register`."""

from __future__ import annotations

from pkgutil import iter_modules

from pyspark.sql.datasource import DataSource

import pyspark_atalanta
from atalanta.spark import AtalantaDataSource
from atalanta.spark.options import read_options, write_options

# As Spark passes them for CREATE TABLE … USING atalanta OPTIONS (…).
TABLE = {
    "provider": "atalanta",
    "servers": "localhost:61616",
    "address": "flights",
    "queue": "archive",
    "routing": "multicast",
}


def test_the_module_has_the_name_and_the_class_that_pyspark_looks_for() -> None:
    assert "pyspark_atalanta" in {found.name for found in iter_modules()}
    assert issubclass(pyspark_atalanta.DefaultSource, DataSource)
    assert pyspark_atalanta.DefaultSource is AtalantaDataSource


def test_a_table_has_the_options_of_both_directions() -> None:
    assert read_options(TABLE).queue == "flights::archive"
    assert write_options(TABLE).routing == "multicast"
