"""Spark job: measures one table and proposes what a maintenance form asks for."""

from __future__ import annotations

from planning_health.catalogs import spark_session
from planning_health.envelope import Envelope
from planning_health.jobs.arguments import JobArguments, run_job
from planning_health.stages.measure import measure
from planning_health.stages.propose import propose


def job(arguments: JobArguments) -> Envelope:
    """Measures the table, then proposes; a table that cannot be measured has no proposal but a reason."""
    table, request = arguments.require_table(), arguments.maintenance_request()
    spark = spark_session(arguments.settings, "planning-health propose")
    try:
        measure(arguments.settings, arguments.run_folder, [table], spark=spark)
    finally:
        spark.stop()
    return propose(arguments.settings, arguments.run_folder, table, request)


if __name__ == "__main__":
    run_job(job)
