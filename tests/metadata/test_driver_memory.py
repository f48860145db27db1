"""While Spark records a table, the driver holds a row for each manifest, and no entry as an object."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.planning.lake import Shape, make_table

from planning_health.identifiers import TableName
from planning_health.metadata import load, record_spark
from planning_health.metadata.record_spark import record_with_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FEW, MANY = Shape(160, 12, 8), Shape(40_000, 12, 8)
"""As many manifests, so that only the number of entries differs."""
MOST_BYTES_AN_ENTRY = 16
"""An entry as a Python object takes a thousand and more."""


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[Shape, TableName]:
    spark.sql("CREATE NAMESPACE lake.test_driver_memory")
    made = {}
    for shape in (FEW, MANY):
        made[shape] = TableName("lake", ("test_driver_memory",), f"files_{shape.files}")
        make_table(spark, made[shape], shape, tmp_path_factory.mktemp("manifests") / str(shape.files))
    return made


def allocated(work: Callable[[], Any]) -> int:
    """Bytes of Python objects at most while the work runs."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_drivers_objects_do_not_grow_with_the_entries(
    spark: SparkSession, tables: dict[Shape, TableName], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_spark, "sample_budgets", lambda _: {})  # samples are bounded by their bytes

    def peak(shape: Shape) -> int:
        return allocated(lambda: record_with_spark(spark, tables[shape], str(tmp_path / str(shape.files))))

    peak(FEW)  # what is imported and cached once counts for neither
    grown = peak(MANY) - peak(FEW)
    assert load(str(tmp_path / str(MANY.files))).data_files.num_rows == MANY.files
    assert grown / (MANY.files - FEW.files) < MOST_BYTES_AN_ENTRY
