"""Spark job: runs an approved maintenance request on one table, and reports each of its steps."""

from __future__ import annotations

from planning_health.catalogs import spark_session
from planning_health.envelope import Envelope
from planning_health.jobs.arguments import JobArguments, run_job
from planning_health.stages.act import act


def job(arguments: JobArguments) -> Envelope:
    """Guards, changes, verifies and measures again; a repeated run does not rewrite again."""
    table, request = arguments.require_table(), arguments.maintenance_request()
    spark = spark_session(arguments.settings, "planning-health act")
    try:
        return act(arguments.settings, arguments.run_folder, table, request, spark)
    finally:
        spark.stop()


if __name__ == "__main__":
    run_job(job)
