"""Homes as runs leave them: two weeks with a repair between them, and a year of many tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from planning_health.reports.model import Summary
from planning_health.reports.trend import FOLDER, RunTrend, TablePoint
from planning_health.run_folder import run_key, write_bytes
from planning_health.stages.report import report

from ..reports import sample_run as sample


def two_weeks(home: Path) -> Path:
    """A weekly run, a repair of the orders, and the next weekly run."""
    for run in (sample.last_week(home), sample.repair(home), sample.this_week(home)):
        report(sample.SETTINGS, run.folder)
    return home


def year(home: Path, tables: int, weeks: int = 52) -> Path:
    """Trend files of a year of weekly runs; every tenth table is critical, and all get slower to plan."""
    newest = datetime.now(UTC) - timedelta(hours=3)
    for week in range(weeks):
        at = newest - timedelta(weeks=weeks - 1 - week)
        run_id = f"scheduled__{at.isoformat()}"
        points = {f"lake.sales.t{number:04}": _point(number, week, at) for number in range(tables)}
        trend = RunTrend(
            scope="week",
            dag_id=sample.WEEKLY,
            run_id=run_id,
            at=at.isoformat(),
            title=f"Week {week}",
            lede=f"Of {tables} tables, {tables // 10} are critical.",
            summary=Summary(tables=tables, critical=tables // 10, ok=tables - tables // 10),
            report=f"reports/{at:%G-W%V}-{run_key(run_id)}",
            tables=points,
        )
        name = f"{at:%Y%m%dT%H%M%SZ}-{run_key(run_id)}.json"
        write_bytes(f"{home}/{FOLDER}/week/{name}", trend.model_dump_json(exclude_defaults=True).encode())
    return home


def _point(number: int, week: int, at: datetime) -> TablePoint:
    depth = 1 + number % 7 + week * (number % 10) / 8
    return TablePoint(
        state="critical" if number % 10 == 0 else "ok",
        measured_at=at.isoformat(),
        snapshot_id=1000 + week,
        values={
            "manifests": 10 + week,
            "metadata_bytes": 40_000 * (1 + number) + 9_000 * week,
            "data_files": 1000 + 40 * week,
            "delete_files": 0,
            "overlap_mean": round(depth, 2),
            "overlap_worst": round(depth * 2),
            "deleted_ratio": 0.0,
        },
    )
