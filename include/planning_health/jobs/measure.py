"""Spark job: measures all tables that the run discovered, or one."""

from __future__ import annotations

from planning_health.catalogs import spark_session
from planning_health.envelope import Envelope
from planning_health.identifiers import TableName
from planning_health.jobs.arguments import JobArguments, run_job
from planning_health.stages import discover
from planning_health.stages.measure import measure


def job(arguments: JobArguments) -> Envelope:
    """Measures the given table, else every table of the run's discovery."""
    spark = spark_session(arguments.settings, "planning-health measure")
    try:
        return measure(arguments.settings, arguments.run_folder, _tables(arguments), spark=spark)
    finally:
        spark.stop()


def _tables(arguments: JobArguments) -> list[TableName]:
    if arguments.table:
        return [arguments.table]
    return [TableName.parse(name) for name in arguments.run_folder.require_result(discover.KIND).data["tables"]]


if __name__ == "__main__":
    run_job(job)
