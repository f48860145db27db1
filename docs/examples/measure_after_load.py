"""A Dag of yours that loads a table, and then has its planning measured: no waiting for the weekly run.

The load ends with an event of the asset ``planning_health_request``; ``planning_health_weekly`` is scheduled on it
beside its own time. The event's ``tables`` name what was loaded: only these are measured, and the report shows the
others as they were measured last. Without ``tables`` all are measured.
"""

from __future__ import annotations

from airflow.sdk import Asset, Metadata, dag, task

LOADED = Asset(name="planning_health_request", uri="planning-health://request", group="planning-health")


@task(outlets=[LOADED])
def load() -> object:
    """Loads the table, and says so."""
    # … your load …
    yield Metadata(LOADED, {"tables": ["lake.sales.orders"]})


@dag(schedule="@daily", catchup=False)
def load_orders() -> None:
    """Loads the orders each day."""
    load()


load_orders()
