"""The assets that our Dags follow and produce. The events carry the run, the headline numbers and the result's path."""

from __future__ import annotations

from typing import Final

from airflow.sdk import Asset

_GROUP: Final = "planning-health"

REQUEST: Final = Asset(name="planning_health_request", uri="planning-health://request", group=_GROUP)
"""Somebody wants tables measured: the event's ``tables`` names them; without it, all."""

MEASUREMENT: Final = Asset(name="planning_health_measurement", uri="planning-health://measurement", group=_GROUP)
"""Tables were measured: the run's recordings are in its folder."""

REPORT: Final = Asset(name="planning_health_report", uri="planning-health://report", group=_GROUP)
"""A report was written: ``reports/latest/`` is the newest weekly one."""

MAINTAINED_TABLE: Final = Asset(
    name="planning_health_maintained_table", uri="planning-health://maintained-table", group=_GROUP
)
"""Maintenance changed a table: the event's ``table`` says which."""
