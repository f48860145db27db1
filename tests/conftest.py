"""Fixtures shared by all tests: one Spark session and one demonstration lake for the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from planning_health.catalogs import TableName, spark_session
from planning_health.demo.lake import build_lake
from planning_health.settings import SettingsDocument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")  # the same examples for the same code; new ones are found by people's runs

SQLITE_JDBC = "org.xerial:sqlite-jdbc:3.50.3.0"


def lake_settings(home: Path) -> SettingsDocument:
    """Settings with the embedded catalog ``lake`` below ``home``."""
    defaults = SettingsDocument.model_fields["spark"].default
    return SettingsDocument.model_validate(
        {
            "home": str(home),
            "catalogs": {
                "lake": {
                    "properties": {
                        "type": "jdbc",
                        "uri": "jdbc:sqlite:${home}/catalog.db",
                        "warehouse": "${home}/warehouse",
                    }
                }
            },
            "spark": {
                "packages": [*defaults.packages, SQLITE_JDBC],
                "conf": {"spark.sql.shuffle.partitions": "4"},
            },
            "history": {"catalog": "lake"},
        }
    )


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> SettingsDocument:
    """Settings of the lake that the ``spark`` fixture writes; the home folder is shared by the whole run."""
    return lake_settings(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def spark(settings: SettingsDocument) -> Iterator[SparkSession]:
    """A real Spark session with the catalog ``lake``. Each test module uses a namespace of its own."""
    session = spark_session(settings, "planning-health tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def demo_lake(spark: SparkSession) -> list[TableName]:
    """The demonstration lake in the catalog ``lake``, built once. Read-only: tests commit to tables of their own."""
    return build_lake(spark)
