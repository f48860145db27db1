"""The assets that our Dags produce, for other Dags to follow."""

from __future__ import annotations

from typing import Final

from airflow.sdk import Asset

MEASUREMENT: Final = Asset(name="planning_health_measurement", uri="planning-health://measurement")
"""All tables were measured: the run's recordings are in its folder."""

REPORT: Final = Asset(name="planning_health_report", uri="planning-health://report")
"""A report was written: ``reports/latest/`` is the newest weekly one."""

MAINTAINED_TABLE: Final = Asset(name="planning_health_maintained_table", uri="planning-health://maintained-table")
"""Maintenance changed a table: the event's ``table`` says which."""
