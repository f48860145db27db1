"""What Spark is asked to do when it records a table: few tasks, since each costs a worker a share of a second."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planning_health.metadata.record_spark import _tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("parts", "cores", "tasks"),
    [(1, 2, 1), (7, 2, 4), (40, 64, 40), (313, 2, 20), (313, 64, 128)],
    ids=["a small table", "both cores", "no empty task", "none too long to repeat", "a cluster"],
)
def test_tasks_are_enough_for_all_cores_and_none_is_long(parts: int, cores: int, tasks: int) -> None:
    assert _tasks(parts, cores) == tasks


@pytest.mark.spark
def test_a_python_worker_looks_for_no_module_in_the_jars_of_packages(spark: SparkSession) -> None:
    def searched(_: int) -> list[str]:
        return sys.path

    (paths,) = spark.sparkContext.parallelize([0], 1).map(searched).collect()
    jars = {Path(path).name for path in paths if path.endswith(".jar")}
    assert {name.partition("_")[0] for name in jars} <= {"spark-core"}  # Spark's own, which its launcher puts there
