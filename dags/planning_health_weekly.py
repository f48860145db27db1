"""### Weekly planning health

Measures every Iceberg table that the settings include, says which manifests slow query planning down, and writes the
weekly report.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import dag, task
from planning_run import finish, planning_run
from spark_job_operator import SparkJobOperator


@dag(
    schedule="@weekly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    doc_md=__doc__,
    tags=["iceberg", "planning-health"],
    default_args={"owner": "data-platform"},
)
def planning_health_weekly() -> None:
    @task
    def discover() -> dict[str, Any]:
        from planning_health.stages.discover import discover as stage

        with planning_run() as (settings, folder):
            return finish(stage(settings, folder))

    discover() >> SparkJobOperator(task_id="measure", job="measure")


planning_health_weekly()
